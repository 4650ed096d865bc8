"""Playing by hand through a folder: what is asked is what a model would be sent, and only a valid call counts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from kbgym.agents.human import hand_agent
from kbgym.agents.llm.prompting import skill_of
from kbgym.gym.actions import Answer, Search
from kbgym.gym.policy import Forward, Turn, View

SKILL = skill_of("reader", about="Sentences about boats.")


async def replying(folder: Path, number: int, *replies: object) -> dict[str, object]:
    """Answer a request as soon as it is there, again after every error."""
    asked, error = folder / f"{number:04}.request.json", folder / f"{number:04}.error.txt"
    while not asked.exists():
        await asyncio.sleep(0.01)
    for reply in replies:
        error.unlink(missing_ok=True)
        (folder / f"{number:04}.reply.json").write_text(json.dumps(reply))
        if reply is not replies[-1]:
            while not error.exists():
                await asyncio.sleep(0.01)
    return dict(json.loads(asked.read_text()))


def test_a_pass_through_a_folder(tmp_path: Path) -> None:
    async def work() -> None:
        policy = hand_agent(f"hand:{tmp_path}", SKILL)()
        view = View("reader", Forward("Whose boat is it?"), (), 15)
        playing = asyncio.create_task(policy.act(view))
        asked = await replying(tmp_path, 1, {"tool": "search", "arguments": {"query": "boat"}})
        assert await playing == Search("boat")
        assert asked["system"] == SKILL.text and "Sentences about boats." in SKILL.text
        assert asked["tail"] == "Actions left: 15." and "Whose boat is it?" in str(asked["messages"])
        turns = (Turn(Search("boat"), "[d1] The boat is Ada's."),)
        playing = asyncio.create_task(policy.act(View("reader", Forward("Whose boat is it?"), turns, 14)))
        bad = (
            "nonsense",
            {"tool": "add", "arguments": {"text": "x"}},
            {"tool": "answer", "arguments": {"text": "Ada"}},
        )
        asked = await replying(tmp_path, 2, *bad)
        assert await playing == Answer("Ada"), "what is no reader's action is asked for again"
        assert "[d1] The boat is Ada's." in str(asked["messages"])

    asyncio.run(asyncio.wait_for(work(), 30))


def test_numbers_go_on_where_an_earlier_session_stopped(tmp_path: Path) -> None:
    (tmp_path / "0041.request.json").write_text("{}")

    async def work() -> None:
        policy = hand_agent(f"hand:{tmp_path}", SKILL)()
        playing = asyncio.create_task(policy.act(View("reader", Forward("Who?"), (), 15)))
        await replying(tmp_path, 42, {"tool": "answer", "arguments": {"text": "Ada"}})
        assert await playing == Answer("Ada")

    asyncio.run(asyncio.wait_for(work(), 30))
