"""The grammar of benchmark v3: dated reports, their wordings, and the answers to questions about them.

Worlds write it and the v3 reference reader reads it. Nothing here knows a world, a gold or a store.
"""
