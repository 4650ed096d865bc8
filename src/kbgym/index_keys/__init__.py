"""Index keys: the recogniser of keys in index sentences, for guard, agents, agenda, audit and serving.

A key is a property shared by several documents and used in questions: a name (`person`), all people with a value of an
attribute (`job`), all people in a relation to a person (`friend`), or, with `then`, an attribute of each of those
("Cities of people whose job is tanner"). The vocabulary is English and independent of worlds: callers supply values.
"""

from kbgym.index_keys.recognise import IndexKey, KeyVocabulary, RuleJudge, Span, names, same_key, signature, worded_key

__all__ = ["IndexKey", "KeyVocabulary", "RuleJudge", "Span", "names", "same_key", "signature", "worded_key"]
