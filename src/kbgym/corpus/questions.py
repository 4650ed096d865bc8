"""Questions from CSV, JSON or JSONL: parsing, checks, duplicates, splits and groups.

    question,answer,group
    Who built the Kestrel?,Olsen & Co.|Olsen and Co.,kestrel

`answer` (or `answers`) holds every accepted answer, separated by `|`, `members` the elements of a set; `keys` are
`kind:value`, `support` document ids or quotes. Splits that are not given are drawn by a hash of seed and subject, so
the same file always gives the same splits; near-duplicates share a split.

A file with a column `approve` holds drafts: only rows with a yes are questions. `quote` helps to decide.
"""

from __future__ import annotations

import csv
import io
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
GROUPS = ("trained", "paraphrase", "same_page", "sets", "elsewhere")
_YES = ("1", "true", "yes", "y")
_NO = ("", "0", "false", "no", "n")


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
        self._own = _Words((str(n), own) for n, (_, own, _) in enumerate(quotes))
        self._full = _Words((str(n), text) for n, (_, _, text) in enumerate(quotes))
        self._documents = _Words((document.id, document.text) for document in documents)

    def __call__(self, row: QuestionRow) -> ResolvedSupport:
        statements: dict[str, None] = {}
        for support in row.support:
            if support in self._known:
                found = [support]
            else:
                found = self._own.saying(support) or self._full.saying(support) or self._passages(support)
            if not found:
                raise BadInput(f"{row.where}: no document has the id or the words {support!r}.")
            statements |= dict.fromkeys(found)
        documents = dict.fromkeys(self._document.get(one, one) for one in statements)
        return ResolvedSupport(tuple(documents), frozenset(statements))

    def _passages(self, support: str) -> list[str]:
        """Return the documents that contain a quote, or the part after its headings in documents of that page."""
        if found := self._documents.saying(support):
            return found
        headings, _, quote = support.partition(": ")
        title = f" {normalised(headings.partition(' > ')[0])} "
        return [id for id in self._documents.saying(quote) if self._documents.text(id).startswith(title)]


class _Words:
    """An index of texts by their words, built on first use."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        self._texts = texts
        self._ids: list[str] = []
        self._starts: list[int] = []
        self._text = ""

    def text(self, id: str) -> str:
        """Return the normalised text of an id; call `saying` first."""
        place = self._ids.index(id)
        return self._text[self._starts[place] : (*self._starts, len(self._text))[place + 1]]

    def saying(self, words: str) -> list[str]:
        """Return the ids of all texts that contain these words consecutively."""
        if not self._ids:
            parts, at = [], 0
            for id, text in self._texts:
                self._ids.append(id)
                self._starts.append(at)
                parts.append(f" {normalised(text)} \n")
                at += len(parts[-1])
            self._text = "".join(parts)
        wanted, found, at = f" {normalised(words)} ", list[str](), 0
        while wanted.strip() and (at := self._text.find(wanted, at)) >= 0:
            place = bisect_right(self._starts, at) - 1
            found.append(self._ids[place])
            at = self._starts[place + 1] if place + 1 < len(self._starts) else len(self._text)
        return found


# -- reading ----------------------------------------------------------------------------------------------------------


def read_rows(path: Path, unapproved: list[str] | None = None) -> list[QuestionRow]:
    """Read the rows of a questions file. Raise BadInput with the line of the first invalid row.

    Drafts without approval are omitted, and their lines are added to `unapproved`.
    """
    try:
        if path.stat().st_size > MOST_FILE:
            raise BadInput(f"{path} is too large for a questions file: at most {MOST_FILE:,} bytes are read.")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text: byte {error.start:,} fits nothing.") from error
    if path.suffix.lower() in (".jsonl", ".ndjson", ".json"):
        raw = _json_rows(path, text)
    elif path.suffix.lower() in (".csv", ".tsv"):
        raw = _csv_rows(path, text)
    else:
        raise BadInput(f"{path} is no questions file: it must end in .csv, .tsv, .jsonl or .json.")
    drafts = [where for where, values in raw if not _approved(where, values)]
    rows = [_row(where, values) for where, values in raw if _approved(where, values)]
    if not rows and drafts:
        raise BadInput(
            f"none of the {len(drafts)} drafts in {path} is approved: read them, and write yes in the column `approve` "
            "of those you want to use."
        )
    if not rows:
        raise BadInput(f"{path} holds no question.")
    if unapproved is not None:
        unapproved += drafts
    return rows


def _approved(where: str, values: Mapping[str, Any]) -> bool:
    return "approve" not in values or _flag(where, "approve", values["approve"])


def _json_rows(path: Path, text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Read one object per line, or one array of objects."""
    if text.lstrip().startswith("["):
        try:
            entries = decode(text, list[dict[str, Any]])
        except msgspec.DecodeError as error:
            raise BadInput(f"{path.name}: {error}.") from error
        return [(f"{path.name}, entry {number}", entry) for number, entry in enumerate(entries, 1)]
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append((f"{path.name}, line {number}", decode(line, dict[str, Any])))
        except msgspec.DecodeError as error:
            raise BadInput(f"{path.name}, line {number}: {error}.") from error
    return rows


