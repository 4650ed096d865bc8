"""The HTTP API of a served store: JSON in, JSON out, with MCP at /mcp and an OpenAPI document.

An agent's mistake, such as an unknown id, is a reply of status 200 with a result of kind error; any other status means
that the request itself was refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from kbgym.canonical import decode
from kbgym.errors import Failed
from kbgym.gym.actions import Action, Invalid, Search, shown_by
from kbgym.gym.environment import Environment
from kbgym.gym.tools import ROLES, Role, parse
from kbgym.serving import openapi
from kbgym.serving.clients import (
    ActionOutcome,
    ClientSession,
    DocumentResult,
    Refusal,
    SearchQuery,
    Sessions,
    StoreResults,
    act,
)
from kbgym.serving.corrections import BODIES, LESSONS, Outcome, converted
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.question_log import Asked, plain_line
from kbgym.serving.learning.report import Learning, learning_of
from kbgym.serving.mcp_http import SESSION, McpEndpoint
from kbgym.serving.mcp_tools import Opened, StoreToolbox
from kbgym.serving.middleware import Guard, Metrics, Quota, RateLimit, RequestMetrics, read_json, refuse
from kbgym.serving.tokens import Client, Tokens
from kbgym.serving.tool_calls import Caller, unfinished, visible
from kbgym.store import ledger
from kbgym.trace.live import LiveStore

QUESTION = "kbgym-question"
_STATUS = {"missing": 404, "conflict": 409, "forbidden": 403, "invalid": 422}


class Api:
    """The operations of a served store."""

    def __init__(self, live: LiveStore, online: Online, version: str, auth: bool, quota: Quota) -> None:
        self.live, self.online, self.version = live, online, version
        self.quota, self.rate_limit = quota, RateLimit(quota.requests)
        self.sessions = Sessions(quota.sessions)
        self.results = StoreResults(live)
        self.metrics = Metrics()
        self.mcp = McpEndpoint(self._toolbox, version, quota.sessions)
        self._document = openapi.document(version, auth, self.operations())

    def operations(self) -> list[openapi.Operation]:
        """Return the operations of the API, as served and as documented."""
        edits = ("add", "edit", "delete", "link", "link_many", "unlink")
        return [
            openapi.operation("search", self.search, openapi.ActionReply, SearchQuery),
            *(openapi.operation(name, partial(self._tool, name), openapi.ActionReply) for name in ("read", *edits)),
            openapi.operation("document", self.document, DocumentResult),
            openapi.operation("ask", self.ask, Asked, openapi.AskBody),
            openapi.operation("question", self.question, Asked),
            openapi.operation("answer", self.answer, Asked, openapi.body_of("answer")),
            openapi.operation("gold", self.gold, Asked, openapi.GoldBody),
            *(openapi.operation(name, partial(self._lesson, name), Outcome, body) for name, body in BODIES.items()),
            openapi.operation("learning", self.learning, Learning),
            openapi.operation("stats", self.stats, dict),
            openapi.operation("health", self.health, dict),
            openapi.operation("metrics", self.metrics_text, str),
        ]

    def routes(self) -> list[BaseRoute]:
        """Return the routes of all operations, of the documentation and of MCP."""
        routes = [Route(one.path, partial(_answered, one), methods=[one.method]) for one in self.operations()]
        return [
            *routes,
            Route("/openapi.json", lambda request: _json(self._document), methods=["GET"]),
            Route("/docs", lambda request: HTMLResponse(openapi.page(self._document)), methods=["GET"]),
            *self.mcp.routes(),
        ]

    # -- actions ------------------------------------------------------------------------------------------------------

    async def search(self, request: Request) -> Response:
        given = converted(await _object(request), SearchQuery)
        if request.headers.get(QUESTION) is not None:
            return await self._acted(request, Search(given.query, given.page), given.query)
        reply = await self.results.search(self._session(request), given)
        return await self._shown(reply, given.query)

    async def _tool(self, name: str, request: Request) -> Response:
        return await self._acted(request, _parsed(name, await _object(request), _client(request).role))

    async def _acted(self, request: Request, action: Action, query: str = "") -> Response:
        client, name = _client(request), action.__struct_config__.tag
        if (question := request.headers.get(QUESTION)) is not None and name in ROLES["reader"]:
            opened = self.online.opened(question, client.name)
            step = await self.online.act(question, client.name, action)
            return await self._shown(ActionOutcome(step, opened.base.iteration), query, opened.environment)
        return await self._shown(await act(self.live, self._session(request), action, client.role), query)

    async def _shown(self, reply: ActionOutcome, query: str, environment: Environment | None = None) -> Response:
        step = reply.step
        documents = await self.results.documents(shown_by(step.result), query, environment)
        body = openapi.ActionReply(step.observation.text, documents, step.result, reply.version)
        return _json(body, 409 if reply.conflict else 200)

    async def document(self, request: Request) -> Response:
        found = await self.results.documents([request.path_params["id"]])
        if not found:
            raise Refusal("missing", "there is no such document.")
        return _json(found[0])

    def _session(self, request: Request) -> ClientSession:
        name = request.headers.get(SESSION) or request.headers.get("kbgym-session") or ""
        return self.sessions.of(_client(request).name, name)

    def _toolbox(self, request: Request) -> StoreToolbox:
        role, question = _client(request).role, request.headers.get(QUESTION)

        async def opened() -> Opened:
            return self.results, self.online, Caller(role, self._session(request), question)

        return StoreToolbox(role, question is not None, opened)

    async def _lesson(self, name: str, request: Request) -> Response:
        return _json(await LESSONS[name](self.online, self._session(request), await _object(request)))

    # -- questions ----------------------------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Response:
        client, asking = _client(request), converted(await _object(request), openapi.AskBody)
        question = plain_line(asking.question, "question")
        if asking.answer is not None:
            calls = [msgspec.to_builtins(call) for call in asking.actions]
            actions = [_parsed(call.pop("tool"), call, "reader") for call in calls]
            answer = plain_line(asking.answer, "answer")
            return _reply(await self.online.report(question, client.name, actions, answer), client)
        if asking.actions:
            raise Refusal("conflict", "actions without an answer; open the question with reader caller instead.")
        if asking.reader == "caller":
            opened = await self.online.open(question, client.name)
            return _reply(opened.asked, client)
        return _reply(await self.online.ask(question, client.name), client)

    async def question(self, request: Request) -> Response:
        client = _client(request)
        found = self.online.look(request.path_params["id"], None if client.role == "curator" else client.name)
        return _reply(found, client)

    async def answer(self, request: Request) -> Response:
        client, action = _client(request), _parsed("answer", await _object(request), "reader")
        text = getattr(action, "text", "")
        return _reply(await self.online.close(request.path_params["id"], client.name, text), client)

    async def gold(self, request: Request) -> Response:
        client, gold = _client(request), converted(await _object(request), openapi.GoldBody)
        id = request.path_params["id"]
        answers = tuple(plain_line(answer, "answers") for answer in gold.answers)
        return _reply(await self.online.gold(id, answers), client)

    # -- state --------------------------------------------------------------------------------------------------------

    async def stats(self, request: Request) -> Response:
        live, questions = self.live, self.online.questions
        counts = msgspec.to_builtins(ledger(live.store))
        measures = {"asked": questions.total, "graded": questions.graded, "rolling": questions.rolling()}
        return _json({**counts, "version": live.iteration, "hash": live.store.fingerprint, "questions": measures})

    async def learning(self, request: Request) -> Response:
        async with self.live.read():
            online = self.online
            return _json(learning_of(online.questions, online.corrections, self.live.store))

    async def health(self, request: Request) -> Response:
        online, questions = self.online, self.online.questions
        learning = {"running": online.is_learning, "failures": online.failures, "waiting": len(questions.to_learn)}
        status = "degraded" if online.failures else "ok"
        shown = {**learning, "set_aside": questions.set_aside}
        return _json({"status": status, "version": self.version, "learning": shown})

    async def metrics_text(self, request: Request) -> Response:
        live, online = self.live, self.online
        values: dict[str, float] = {
            "documents": len(live.store),
            "links": live.store.links,
            "iteration": live.iteration,
            "commits_total": live.commits,
            "flushes_total": live.flushes,
            "questions_total": online.questions.total,
            "learning_queue": len(online.questions.to_learn),
            "learning_failures": online.failures,
            "set_aside_total": online.questions.set_aside,
            "open_questions": online.open_questions.total,
            "admitted_total": online.admitted,
            "rolled_back_total": online.refused,
            "sessions": len(self.sessions),
            "mcp_sessions": self.mcp.sessions.total,
            "limited_total": self.rate_limit.refused,
            "allowed_requests": self.quota.requests,
            "allowed_sessions": self.quota.sessions,
        }
        if (recent := online.questions.rolling()) is not None:
            values |= {"rolling_actions": recent.actions, "rolling_f1": recent.f1}
        gauges = {name: (*openapi.API["metrics"][name], value) for name, value in values.items()}
        return PlainTextResponse(self.metrics.text(gauges))


def make_app(
    live: LiveStore,
    online: Online,
    tokens: Tokens | None,
    version: str,
    local_client: Client,
    hosts: frozenset[str] | None,
    quota: Quota | None = None,
    cors: frozenset[str] = frozenset(),
) -> ASGIApp:
    """Return the application, which learns in the background while it runs.

    Args:
        tokens: the tokens that are accepted; without them, every request comes from `local_client`.
        hosts: the accepted Host headers; None accepts any.
        cors: origins whose pages may use the API from a browser.
    """
    api = Api(live, online, version, tokens is not None, quota or Quota())

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        online.start()
        try:
            yield
        finally:
            await online.stop()
            await live.close()

    async def error_reply(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return refuse(error.status_code, error.detail, error.headers)

    routes = api.routes()
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: error_reply})
    app.router.redirect_slashes = False
    guarded: ASGIApp = Guard(app, tokens, local_client, hosts, api.rate_limit, cors)
    if cors:
        headers, methods = ["Authorization", "Content-Type", "Kbgym-Question", "Kbgym-Session"], ["GET", "POST"]
        guarded = CORSMiddleware(guarded, allow_origins=list(cors), allow_methods=methods, allow_headers=headers)
    return RequestMetrics(guarded, api.metrics, routes)


# -- requests and responses --------------------------------------------------------------------------------------------


async def _answered(operation: openapi.Operation, request: Request) -> Response:
    """Check the client's role, and turn what a handler raises into a status with a message."""
    try:
        if operation.role == "curator" and _client(request).role != "curator":
            raise Refusal("forbidden", f"{operation.name} needs a curator's token.")
        return await operation.handle(request)
    except Refusal as refusal:
        return refuse(_STATUS[refusal.kind], str(refusal))
    except Failed as failure:
        return refuse(503, unfinished(failure))


