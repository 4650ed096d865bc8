"""Learning from traffic: questions asked of a served store, their expected answers, the lessons and their gain."""
