"""The reserved slot: trained indexes ranked among themselves by an absolute score.

An engine whose environment ranks by `slot` keeps the index documents in a second engine (`SearchEngine.trained`), so
that the ranking of all other documents is that of a store without them. `best` returns the indexes that match a query
well enough; `calibrate` chooses the threshold on questions with known evidence.
"""