def _client(request: Request) -> Client:
    client: Client = request.scope["kbgym.client"]
    return client


async def _object(request: Request) -> dict[str, Any]:
    try:
        body = decode(await read_json(request))
    except msgspec.DecodeError:
        raise HTTPException(400, "the body is not JSON.") from None
    if not isinstance(body, dict):
        raise Refusal("invalid", "the body is not a JSON object.")
    found: dict[str, Any] = _integers(body)
    return found


def _integers(value: Any) -> Any:
    """Return a JSON value with 5.0 as 5, which JSON Schema takes for an integer."""
    match value:
        case dict():
            return {key: _integers(one) for key, one in value.items()}
        case list():
            return [_integers(one) for one in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _parsed(name: str, arguments: dict[str, Any], role: Role) -> Action:
    listed = arguments.get("targets")
    ids = [arguments.get("id"), arguments.get("source"), arguments.get("target")]
    ids += listed if isinstance(listed, list) else []
    if any(isinstance(id, str) and not id.isprintable() for id in ids):
        raise Refusal("missing", "there is no such document.")
    action = parse(name, arguments, role)
    if isinstance(action, Invalid):
        raise Refusal("invalid", action.reason)
    return action


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _reply(asked: Asked, client: Client) -> Response:
    return _json(visible(asked, client.role))
