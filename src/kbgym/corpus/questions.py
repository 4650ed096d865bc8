"""Questions from CSV, JSON or JSONL: parsing, checks, duplicates, splits and groups.

    question,answer,group
    Who built the Kestrel?,Olsen & Co.|Olsen and Co.,kestrel

`answer` (or `answers`) holds every accepted answer, separated by `|`, `members` the elements of a set; `keys` are
`kind:value`, `support` document ids or quotes. Splits that are not given are drawn by a hash of seed and subject, so
the same file always gives the same splits; near-duplicates share a split.

A file with a column `approve` holds drafts: only rows with a yes are questions. `quote` helps to decide.
"""

from __future__ import annotations

import codecs
import csv
import io
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kbgym.canonical import decode, digest
from kbgym.corpus.blocks import folded
from kbgym.corpus.documents import Quote
from kbgym.corpus.splits import Split, divide, near_duplicates, normalised
from kbgym.errors import BadInput
from kbgym.worlds.world import SPLITS, Document, Key, Question, pages_of

MOST_FILE = 256 << 20
_COLUMNS = (
    "id question answer answers members keys support group split unanswerable class template approve quote".split()
)
_SEVERAL = ("answer", "answers", "members", "keys", "support")
GROUPS = ("trained", "paraphrase", "same_page", "sets", "elsewhere")
_YES = ("1", "true", "yes", "y")
_NO = ("", "0", "false", "no", "n")
T = TypeVar("T")


class QuestionRow(msgspec.Struct, frozen=True):
    """A question as given in the file; `where` names its line for messages."""

    where: str
    text: str
    golds: tuple[str, ...]
    keys: tuple[Key, ...] = ()
    support: tuple[str, ...] = ()
    group: str = ""
    split: str = ""
    unanswerable: bool = False
    class_: str = "corpus"
    template: str = "corpus"
    members: tuple[str, ...] = ()

    @property
    def reported(self) -> bool:
        """Return True if `group` is a group of the report, not a subject that keeps rows in one split."""
        return bool(self.group) and (bool(self.split) or self.group in GROUPS)


class Duplicate(msgspec.Struct, frozen=True):
    """Two questions that ask the same thing, and their splits."""

    first: str
    second: str
    splits: tuple[str, str]
    dropped: bool = False


