"""The key that an index sentence names: one recogniser for guard, agents, agenda, audit and serving.

A key is anything several documents share and questions come by: a name (`person`), everybody with a value of an
attribute (`job`), everybody in a relation to a person (`friend`), or, with `then`, what is stated of each of those
("Cities of people whose job is tanner"). It knows English words for these and no world: callers supply the values.
"""

from kbgym.index_keys.recognise import IndexKey, KeyVocabulary, Span, names, same_key, worded_key
from kbgym.index_keys.words import ASKED, tokens, words_of

__all__ = ["ASKED", "IndexKey", "KeyVocabulary", "Span", "names", "same_key", "tokens", "worded_key", "words_of"]
