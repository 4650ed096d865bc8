"""What `pw-generate` writes: articles.json and questions.json, read, checked and put into an order of our own.

The ids of its questions are new in every run and are not kept; articles are taken by title, questions by type and
text, so that two runs with one seed come to the same values. It does not know kinship or splits.


Runs the official generator in a folder of ours and checks that it made what it should.

Finds `pw-generate` beside this Python or on the PATH, needs SWI-Prolog for it, and says what to install when either is
not there. It does not read what was written beyond counting.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from kbgym.canonical import read_value
from kbgym.errors import BadInput, Damaged, Failed, Missing
from kbgym.worlds.phantomwiki.wiki import PREDICATES, STATED

_FACT = re.compile(r'(\w+)\("([^"]*)", "([^"]*)"\)\.')
_SENTENCE = re.compile(r"^(?!#)\S.*$", re.MULTILINE)


class ArticleSentence(msgspec.Struct, frozen=True):
    """One sentence of an article: what it tells (`kind`) of whom, and the people or the value it names."""

    kind: str
    subject: str
    values: tuple[str, ...]
    text: str


class Article(msgspec.Struct, frozen=True):
    """One entry of articles.json: the page of one person, and the same as facts."""

    title: str
    article: str
    facts: tuple[str, ...]

    def sentences(self) -> Iterator[ArticleSentence]:
        """Every line that is neither empty nor a heading, matched with the facts in the same order."""
        told: dict[str, list[str]] = {}
        for fact in self.facts:
            match = _FACT.fullmatch(fact)
            if match is None or (match[1] not in STATED and match[1] not in PREDICATES):
                raise Damaged(f"the article of {self.title} has a fact that cannot be read: {fact}")
            if match[2] != self.title:
                raise Damaged(f"the article of {self.title} has a fact about somebody else: {fact}")
            told.setdefault(PREDICATES.get(match[1], match[1]), []).append(match[3])
        lines = _SENTENCE.findall(self.article)
        if len(told) != len(lines):
            raise Damaged(f"the article of {self.title} has {len(lines)} sentences for {len(told)} kinds of fact.")
        for (kind, values), text in zip(told.items(), lines, strict=True):
            if kind not in STATED and len(values) != 1:
                raise Damaged(f"the article of {self.title} gives {len(values)} values of {kind}.")
            if any(name not in text for name in (self.title, *values)):
                raise Damaged(f"the sentence {text!r} does not say what the facts of {self.title} say of {kind}.")
            yield ArticleSentence(kind, self.title, tuple(values), text)


class Generated(msgspec.Struct, frozen=True):
    """One entry of questions.json, as far as it is needed."""

    question: str
    answer: tuple[str, ...]
    type: int


def read_articles(folder: Path) -> tuple[Article, ...]:
    """The articles by title; every person named has a page, and only one."""
    articles: list[Article] = sorted(read_value(folder / "articles.json", list[Article]), key=lambda one: one.title)
    if not articles:
        raise Damaged(f"{folder / 'articles.json'} has no article.")
    titles = [article.title for article in articles]
    for title, after in pairwise(titles):
        if title == after:
            raise Damaged(f"{folder / 'articles.json'}: there are two articles of {title}.")
    known = set(titles)
    for article in articles:
        for sentence in article.sentences():
            strangers = [name for name in sentence.values if sentence.kind in STATED and name not in known]
            if strangers:
                raise Damaged(f"the article of {article.title} names {strangers[0]}, who has no article.")
    return tuple(articles)


def read_questions(folder: Path) -> tuple[Generated, ...]:
    """The questions by type and text; the answers sorted."""
    questions: Sequence[Generated] = read_value(folder / "questions.json", list[Generated])
    tidy = [msgspec.structs.replace(one, answer=tuple(sorted(set(one.answer)))) for one in questions]
    return tuple(sorted(tidy, key=lambda one: (one.type, one.question, one.answer)))


# (seed, family trees, questions a type): articles, sentences, questions. The paper's world.
KNOWN = {(1, 16, 60): (405, 3403, 480)}
TYPES = 8
SECONDS = 1800

INSTALL = (
    "install SWI-Prolog (Debian and Ubuntu: apt-get install swi-prolog-nox; macOS: brew install swi-prolog), then the "
    "package: pip install phantom-wiki==1.0.3 on Python 3.12, or on Python 3.11 "
    "pip install --no-deps --ignore-requires-python phantom-wiki==1.0.3 && "
    "pip install networkx nltk numpy pandas pydot pyswip tabulate termcolor tqdm "
    "(scripts/install_phantomwiki.sh does both pip steps); or bring an output folder with --from."
)


def generator() -> str:
    """The path of `pw-generate`; Missing says how to get what is not there."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    command = shutil.which("pw-generate", path=beside)
    if command is None:
        raise Missing(f"PhantomWiki's generator pw-generate is not installed: {INSTALL}")
    if shutil.which("swipl") is None:
        raise Missing(f"PhantomWiki's generator needs SWI-Prolog, and there is no swipl on the PATH: {INSTALL}")
    return command


def generate(folder: Path, seed: int, trees: int, per_type: int) -> None:
    """Fill a folder with articles.json and questions.json. The output's own words are kept in pw-generate.log."""
    for name, value in (("--trees", trees), ("--per-type", per_type)):
        if value < 1:
            raise BadInput(f"{name} takes a number of at least 1, not {value}.")
    arguments = [generator(), "-od", str(folder), "--seed", str(seed)]
    arguments += ["--num-family-trees", str(trees), "--num-questions-per-type", str(per_type)]
    arguments += ["--article-format", "json", "--question-format", "json"]
    log = folder / "pw-generate.log"
    with log.open("wb") as out:
        try:
            done = subprocess.run(arguments, stdout=out, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"pw-generate was still running after {SECONDS} seconds and was ended.") from error
        except OSError as error:
            raise Failed(f"pw-generate could not be started: {error}.") from error
    if done.returncode:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise Failed(f"pw-generate ended with code {done.returncode}: {said[-1] if said else 'it said nothing'}.")


def check(seed: int, trees: int, per_type: int, made: tuple[int, int, int]) -> None:
    """That a generated output has the size it must have: always 8 types, and all three counts where they are known."""
    wanted = KNOWN.get((seed, trees, per_type), (made[0], made[1], TYPES * per_type))
    if made != wanted:
        raise Failed(
            f"pw-generate made {made[0]} articles, {made[1]} sentences and {made[2]} questions instead of "
            f"{wanted[0]}, {wanted[1]} and {wanted[2]}: is it phantom-wiki 1.0.3?"
        )
