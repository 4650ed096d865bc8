"""`kbgym serve`: a store for agents, over MCP on standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbgym import __version__
from kbgym.cli.common import STORE, emit, progress, say, verb
from kbgym.cli.settings import flags, options, place
from kbgym.cli.spending import Spending, spending_options, training_plan
from kbgym.errors import BadInput, InUse, Missing
from kbgym.gym.tools import Role
from kbgym.sanitize import number_in
from kbgym.trace import is_url, shown

if TYPE_CHECKING:  # keep imports few: agents that start a server wait for them
    from kbgym.serving.learning.learner import Online
    from kbgym.serving.learning.question_log import QuestionLog
    from kbgym.serving.mcp_tools import Opened
    from kbgym.trace.live import LiveStore
    from kbgym.training.run import Settings

TOKENS = "tokens.jsonl"
LOCAL = ("localhost", "127.0.0.1", "::1")

serving_options = flags(
    options("reader", "curator", "judge", "strategy", "embedder", "held_out"),
    options("gate", default=0),
    click.option("--trust", is_flag=True, help="Trust the agents that the folder names from now on."),
    spending_options,
)


@verb("serve")
@place("STORE", type=STORE)
@options("client", "expires", "question", "tokens", "cors", "rate_limit", "max_sessions", "search")
@serving_options
def command(
    place: str,
    over_mcp: bool,
    address: str | None,
    role: Role,
    new_token: str | None,
    revoked: str | None,
    no_auth: bool,
    tokens: Path | None,
    expires: str,
    **given: Any,
) -> None:
    """Serve a STORE to agents. The store learns from the expected answers and corrections they give.

    \b
    Examples:
      kbgym serve runs/first --mcp --role reader
      kbgym serve runs/first --new-token ada --role curator
      kbgym serve runs/first --http 127.0.0.1:8765 --gate 20
    """
    file = tokens or (Path(TOKENS) if is_url(place) else Path(place) / TOKENS)
    if new_token is not None or revoked is not None:
        _change_tokens(file, new_token, revoked, role, expires)
        return
    question, client = given.pop("question"), given.pop("client")
    how = {name: given.pop(name) for name in ("cors", "rate_limit", "max_sessions")}
    if over_mcp == (address is not None):
        raise BadInput("say how to serve: --mcp, or --http HOST:PORT.")
    if question is not None and role != "reader":
        raise BadInput("a question is answered by a reader; use --role reader.")
    spending = Spending(given)
    with contextlib.ExitStack() as until_the_end:

        def opened() -> Online:
            cost = (1, given["gate"], "for every question it is asked")
            return until_the_end.enter_context(opened_online(place, given, spending, *cost))

        if address is None:
            asyncio.run(_stdio(place, opened, given, role, client, question))
            return
        host, port = _address(address)
        _check_open(host, file, no_auth)
        check_installed()
        _http(opened(), host, port, None if no_auth else file, role, how)


def serving_settings(place: str, given: Mapping[str, Any]) -> tuple[Settings, frozenset[str]]:
    """Return the settings of a store, overridden by the given ones, and the agents that may run."""
    from kbgym.agents.trust import allowed
    from kbgym.api import open
    from kbgym.worlds.kinds import why_agent

    roles = ("reader", "curator", "judge")
    changes = {name: value for name, value in given.items() if name not in ("trust", "gate", "held_out")}
    with open(place, **changes) as opened:
        settings = opened.settings
        unnamed = not (given["reader"] and given["curator"])
        # A trace that lost all its events is not new, and raises when they are read.
        if opened.is_new and unnamed and opened.world is not None and not opened.events:
            say(why_agent(opened.world))
    names = [getattr(settings, role) for role in roles]
    return settings, allowed(shown(place), names, [given[role] for role in roles], given["trust"])


@contextmanager
def opened_online(
    place: str,
    given: Mapping[str, Any],
    spending: Spending,
    lessons: int,
    exams: int,
    each: str = "",
    questions: QuestionLog | None = None,
    agenda: bool = False,
) -> Iterator[Online]:
    """Open a store for questions and edits, after the cost of the lessons and exam passes was confirmed."""
    from kbgym.serving.learning.setup import open_online

    settings, trusted = serving_settings(place, given)
    with spending.models((settings.reader, settings.curator, settings.judge), None) as models:
        spending.confirm_all(training_plan(settings, lessons, exams), each)
        with progress("embedding") as tick:
            how = (given["embedder"], given["gate"], given["held_out"], tick, questions, trusted, models, agenda)
            online = open_online(place, settings, *how)
        yield online


def _change_tokens(file: Path, name: str | None, revoked: str | None, role: Role, expires: str) -> None:
    from kbgym.serving.tokens import new_token, revoke

    if name is not None:
        made = new_token(file, name, role, expires)
        text = f"{made}\nThat is the {role} token of {name}; it is not kept and cannot be shown again."
        emit({"name": name, "role": role, "token": made, "tokens": str(file)}, text)
    elif revoked is not None:
        revoke(file, revoked)
        emit({"revoked": revoked, "tokens": str(file)}, f"{revoked} has no token any more.")


def check_installed() -> None:
    """Raise Missing if the packages of a server are not installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        missing = f"a server needs {error.name}, which is not installed"
        raise Missing(f"{missing}; run `pip install 'kbgym[serve]'`.") from None