class MadeQuestions(msgspec.Struct, frozen=True):
    """The questions of a world, and the duplicates found; duplicates in two splits are leaks."""

    questions: tuple[Question, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    unapproved: int = 0  # drafts that were not approved

    @property
    def leaks(self) -> tuple[Duplicate, ...]:
        return tuple(pair for pair in self.duplicates if pair.splits[0] != pair.splits[1])


def make_questions(
    rows: Sequence[QuestionRow],
    documents: Sequence[Document],
    seed: int = 0,
    old: Sequence[Question] = (),
    quotes: Sequence[Quote] = (),
) -> MadeQuestions:
    """Turn rows into questions. Questions that `old` has keep their split; `quotes` are the statements of documents."""
    pairs = near_duplicates([row.text for row in rows])
    dropped: set[int] = set()
    for pair in pairs:
        one, other = rows[pair.first], rows[pair.second]
        if not pair.same or (one.split and other.split and one.split != other.split):
            continue
        if {normalised(gold) for gold in one.golds}.isdisjoint(normalised(gold) for gold in other.golds):
            raise BadInput(f"{one.where} and {other.where} ask the same and have no answer in common.")
        dropped.add(pair.second)
    kept = {question.id: question.split for question in old}
    ids = _ids(rows)
    members = [
        Split(id, "" if row.reported else row.group, row.split or kept.get(id, ""), bool(row.split))
        for row, id in zip(rows, ids, strict=True)
    ]
    splits = divide(members, [(pair.first, pair.second) for pair in pairs], seed, leave_out=dropped)
    find = _Supports(documents, quotes)
    found = [find(row) for row in rows]
    groups = _groups(rows, splits, found, pages_of(documents)) if quotes else [row.group for row in rows]
    questions = tuple(
        Question(
            ids[n],
            splits[n],
            row.class_,
            row.template,
            row.text,
            row.golds,
            row.keys,
            found[n].documents,
            row.unanswerable,
            groups[n],
            row.members,
        )
        for n, row in enumerate(rows)
        if n not in dropped
    )
    duplicates = tuple(
        Duplicate(
            rows[pair.first].where,
            rows[pair.second].where,
            (splits[pair.first], splits[pair.first if pair.second in dropped else pair.second]),
            pair.second in dropped,
        )
        for pair in pairs
    )
    return MadeQuestions(questions, duplicates)


def _groups(
    rows: Sequence[QuestionRow], splits: Sequence[str], found: Sequence[ResolvedSupport], pages: Mapping[str, str]
) -> list[str]:
    """Return the report group of each row: the given one, or its relation to the training questions."""
    on = [{pages[id] for id in one.documents if id in pages} for one in found]
    trained = [n for n, split in enumerate(splits) if split == "train"]
    needs = {found[n].statements for n in trained if found[n].statements}
    taught = {page for n in trained for page in on[n]}

    def group(n: int) -> str:
        if rows[n].reported:
            return rows[n].group
        if splits[n] == "train":
            return "trained"
        if not found[n].statements:
            return "elsewhere" if needs else ""
        if found[n].statements in needs:
            return "paraphrase"
        if rows[n].members or len(found[n].statements) > 1:
            return "sets"
        return "same_page" if on[n] & taught else "elsewhere"

    return [group(n) for n in range(len(rows))]


def _ids(rows: Iterable[QuestionRow]) -> list[str]:
    """Return ids derived from the words alone, so that a question keeps its id when the file grows."""
    seen: Counter[str] = Counter()
    ids = []
    for row in rows:
        id = f"q-{digest(normalised(row.text).encode())[:10]}"
        seen[id] += 1
        ids.append(id if seen[id] == 1 else f"{id}-{seen[id]}")
    return ids


class ResolvedSupport(msgspec.Struct, frozen=True):
    """The support of a row: its documents, and the statements in them that it names."""

    documents: tuple[str, ...]
    statements: frozenset[str]


class _Supports:
    """Resolves supports, which are document ids or quotes.

    Quotes are matched in the statements of the files, then in statements with their context, then in documents.
    """

    def __init__(self, documents: Sequence[Document], quotes: Sequence[Quote]) -> None:
        self._known = {document.id for document in documents}
        self._document = {str(n): id for n, (id, _, _) in enumerate(quotes)}
        self._own = _Words([(str(n), own) for n, (_, own, _) in enumerate(quotes)])
        self._full = _Words([(str(n), text) for n, (_, _, text) in enumerate(quotes)])
        self._documents = _Words([(document.id, document.text) for document in documents])

    def __call__(self, row: QuestionRow) -> ResolvedSupport:
        statements: dict[str, None] = {}
        for support in row.support:
            found = [support] if support in self._known else [id for id, _ in self._saying(support)]
            if not found:
                raise BadInput(f"{row.where}: no document has the id or the words {support!r}.")
            statements |= dict.fromkeys(found)
        documents = dict.fromkeys(self._document.get(one, one) for one in statements)
        return ResolvedSupport(tuple(documents), frozenset(statements))

    def _saying(self, quote: str) -> list[tuple[str, str]]:
        for index in (self._own, self._full, self._documents):
            if found := index.saying(quote):
                return found
        headings, _, rest = quote.partition(": ")  # the quote may follow the headings of another passage of the page
        title = f"{normalised(headings.partition(' > ')[0])} "
        return [one for one in self._documents.saying(rest) if f"{normalised(one[1])} ".startswith(title)]


class _Words:
    """An index of texts with their ids by their words, built on first use."""

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        self._texts = texts

    @cached_property
    def _joined(self) -> tuple[str, list[int]]:
        parts = [f" {normalised(text)} \n" for _, text in self._texts]
        return "".join(parts), [0, *accumulate(map(len, parts))]

    def saying(self, words: str) -> list[tuple[str, str]]:
        """Return all texts that contain these words consecutively."""
        wanted, found, at = f" {normalised(words)} ", list[tuple[str, str]](), 0
        text, starts = self._joined
        while wanted.strip() and (at := text.find(wanted, at)) >= 0:
            place = bisect_right(starts, at) - 1
            found.append(self._texts[place])
            at = starts[place + 1]
        return found


# -- reading ----------------------------------------------------------------------------------------------------------


def read_rows(path: Path) -> tuple[list[QuestionRow], int]:
    """Read the rows of a questions file, without drafts that are not approved, and count those.

    Raise BadInput with the line of the first invalid row.
    """
    ending = path.suffix.lower()
    if ending in (".jsonl", ".ndjson", ".json"):
        raw: Iterable[tuple[str, Mapping[str, Any]]] = json_entries(path, dict[str, Any], MOST_FILE)
    elif ending in (".csv", ".tsv"):
        raw = _csv_rows(path, "\t" if ending == ".tsv" else ",")
    else:
        raise BadInput(f"{path} is no questions file: it must end in .csv, .tsv, .jsonl or .json.")
    rows, drafts = list[QuestionRow](), 0
    for where, values in raw:
        if "approve" in values and not _flag(where, "approve", values):
            drafts += 1
        else:
            rows.append(_row(where, values))
    if not rows and drafts:
        raise BadInput(
            f"none of the {drafts} drafts in {path} is approved: read them, and write yes in the column `approve` "
            "of those you want to use."
        )
    if not rows:
        raise BadInput(f"{path} holds no question.")
    return rows, drafts


def json_entries(path: Path, type_: type[T], most: int) -> Iterator[tuple[str, T]]:
    """Yield the objects of a JSON file, which is one array or has one object per line, with their places."""
    data = _bytes(path, most)
    if data[:1_000].lstrip().startswith(b"["):
        entries = _decoded(path.name, data, list[type_])  # type: ignore[valid-type]
        yield from ((f"{path.name}, entry {number}", entry) for number, entry in enumerate(entries, 1))
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            where = f"{path.name}, line {number}"
            yield where, _decoded(where, line, type_)


def _bytes(path: Path, most: int) -> bytes:
    try:
        if path.stat().st_size > most:
            raise BadInput(f"{path} is too large: at most {most:,} bytes are read.")
        return path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}.") from error


