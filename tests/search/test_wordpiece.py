"""The tokenizer against the library the model was published with."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest

from kbgym.errors import BadInput
from kbgym.search.models import VOCABULARY
from kbgym.search.wordpiece import SPECIAL, WordPiece, _clean

tokenizers = pytest.importorskip("tokenizers", reason="compared with the tokenizers library (dev extra)")

ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz ",
    "ABCDEFGHIJKLMNOP QRSTUVWXYZ0123456789 ",
    "àéîõüçñÅØßæœŁİıſǅﬁŉ ",
    ".,;:!?'\"()[]{}<>$+=^`|~@#%&*-_/\\ ",
    "ΑΒΓΣσςάέήίόύώ ЖЩЪЫэюяЁё ",
    "中文字符漢字仮名カタカナひらがな한국어訓民正音 ",
    "שלום עליכם السلام عليكم हिन्दी ไทย ",
    "\u200b\u200d\u200e\u200f\u202a\u202e\u2066\ufeff\u00ad\x00\x07\x1b\x7f\x85 ",
    "\t\n\r\x0b\x0c\u00a0\u1680\u2003\u2028\u2029\u3000 ",
    "\u0300\u0301\u0308\u0327\u20d0e\u0301 o\u0308 ",
    "\ufffd\ue000\U0001d400\U00010400—–…“”‘’€£¥§¶†",
)


@pytest.fixture(scope="module")
def ours(model_folder: Path) -> WordPiece:
    return WordPiece(model_folder / VOCABULARY)


@pytest.fixture(scope="module")
def theirs(model_folder: Path) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    return tokenizer


def nasty_texts(count: int) -> list[str]:
    source = random.Random(7)
    texts = []
    for number in range(count):
        alphabets = source.sample(ALPHABETS, source.randint(1, 4))
        size = 2000 if number % 50 == 0 else source.randint(0, 80)
        letters = [source.choice(source.choice(alphabets)) for _ in range(size)]
        if number % 7 == 0:
            letters.insert(size // 2, source.choice(SPECIAL))
        if number % 11 == 0:
            letters.append("x" * source.choice([99, 100, 101, 500]))
        texts.append("".join(letters))
    return texts


def test_same_numbers_on_thousands_of_texts(ours: WordPiece, theirs: tokenizers.Tokenizer) -> None:
    texts = [
        *nasty_texts(4000),
        "",
        " ",
        "Sylvie Ravenscroft's job is tailor.",
        "word " * 5000,
        "é" * 100,
        "a" * 300_000,
    ]
    differing = [text for text in texts if ours.encode(text) != theirs.encode(text).ids]
    assert not differing, repr(differing[0][:200])


def test_every_settled_character_is_cleaned_alike() -> None:
    normalize = tokenizers.normalizers.BertNormalizer().normalize_str
    split = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    # Characters that came or changed later follow whichever Unicode tables a Python carries.
    then, now = unicodedata.ucd_3_2_0.category, unicodedata.category
    points = [p for p in range(0x30000) if then(chr(p)) not in ("Cn", "Cs") and then(chr(p)) == now(chr(p))]
    assert len(points) > 90_000
    for point in points:
        character = chr(point)
        expected = [word for word, _ in split(normalize(f"a{character}b"))]
        assert f"a{_clean(character)}b".split() == expected, hex(point)


def test_never_longer_than_the_model_was_trained_for(ours: WordPiece) -> None:
    assert len(ours.encode("a b c " * 1000)) == 256
    assert ours.encode("") == [101, 102]


def test_an_unpaired_surrogate_is_dropped(ours: WordPiece) -> None:
    assert ours.encode("ba\ud800ker") == ours.encode("baker")


def test_a_file_that_is_no_vocabulary_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("one\ntwo\n")
    with pytest.raises(BadInput, match=r"not a BERT vocabulary.*\[PAD\]"):
        WordPiece(tmp_path / "vocab.txt")
    with pytest.raises(BadInput, match="cannot read"):
        WordPiece(tmp_path / "absent.txt")