def _csv_rows(path: Path, text: str) -> list[tuple[str, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text), strict=True, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    rows: list[tuple[str, Mapping[str, Any]]] = []
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if "question" not in header:
            raise BadInput(f"{path.name} has no column `question`; its columns are {', '.join(header) or 'none'}.")
        for cells in reader:
            where = f"{path.name}, line {reader.line_num}"
            if len(cells) > len(header):
                raise BadInput(f"{where}: {len(cells)} cells for {len(header)} columns; quote what holds a comma.")
            if any(cell.strip() for cell in cells):
                rows.append((where, dict(zip(header, cells, strict=False))))
    except csv.Error as error:
        raise BadInput(f"{path.name}, line {reader.line_num}: {error}.") from error
    return rows


def _row(where: str, values: Mapping[str, Any]) -> QuestionRow:
    unknown = [name for name in values if name not in _COLUMNS]
    if unknown:
        raise BadInput(f"{where}: there is no column {unknown[0]!r}; known are {', '.join(_COLUMNS[1:])}.")
    text = folded(_string(where, "question", values.get("question")))
    if not text:
        raise BadInput(f"{where}: the question is empty.")
    unanswerable = _flag(where, "unanswerable", values.get("unanswerable"))
    members = _several(where, "members", values.get("members"))
    golds = _several(where, "answer", values.get("answers") or values.get("answer"))
    golds = golds or ((", ".join(members),) if members else ())
    if not golds and not unanswerable:
        raise BadInput(f"{where}: {text!r} has no answer; give one, or set unanswerable to yes.")
    split = _string(where, "split", values.get("split")).strip()
    if split and split not in SPLITS:
        raise BadInput(f"{where}: there is no split {split!r}; the splits are {', '.join(SPLITS)}.")
    return QuestionRow(
        where,
        text,
        ("unknown",) if unanswerable else golds,
        tuple(_key(where, key) for key in _several(where, "keys", values.get("keys"))),
        _several(where, "support", values.get("support")),
        folded(_string(where, "group", values.get("group"))),
        split,
        unanswerable,
        folded(_string(where, "class", values.get("class"))) or "corpus",
        folded(_string(where, "template", values.get("template"))) or "corpus",
        members,
    )


def _string(where: str, name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(f"{where}: {name} must be text.")
    return str(value)


def _several(where: str, name: str, value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else _string(where, name, value).split("|")
    return tuple(dict.fromkeys(part for part in (folded(_string(where, name, part)) for part in parts) if part))


def _key(where: str, key: str) -> Key:
    kind, colon, value = key.partition(":")
    if not (colon and kind.strip() and value.strip()):
        raise BadInput(f"{where}: a key is written kind:value, not {key!r}.")
    return Key(kind.strip(), value.strip())


def _flag(where: str, name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    said = _string(where, name, value).strip().lower()
    if said not in (*_YES, *_NO):
        raise BadInput(f"{where}: {name} is yes or no, not {said!r}.")
    return said in _YES
