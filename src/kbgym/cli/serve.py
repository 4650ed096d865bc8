"""`kbgym serve`: a store for agents, over MCP on standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbgym import __version__
from kbgym.cli.common import STORE, emit, output_options, progress, search_options, serving_options, serving_settings
from kbgym.cli.settings import Command, options, place
from kbgym.cli.spending import Spending, spending_options, training_plan
from kbgym.errors import BadInput, Missing
from kbgym.gym.tools import Role
from kbgym.sanitize import number_in
from kbgym.search.base import SearchKind
from kbgym.trace.url import is_url

if TYPE_CHECKING:
    from kbgym.serving.learning.learner import Online
    from kbgym.serving.mcp_tools import Opened
    from kbgym.trace.live import LiveStore

TOKENS = "tokens.jsonl"


@click.command("serve", cls=Command)
@place("STORE", type=STORE)
@click.option("--mcp", "over_mcp", is_flag=True, help="MCP on standard input and output, for one client.")
@click.option("--http", "address", metavar="HOST:PORT", help="HTTP and, at /mcp, streamable HTTP MCP.")
@click.option("--role", type=click.Choice(["reader", "curator"]), default="reader", show_default=True)
@click.option("--client", default="stdio", show_default=True, help="The client's name in the trace, with --mcp.")
@click.option("--question", help="With --mcp and --role reader: the question this session is to answer.")
@click.option(
    "--tokens",
    type=click.Path(path_type=Path, dir_okay=False),
    help="[default: tokens.jsonl in STORE, or here for a database]",
)
@click.option("--new-token", metavar="NAME", help="Make a token for a client of this name and --role, and stop.")
@click.option("--expires", metavar="DATE", default="", help="The last day the new token is good for.")
@click.option("--revoke", "revoked", metavar="NAME", help="Take a client's token away, also of a running server.")
@click.option("--no-auth", is_flag=True, help="No tokens: everybody on this machine has --role. Loopback only.")
@click.option("--view", "with_view", is_flag=True, help="Also the viewer, at /view/; for a folder, with --no-auth.")
@options("gate", default=0)
@options("held_out", "strategy", "embedder")
@options("rate_limit", default=100.0)
@options("max_sessions", default=64)
@serving_options
@spending_options
@search_options
@output_options
def command(
    place: str,
    over_mcp: bool,
    address: str | None,
    role: Role,
    client: str,
    question: str | None,
    tokens: Path | None,
    new_token: str | None,
    expires: str,
    revoked: str | None,
    no_auth: bool,
    with_view: bool,
    gate: int,
    held_out: Path | None,
    strategy: str | None,
    rate_limit: float,
    max_sessions: int,
    embedder: str | None,
    search: SearchKind | None,
    as_json: bool,
    quiet: bool,
    **who: Any,
) -> None:
    """Serve a STORE to agents, and keep it learning from the golds they give.

    \b
    Examples:
      kbgym serve runs/first --mcp --role reader
      kbgym serve runs/first --new-token ada --role curator
      kbgym serve runs/first --http 127.0.0.1:8765 --gate 20
    """
    spending = Spending(who)
    if tokens is None and is_url(place):
        tokens = Path(TOKENS)  # a database has no folder for them
    file = tokens or Path(place) / TOKENS
    if new_token is not None:
        from kbgym.serving.tokens import new_token as make

        made = make(file, new_token, role, expires)
        text = f"{made}\nThat is the {role} token of {new_token}; it is not kept and cannot be shown again."
        emit({"name": new_token, "role": role, "token": made, "tokens": str(file)}, as_json, quiet, text)
        return
    if revoked is not None:
        from kbgym.serving.tokens import revoke

        revoke(file, revoked)
        emit({"revoked": revoked, "tokens": str(file)}, as_json, quiet, f"{revoked} has no token any more.")
        return
    if over_mcp == (address is not None):
        raise BadInput("say how to serve: --mcp, or --http HOST:PORT.")
    if address is not None:
        host, port = _address(address)
        _check_open(host, file, no_auth)
    if with_view and (address is None or not no_auth or is_url(place)):
        # A browser sends no token when somebody follows a link.
        raise BadInput("--view is for a folder served with --http and --no-auth; `kbgym view` needs no server.")
    if question is not None and role != "reader":
        raise BadInput("a question is answered by a reader; use --role reader.")

    given = {**who, "strategy": strategy, "embedder": embedder, "search": search}
    with contextlib.ExitStack() as until_the_end:

        def opened() -> Online:
            from kbgym.serving.learning.setup import open_online

            settings, trusted = serving_settings(place, given)
            names = (settings.reader, settings.curator, settings.judge)
            models = until_the_end.enter_context(spending.models(names, None))
            spending.confirm_all(training_plan(settings, 1, gate), "for every question it is asked")
            with progress("embedding", quiet or as_json or over_mcp) as tick:
                how = (gate, held_out, tick)
                return open_online(place, settings, embedder, *how, trusted=trusted, models=models)

        if over_mcp:
            asyncio.run(_stdio(place, opened, given, role, client, question))
        else:
            _check_installed()
            shares = {"requests": rate_limit, "sessions": max_sessions}
            _http(opened(), host, port, None if no_auth else file, role, with_view, shares, as_json, quiet)


def _check_installed() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise Missing(
            f"serving needs {error.name}, which is not installed; run `pip install 'kbgym[serve]'`."
        ) from None


def _address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    number = number_in(port)
    if not host or number is None or number > 65535:
        raise BadInput(f"--http takes HOST:PORT, such as 127.0.0.1:8765, not {address!r}.")
    return host, number


def _check_open(host: str, tokens: Path, no_auth: bool) -> None:
    """Nobody gets in without a token, except on this machine and on request."""
    loopback = host in ("localhost", "127.0.0.1", "::1")
    if no_auth and not loopback:
        raise BadInput(f"--no-auth is for loopback only; {host} can be reached by others.")
    if not no_auth and not tokens.exists():
        raise BadInput(
            f"there are no tokens in {tokens}; make one with --new-token NAME, or use --no-auth on loopback."
        )


async def _stdio(
    place: str,
    opened: Callable[[], Online],
    given: dict[str, Any],
    role: Role,
    client: str,
    question: str | None,
) -> None:
    """Nothing is loaded here that the first answers do not need: agents do not wait for a server's tools."""
    from kbgym.serving.stdio import serve_stdio

    def looking() -> LiveStore:
        settings, _ = serving_settings(place, given)
        from kbgym.serving.learning.setup import open_live

        return open_live(place, settings=settings, embedder=given["embedder"], write=False)

    async def opening() -> Opened:
        online: Online | None = None
        if role == "reader" and question is None:
            live = await asyncio.to_thread(looking)
        else:
            online = await asyncio.to_thread(opened)
            live = online.live
        from kbgym.serving.results import Results
        from kbgym.serving.sessions import ClientSession
        from kbgym.serving.tool_calls import Caller

        if online is not None:
            online.start()
        asked = (await online.open(question, client)).id if online is not None and question is not None else None
        return Results(live), online, Caller(role, ClientSession(client), asked)

    await serve_stdio(role, question is not None, opening, __version__)