def _decoded(where: str, data: bytes, type_: type[T]) -> T:
    try:
        return decode(data, type_)
    except msgspec.DecodeError as error:
        raise BadInput(f"{where} is not in the expected format: {error}.") from error


def _csv_rows(path: Path, delimiter: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        lines = io.StringIO(_bytes(path, MOST_FILE).decode(), newline=None)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text: byte {error.start:,} fits nothing.") from error
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if "question" not in header:
            raise BadInput(f"{path.name} has no column `question`; its columns are {', '.join(header) or 'none'}.")
        for cells in reader:
            where = f"{path.name}, line {reader.line_num}"
            if len(cells) > len(header):
                raise BadInput(f"{where}: {len(cells)} cells for {len(header)} columns; quote what holds a comma.")
            if any(cell.strip() for cell in cells):
                yield where, dict(zip(header, cells, strict=False))
    except csv.Error as error:
        raise BadInput(f"{path.name}, line {reader.line_num}: {error}.") from error


def _row(where: str, values: Mapping[str, Any]) -> QuestionRow:
    unknown = [name for name in values if name not in _COLUMNS]
    if unknown:
        raise BadInput(f"{where}: there is no column {unknown[0]!r}; known are {', '.join(_COLUMNS[1:])}.")
    given = {name: _texts(where, name, value) for name, value in values.items()}
    one = {name: "".join(texts) for name, texts in given.items() if name not in _SEVERAL}
    if not (text := one.get("question")):
        raise BadInput(f"{where}: the question is empty.")
    unanswerable, members = _flag(where, "unanswerable", values), given.get("members", ())
    golds = given.get("answers") or given.get("answer") or ((", ".join(members),) if members else ())
    if not golds and not unanswerable:
        raise BadInput(f"{where}: {text!r} has no answer; give one, or set unanswerable to yes.")
    split = one.get("split", "")
    if split and split not in SPLITS:
        raise BadInput(f"{where}: there is no split {split!r}; the splits are {', '.join(SPLITS)}.")
    return QuestionRow(
        where,
        text,
        ("unknown",) if unanswerable else golds,
        tuple(_key(where, key) for key in given.get("keys", ())),
        given.get("support", ()),
        one.get("group", ""),
        split,
        unanswerable,
        one.get("class") or "corpus",
        one.get("template") or "corpus",
        members,
    )


def _texts(where: str, name: str, value: Any) -> tuple[str, ...]:
    """Return the different texts of a cell or a JSON value: one, or several separated by `|`."""
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, list | dict) for part in parts) or (parts is value and name not in _SEVERAL):
        raise BadInput(f"{where}: {name} must be text.")
    texts = ["" if part is None else str(part) for part in parts]
    if name in _SEVERAL and parts is not value:
        texts = texts[0].split("|")
    return tuple(dict.fromkeys(filter(None, map(folded, texts))))


def _key(where: str, key: str) -> Key:
    kind, colon, value = key.partition(":")
    if not (colon and kind.strip() and value.strip()):
        raise BadInput(f"{where}: a key is written kind:value, not {key!r}.")
    return Key(kind.strip(), value.strip())


def _flag(where: str, name: str, values: Mapping[str, Any]) -> bool:
    said = "".join(_texts(where, name, values.get(name))).lower()
    if said not in (*_YES, *_NO):
        raise BadInput(f"{where}: {name} is yes or no, not {said!r}.")
    return said in _YES
