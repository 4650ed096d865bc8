"""`kbgym play`: training or an exam with an agent that connects over MCP."""

from __future__ import annotations

import asyncio
import http.client
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from kbgym import __version__
from kbgym.agents.live import Conversation
from kbgym.agents.trust import PLAYED_LIVE
from kbgym.cli.common import say
from kbgym.cli.settings import Command, flags, option, options, place
from kbgym.errors import BadInput, Failed
from kbgym.gym.tools import Role

Work = Callable[[Conversation], Coroutine[Any, Any, str]]
_MARKED = "One conversation played all of it: its memory spans the questions, and it is pooled with nothing else."
over_mcp = flags(
    click.option("--mcp", is_flag=True, help="MCP on standard input and output, for one client."),
    click.option("--quiet", is_flag=True, help="No message at the end."),
)


@click.group("play")
def command() -> None:
    """Let an agent that connects over MCP play every question in turn.

    \b
    Example:
      kbgym play exam runs/first --set test_in --mcp
    """


@command.command("exam", cls=Command)
@place("STORE", name="store")
@click.option("--world", type=click.Path(path_type=Path), help="The world with the questions.  [a run's own]")
@options("set", default="test_in")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Rows as JSONL.  [a run keeps its own]")
@options("embedder", "forward_budget", "search")
@over_mcp
def exam_command(
    store: str, world: Path | None, set_name: str, out: Path | None, mcp: bool, quiet: bool, **given: Any
) -> None:
    """Examine the connected agent on a frozen STORE. Run the command again to resume with unanswered questions.

    \b
    Example:
      kbgym play exam runs/first --set test_in --mcp
      codex mcp add exam -- kbgym play exam /path/to/runs/first --mcp
    """

    async def work(conversation: Conversation) -> str:
        def opening() -> Any:
            from kbgym.api import open

            opened = open(store, world, **given)
            header = opened.exam_header(PLAYED_LIVE, set_name)
            file = out or opened.kept_place(header)
            if file is None:
                raise BadInput(f"{opened.name} cannot keep the rows; say where with --out FILE.")
            opened.embedded()
            return opened, header, file

        opened, header, file = await asyncio.to_thread(opening)
        from kbgym.agents.llm.prompting import skill_of

        reader = conversation.agent(skill_of("reader", **opened.told))
        exam = await opened.examine_async(reader, opened.questions(set_name), file, header=header, alone=False)
        opened.close()
        found = exam.summary
        return f"{opened.name} on {set_name}, n = {found.n}: F1 {found.f1:.3f}, {found.actions:.2f} actions; {file}"

    _played(mcp, ("reader",), work)


@command.command("train", cls=Command)
@place("WORLD", "world", "world", type=click.Path(path_type=Path, exists=True, file_okay=False))
@option("run", "--out", "out", required=True, help="The run folder; run again to resume.")
@options("training_questions", "seed", "strategy", "embedder", "forward_budget", "search")
@options("epochs", default=1)
@over_mcp
def train_command(world: Path, out: Path, mcp: bool, quiet: bool, **given: Any) -> None:
    """Train a store on a WORLD by the connected agent: it answers, sees the expected answer, and edits.

    \b
    Example:
      kbgym play train worlds/harbour --out runs/live --questions 10 --mcp
    """

    async def work(conversation: Conversation) -> str:
        def opening() -> Any:
            from kbgym.agents.llm.prompting import skill_of
            from kbgym.api import trainer_for
            from kbgym.api.factory import agents_named, training_settings
            from kbgym.training.run import Run
            from kbgym.worlds.kinds import description_for_prompt
            from kbgym.worlds.world import World

            loaded = World.load(world)
            chosen = {name: value for name, value in given.items() if value is not None}
            # No other agent is connected between lessons, so no evaluation is possible.
            settings = training_settings(loaded, out, reader=PLAYED_LIVE, curator=PLAYED_LIVE, eval=False, **chosen)
            run = Run.open_or_create(out, loaded, settings)
            about = description_for_prompt(loaded)
            reads = conversation.agent(skill_of("reader", about=description_for_prompt(loaded, keys=False)))
            curates = conversation.agent(skill_of("curator", settings.strategy, about))
            return trainer_for(run, agents_named(settings, None, reads, curates, loaded))

        trainer = await asyncio.to_thread(opening)
        await trainer.train()
        f1 = sum(grade.f1 for grade in trainer.grades) / max(1, len(trainer.grades))
        return f"{out}: {trainer.iteration} iterations, forward F1 {f1:.3f}, {trainer.store.links:,} links"

    _played(mcp, ("reader", "curator"), work)


def _played(mcp: bool, roles: tuple[Role, ...], work: Work) -> None:
    if not mcp:
        raise BadInput("say how the agent is connected: --mcp; a person at a terminal plays with --agent hand.")

    async def playing() -> str | None:
        from kbgym.serving.stdio import play_stdio

        conversation = Conversation(roles)
        return await play_stdio(conversation, lambda: work(conversation), __version__)

    if (said := asyncio.run(playing())) is None:
        raise Failed("the client left before the last question; run the same command again to go on.")
    say(f"{said}. {_MARKED}")


@command.command("bridge")
@click.argument("url")
def bridge_command(url: str) -> None:
    """Carry MCP between standard streams and URL, with the token in $KBGYM_TOKEN.

    \b
    Example:
      KBGYM_TOKEN=... kbgym play bridge http://127.0.0.1:8765/mcp
    """
    parts, token = urlsplit(url), os.environ.get("KBGYM_TOKEN", "")
    if parts.scheme != "http" or not parts.hostname:
        raise BadInput(f"the bridge goes to an http:// address, not {url!r}.")
    host, port, path = parts.hostname, parts.port or 80, parts.path or "/"
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    for line in filter(bytes.strip, sys.stdin.buffer):
        with closing(http.client.HTTPConnection(host, port)) as connection:
            try:
                connection.request("POST", path, line, headers)
                reply = connection.getresponse()
                body, is_open = reply.read(), reply.status not in (401, 403)
            except OSError:  # the pass is over
                is_open = False
        if not is_open:
            raise BadInput("the other end of the bridge is closed, or takes no token like this one.")
        if body:
            sys.stdout.buffer.write(body.replace(b"\n", b" ") + b"\n")
            sys.stdout.buffer.flush()
