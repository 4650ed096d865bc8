"""`kbgym serve`: a store for agents, over MCP on standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbgym import __version__
from kbgym.cli.common import STORE, emit, progress, search_options, serving_options, serving_settings, verb
from kbgym.cli.settings import options, place
from kbgym.cli.spending import Spending, spending_options, training_plan
from kbgym.errors import BadInput, InUse, Missing
from kbgym.gym.tools import Role
from kbgym.sanitize import number_in
from kbgym.trace import is_url

if TYPE_CHECKING:
    from kbgym.serving.learning.learner import Online
    from kbgym.serving.mcp_tools import Opened
    from kbgym.trace.live import LiveStore

TOKENS = "tokens.jsonl"


@verb("serve")
@place("STORE", type=STORE)
@click.option("--mcp", "over_mcp", is_flag=True, help="MCP on standard input and output, for one client.")
@click.option("--http", "address", metavar="HOST:PORT", help="HTTP and, at /mcp, streamable HTTP MCP.")
@click.option("--role", type=click.Choice(["reader", "curator"]), default="reader", show_default=True)
@click.option("--new-token", metavar="NAME", help="Create a token for a client with this name and --role, and exit.")
@click.option("--revoke", "revoked", metavar="NAME", help="Revoke a client's token, also on a running server.")
@click.option("--no-auth", is_flag=True, help="Accept every client on this machine with --role. Loopback only.")
@options("view", default=False)
@options("gate", default=0)
@options("client", default="stdio")
@options("expires", default="")
@options("question", "tokens", "cors", "held_out", "strategy", "embedder")
@options("rate_limit", default=100.0)
@options("max_sessions", default=64)
@serving_options
@spending_options
@search_options
def command(
    place: str,
    over_mcp: bool,
    address: str | None,
    role: Role,
    new_token: str | None,
    revoked: str | None,
    no_auth: bool,
    view: bool,
    **given: Any,
) -> None:
    """Serve a STORE to agents. The store learns from the expected answers and corrections they give.

    \b
    Examples:
      kbgym serve runs/first --mcp --role reader
      kbgym serve runs/first --new-token ada --role curator
      kbgym serve runs/first --http 127.0.0.1:8765 --gate 20
    """
    spending = Spending(given)
    file = given.pop("tokens") or (Path(TOKENS) if is_url(place) else Path(place) / TOKENS)
    expires, question = given.pop("expires"), given.pop("question")
    if new_token is not None or revoked is not None:
        _change_tokens(file, new_token, revoked, role, expires)
        return
    if over_mcp == (address is not None):
        raise BadInput("say how to serve: --mcp, or --http HOST:PORT.")
    if view and (address is None or not no_auth or is_url(place)):
        # A browser sends no token when a user follows a link.
        raise BadInput("--view is for a folder served with --http and --no-auth; `kbgym view` needs no server.")
    if question is not None and role != "reader":
        raise BadInput("a question is answered by a reader; use --role reader.")
    client, cors = given.pop("client"), given.pop("cors") or ""
    shares = {"requests": given.pop("rate_limit"), "sessions": given.pop("max_sessions")}
    with contextlib.ExitStack() as until_the_end:
        opened = partial(_opened, place, given, spending, until_the_end)
        if address is None:
            asyncio.run(_stdio(place, opened, given, role, client, question))
            return
        host, port = _address(address)
        _check_open(host, file, no_auth)
        _check_installed()
        options = {"quota": shares, "cors": frozenset(cors.split(",")) - {""}, "view": view}
        _http(opened(), host, port, None if no_auth else file, role, options)


def _change_tokens(file: Path, name: str | None, revoked: str | None, role: Role, expires: str) -> None:
    from kbgym.serving.tokens import new_token, revoke

    if name is not None:
        made = new_token(file, name, role, expires)
        text = f"{made}\nThat is the {role} token of {name}; it is not kept and cannot be shown again."
        emit({"name": name, "role": role, "token": made, "tokens": str(file)}, text)
    elif revoked is not None:
        revoke(file, revoked)
        emit({"revoked": revoked, "tokens": str(file)}, f"{revoked} has no token any more.")


def _opened(place: str, given: dict[str, Any], spending: Spending, until_the_end: contextlib.ExitStack) -> Online:
    """Open the store for questions and edits, after its costs were confirmed."""
    from kbgym.serving.learning.setup import open_online

    gate = given["gate"]
    settings, trusted = serving_settings(place, {k: v for k, v in given.items() if k not in ("gate", "held_out")})
    models = until_the_end.enter_context(spending.models((settings.reader, settings.curator, settings.judge), None))
    spending.confirm_all(training_plan(settings, 1, gate), "for every question it is asked")
    with progress("embedding") as tick:
        how = (gate, given["held_out"], tick)
        return open_online(place, settings, given["embedder"], *how, trusted=trusted, models=models)


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
    """Raise BadInput if clients on other machines could connect without a token."""
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
    """Serve one client. Modules load after the first replies, because agents do not wait for a slow tool list."""
    from kbgym.serving.stdio import serve_stdio

    def reading() -> LiveStore:
        chosen = {name: value for name, value in given.items() if name not in ("gate", "held_out")}
        settings, _ = serving_settings(place, chosen)
        from kbgym.serving.learning.setup import open_live

        return open_live(place, settings=settings, embedder=given["embedder"], write=False)

    async def opening() -> Opened:
        online: Online | None = None
        if role == "reader" and question is None:
            live = await asyncio.to_thread(reading)
        else:
            try:
                online = await asyncio.to_thread(opened)
                live = online.live
            except InUse:  # another session is the writer; this one is read-only, and reports that on edits
                live = await asyncio.to_thread(reading)
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
    options: dict[str, Any],
) -> None:
    from kbgym.serving.http import make_app
    from kbgym.serving.middleware import LOOPBACK, Quota
    from kbgym.serving.server import listen, serve
    from kbgym.serving.tokens import Client, Tokens
    from kbgym.viewer.app import make_viewer
    from kbgym.viewer.places import ViewedPlaces

    known = Tokens(tokens) if tokens is not None else None
    hosts = LOOPBACK if host in ("localhost", "127.0.0.1", "::1") else None
    view = make_viewer(ViewedPlaces([Path(online.live.where)])) if options["view"] else None
    local_client = Client("local", role)
    quota = Quota(**options["quota"])
    app = make_app(
        online.live, online, known, __version__, local_client, hosts, view, quota=quota, cors=options["cors"]
    )
    listening, url = listen(host, port, 2048)
    about = "no token is needed" if known is None else f"{len(known)} token{'s' if len(known) != 1 else ''}"
    text = f"{online.live.name} at {url} ({about}); API at {url}/openapi.json, MCP at {url}/mcp. Ctrl-C ends it."
    emit({"url": url, "documents": len(online.live.store), "tokens": known and len(known)}, text)
    online.warm()
    sys.setswitchinterval(0.0002)  # the embedding thread yields to requests sooner
    gc.collect()
    gc.freeze()  # the store is excluded from garbage collection, which blocked requests for 50 ms
    serve(app, listening, keep_alive=30, patience=5)