def _http(
    online: Online,
    host: str,
    port: int,
    tokens: Path | None,
    role: Role,
    with_view: bool,
    shares: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    from kbgym.serving.http import make_app
    from kbgym.serving.middleware import LOOPBACK, Quota
    from kbgym.serving.server import listen, serve
    from kbgym.serving.tokens import Client, Tokens
    from kbgym.viewer.app import make_viewer
    from kbgym.viewer.places import ViewedPlaces

    known = Tokens(tokens) if tokens is not None else None
    hosts = LOOPBACK if host in ("localhost", "127.0.0.1", "::1") else None
    view = make_viewer(ViewedPlaces([Path(online.live.where)])) if with_view else None
    local_client = Client("local", role)
    app = make_app(online.live, online, known, __version__, local_client, hosts, view, quota=Quota(**shares))
    listening, url = listen(host, port, 2048)
    about = "no token is needed" if known is None else f"{len(known)} tokens"
    text = f"{online.live.name} at {url} ({about}); API at {url}/openapi.json, MCP at {url}/mcp. Ctrl-C ends it."
    emit({"url": url, "documents": len(online.live.store), "tokens": known and len(known)}, as_json, quiet, text)
    online.warm()
    sys.setswitchinterval(0.0002)  # the embedding thread gives way to requests sooner
    gc.collect()
    gc.freeze()  # the store is not looked through for garbage again: that held requests up for 50 ms
    serve(app, listening, keep_alive=30, patience=5)
