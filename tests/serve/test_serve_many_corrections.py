"""Two hundred corrections of dates: each answers its question, none disturbs another, and all can be undone.

$KBGYM_PAGES names a folder of pages with releases in their front matter to use instead of the generated ones.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
import yaml
from serving import opened, replayed

from kbgym.api import import_corpus
from kbgym.gym.actions import Search
from kbgym.serving.clients import ClientSession, act
from kbgym.serving.corrections import teach, undo
from kbgym.serving.learning.learner import Online
from kbgym.training.run import Settings

N = 200
Fact = tuple[str, str, str]  # a question, the date the pages state, the date that is right


def pages(folder: Path) -> Path:
    if given := os.environ.get("KBGYM_PAGES"):
        return Path(given)
    folder.mkdir()
    dice = random.Random(3)
    for number in range(90):
        name = "".join(
            dice.choice(part) for part in (("Al", "Be", "Ka", "Zo"), ("ri", "mu", "to"), ("don", "lex"))
        ) + str(number)
        releases = [
            {"releaseCycle": f"{cycle}.{number % 7}", "eol": f"20{dice.randint(20, 34)}-{dice.randint(1, 12):02}-15"}
            for cycle in range(1, 6)
        ]
        head = yaml.safe_dump({"title": name, "releases": releases})
        (folder / f"{name}.md").write_text(f"---\n{head}---\n\n{name} is a program. It is kept by its users.\n")
    return folder


def facts_of(folder: Path) -> list[Fact]:
    found = []
    for path in sorted(folder.glob("*.md")):
        head = yaml.safe_load(path.read_text().split("---\n")[1])
        for release in head.get("releases", ()):
            if len(date := str(release.get("eol"))) == 10:
                asked = f"On what day does {head['title']} {release['releaseCycle']} reach its end of life (eol)?"
                found.append((asked, date, f"{int(date[:4]) + 20}{date[4:8]}28"))
    random.Random(5).shuffle(found)
    return found


async def first_page(online: Online, question: str) -> list[tuple[str, str]]:
    step = (await act(online.live, ClientSession("rex"), Search(question), "reader")).step
    return [(document.id, document.text) for document in step.observation.documents]


async def stated(online: Online, facts: list[Fact]) -> float:
    """Return the share of facts whose date is on the first page."""
    seen = [any(fact[1] in text for _, text in await first_page(online, fact[0])) for fact in facts]
    return sum(seen) / len(seen)


@pytest.mark.slow
def test_two_hundred_corrections(tmp_path: Path) -> None:
    folder = pages(tmp_path / "pages")
    facts = facts_of(folder)
    assert len(facts) > 2 * N
    wrong, others = facts[:N], facts[N : 2 * N]
    import_corpus(folder, out=tmp_path / "world")

    async def work() -> None:
        embedder = "all-MiniLM-L6-v2" if "KBGYM_PAGES" in os.environ else "hash"
        settings = Settings(embedder=embedder, search="hybrid", ranking="slot", reader="general", curator="general")
        async with opened(tmp_path / "world", settings) as online:
            online.start()
            before, recall = online.live.store.fingerprint, await stated(online, others)
            lessons = {}
            for question, date, right in wrong:
                said = {"question": question, "answers": [right], "answer": date}
                lesson = (await teach(online, ClientSession("ada"), said)).lesson
                assert lesson is not None, question
                lessons[question] = lesson
            answered, topped, superseding = 0, 0, 0
            for question, lesson in lessons.items():
                ids = [id for id, _ in await first_page(online, question)]
                answered += lesson.document in ids
                topped += ids[0] in lesson.supersedes
                superseding += bool(lesson.supersedes)
            now = await stated(online, others)
            print(f"answered {answered}, topped {topped}, superseding {superseding}, recall {recall:.3f} to {now:.3f}")
            assert (answered, topped, superseding) == (N, 0, N)
            assert abs(now - recall) <= 0.02
            for lesson in random.Random(7).sample(list(lessons.values()), N):
                await undo(online, ClientSession("ada"), {"iteration": lesson.iteration})
            assert online.live.store.fingerprint == before

    asyncio.run(work())
    assert replayed(tmp_path / "world")
