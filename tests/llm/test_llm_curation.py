"""A model's alias, played back: other wordings of a question find the evidence on the first page and are answered.

The replies in the cassette were written by hand for the requests as the protocol sends them. When the prompts change,
write them anew: python tests/llm/test_llm_curation.py
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from fault_server import FaultServer

from kbgym.agents.general.reader import GeneralReader
from kbgym.api.factory import embedder_named
from kbgym.corpus.documents import ReadingOptions
from kbgym.corpus.importing import make
from kbgym.gym.actions import Action, Add, Done, LinkMany, Search
from kbgym.gym.observations import documents
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import Row, examine
from kbgym.training.run import Settings
from kbgym.worlds.world import World

CASSETTE = Path(__file__).with_name("curation.cassette.jsonl")
BOATS = "Wren Gull Tern Skua Eider Plover Petrel Curlew".split()
ASKED = [
    ("Until when may the launch Wren 2 stay in use?", "train"),
    ("Which day ends the use of the small boat that pilots have?", "test_in"),
    ("On what day do the pilots lose their second motor boat?", "eval"),
]
EVIDENCE = "licences: number 2: built: 1972; begins: 1999-03-01; ends: 2031-05-04"
REPLIES = [
    Search("Wren licences number 2 ends 2031-05-04"),
    Add(
        "Day until which the launch Wren 2 may stay in use. Wren: licences: number 2 … ends: ___. Motor boat of the "
        "pilots, the second Wren, a small harbour launch; end of its licence, last day, when do the pilots lose it."
    ),
    LinkMany("n1", ()),
    Done(),
]


def scene(folder: Path) -> World:
    """Pages of eight boats with four licences each, which speak of days, pilots and motor boats as much as the Wren."""
    pages = folder / "pages"
    pages.mkdir()
    for at, name in enumerate(BOATS):
        ends = [f"20{31 + at:02}-0{number + 3}-0{number + 2}" for number in range(1, 5)]
        licences = "\n".join(
            f"- number: {number}\n  built: {1970 + number}\n  begins: 1999-0{number + 1}-01\n  ends: {end}"
            for number, end in enumerate(ends, 1)
        )
        other = "A motor boat. On a day with fog the pilots lose no second." if name != "Wren" else "It has a red hull."
        (pages / f"{name}.md").write_text(f"---\ntitle: {name}\nlicences:\n{licences}\n---\n# {name}\n\n{other}\n")
    lines = [
        {"question": text, "answer": "2031-05-04", "support": ["ends: 2031-05-04"], "split": split}
        for text, split in ASKED
    ]
    questions = folder / "questions.jsonl"
    questions.write_text("\n".join(map(json.dumps, lines)))
    return make([pages], questions, ReadingOptions()).world


def exam(store: Store, world: World) -> Row:
    engine = engine_for(store, embedder_named("hash"), search="words")
    settings = Settings(search="words", observations="rich", ranking="slot")
    return asyncio.run(examine(store, engine, world.split("test_in"), GeneralReader, settings=settings))[0]


def train(folder: Path, world: World, curator: str, *more: str) -> Path:
    world.save(folder / "world")
    settings = "--strategy class --epochs 1 --reader general --search words --embedder hash --gate 0".split()
    command = ["-m", "kbgym", "train", "--world", "world", "--out", "run", *settings, "--curator", curator, *more]
    subprocess.run([sys.executable, *command], cwd=folder, check=True, capture_output=True)
    return folder / "run"


def test_an_alias_of_a_model_serves_another_wording(tmp_path: Path) -> None:
    world = scene(tmp_path)
    flat = exam(Store(source(one.id, one.text) for one in world.documents), world)
    assert flat.evidence is not None and 1 not in flat.evidence.seen and flat.f1 == 0.0
    trained = exam(StoreFolder(train(tmp_path, world, f"cassette:{CASSETTE}")).store(), world)
    assert trained.evidence is not None and trained.evidence.seen == (1,)
    assert (trained.answer, trained.actions) == ("2031-05-04", 2)


def replied(body: dict[str, Any]) -> Action:
    """Return the next reply; links lead to the document of the evidence, as it was shown."""
    shown = [str(message.get("content")) for message in body["messages"] if message["role"] == "tool"]
    action = REPLIES[len(shown)]
    if isinstance(action, LinkMany):
        (target,) = {id for text in shown for id, line in documents(text) if EVIDENCE in line}
        action = LinkMany("n1", (target,))
    return action


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, FaultServer(replied) as server:
        run = train(Path(place), scene(Path(place)), "llm:local/hand", "--base-url", server.url, "--yes")
        CASSETTE.write_bytes((run / "cassette.jsonl").read_bytes())