def _address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    number = number_in(port)
    if not host or number is None or number > 65535:
        raise BadInput(f"--http takes HOST:PORT, such as 127.0.0.1:8765, not {address!r}.")
    return host, number


def _check_open(host: str, tokens: Path, no_auth: bool) -> None:
    """Raise BadInput if clients on other machines could connect without a token."""
    if no_auth and host not in LOCAL:
        raise BadInput(f"--no-auth is for loopback only; {host} can be reached by others.")
    if not no_auth and not tokens.exists():
        make = "make one with --new-token NAME, or use --no-auth on loopback"
        raise BadInput(f"there are no tokens in {tokens}; {make}.")


async def _stdio(
    place: str, opened: Callable[[], Online], given: dict[str, Any], role: Role, client: str, question: str | None
) -> None:
    """Serve one client. Modules load after the first replies, because agents do not wait for a slow tool list."""
    from kbgym.serving.stdio import serve_stdio

    def reading() -> LiveStore:
        settings, _ = serving_settings(place, given)
        from kbgym.serving.learning.setup import open_live

        return open_live(place, settings=settings, embedder=given["embedder"], write=False)

    async def opening() -> Opened:
        online: Online | None = None
        if role == "curator" or question is not None:
            # If another session is the writer, this one is read-only, and reports that on edits.
            with contextlib.suppress(InUse):
                online = await asyncio.to_thread(opened)
        live = online.live if online is not None else await asyncio.to_thread(reading)
        from kbgym.serving.clients import ClientSession, StoreResults
        from kbgym.serving.tool_calls import Caller

        if online is not None:
            online.start()
        asked = (await online.open(question, client)).id if online is not None and question is not None else None
        return StoreResults(live), online, Caller(role, ClientSession(client), asked)

    await serve_stdio(role, question is not None, opening, __version__)


def _http(online: Online, host: str, port: int, tokens: Path | None, role: Role, how: Mapping[str, Any]) -> None:
    from kbgym.serving.http import make_app
    from kbgym.serving.middleware import LOOPBACK, Quota
    from kbgym.serving.server import listen, serve
    from kbgym.serving.tokens import Client, Tokens

    known = Tokens(tokens) if tokens is not None else None
    hosts = LOOPBACK if host in LOCAL else None
    quota = Quota(how["rate_limit"], how["max_sessions"])
    cors = frozenset((how["cors"] or "").split(",")) - {""}
    local_client = Client("local", role)
    app = make_app(online.live, online, known, __version__, local_client, hosts, quota=quota, cors=cors)
    listening, url = listen(host, port, 2048)
    about = "no token is needed" if known is None else f"{len(known)} token{'s' if len(known) != 1 else ''}"
    text = f"{online.live.name} at {url} ({about}); API at {url}/openapi.json, MCP at {url}/mcp. Ctrl-C ends it."
    emit({"url": url, "documents": len(online.live.store), "tokens": known and len(known)}, text)
    online.warm()
    sys.setswitchinterval(0.0002)  # the embedding thread yields to requests sooner
    gc.collect()
    gc.freeze()  # the store is excluded from garbage collection, which blocked requests for 50 ms
    serve(app, listening, keep_alive=30, patience=5)
