"""Learning from traffic: questions asked of a served store, their golds, what is learnt and what it gains."""
