"""A store over HTTP: JSON in, JSON out, MCP at /mcp, and an OpenAPI document that says what may be answered.

An agent's mistake (an unknown id) is an answer like any other, with a result of kind error; a status other than 200
says the request itself was wrong. What stands before a request is in `middleware.py`; the work is the live store's.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kbgym.canonical import decode
from kbgym.errors import Failed
from kbgym.gym.actions import Invalid
from kbgym.gym.tools import ROLES, parse
from kbgym.serving.acting import act
from kbgym.serving.calling import Caller, unfinished
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.open_questions import Refusal
from kbgym.serving.learning.question_log import Asked
from kbgym.serving.lessons import plain_line
from kbgym.serving.mcp import make_server
from kbgym.serving.metrics import Metrics
from kbgym.serving.middleware import BODY_SECONDS, MOST_BODY, Guard, refuse
from kbgym.serving.openapi import ACTIONS, document
from kbgym.serving.rate_limit import McpSessions, Quota, RateLimits
from kbgym.serving.sessions import ClientSession, Sessions
from kbgym.serving.tokens import Client, Tokens
from kbgym.store import ledger
from kbgym.trace.live import LiveStore

SESSION, QUESTION = "kbgym-session", "kbgym-question"
_STATUS = {"missing": 404, "conflict": 409, "forbidden": 403, "invalid": 422}


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    question: str
    reader: str = "serving"
    answer: str | None = None
    actions: list[dict[str, Any]] = []


class Gold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    answers: list[str] | None = None
    right: bool | None = None


class Api:
    """The routes. One object a process."""

    def __init__(self, live: LiveStore, online: Online, version: str, auth: bool, allowance: Quota) -> None:
        self.live, self.online, self.version = live, online, version
        self.allowance, self.rates = allowance, RateLimits(allowance.requests)
        self.sessions = Sessions(allowance.sessions)
        self.metrics = Metrics()
        self._document = msgspec.json.encode(document(version, auth))
        self.mcp = StreamableHTTPSessionManager(
            make_server(live, online, self._caller, version), max_request_body_size=MOST_BODY, max_sessions=None
        )
        self.mcp_sessions = McpSessions(self.mcp.handle_request, allowance.sessions)

    def routes(self) -> list[BaseRoute]:
        found: list[BaseRoute] = [Route(f"/{name}", self._action(name), methods=["POST"]) for name in ACTIONS]
        return [
            *found,
            Route("/questions", _answered(self.ask), methods=["POST"]),
            Route("/questions/{id}", _answered(self.question), methods=["GET"]),
            Route("/questions/{id}/answer", _answered(self.answer), methods=["POST"]),
            Route("/questions/{id}/gold", _answered(self.gold), methods=["POST"]),
            Route("/store/stats", _answered(self.stats), methods=["GET"]),
            Route("/health", _answered(self.health), methods=["GET"]),
            Route("/metrics", self.metrics_text, methods=["GET"]),
            Route("/openapi.json", _answered(self.openapi), methods=["GET"]),
            Route("/mcp", self.mcp_sessions, methods=["GET", "POST", "DELETE"]),
        ]

    # -- actions ------------------------------------------------------------------------------------------------------

    def _action(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            client = _client(request)
            if name not in ROLES[client.role]:
                raise Refusal("forbidden", f"{name} needs a curator's token.")
            action = parse(name, await _object(request), client.role)
            if isinstance(action, Invalid):
                raise Refusal("invalid", action.reason)
            if (question := request.headers.get(QUESTION)) is not None and name in ROLES["reader"]:
                version, conflict = self.online.open_questions.find(question, client.name).base.iteration, False
                step = await self.online.act(question, client.name, action)
            else:
                reply = await act(self.live, self._session(request), action, client.role)
                step, version, conflict = reply.step, reply.version, reply.conflict
            body = {"observation": step.observation.text, "result": step.result, "version": version}
            return _json(body, 409 if conflict else 200)

        return _answered(handle)

    def _session(self, request: Request) -> ClientSession:
        name = request.headers.get("mcp-session-id") or request.headers.get(SESSION) or ""
        return self.sessions.of(_client(request).name, name)

    def _caller(self, context: Any) -> Caller:
        request: Request = context.request
        return Caller(_client(request).role, self._session(request), request.headers.get(QUESTION))

    # -- questions ----------------------------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Response:
        client, asking = _client(request), _converted(await _object(request), Ask)
        question = plain_line(asking.question, "question")
        if asking.reader not in ("serving", "caller"):
            raise Refusal("invalid", "reader is serving or caller.")
        if asking.answer is not None:
            actions = [parse(str(call.get("tool")), _rest(call), "reader") for call in asking.actions]
            if len(actions) > 100 or any(isinstance(action, Invalid) for action in actions):
                raise Refusal("invalid", "actions are up to 100 searches and reads.")
            answer = plain_line(asking.answer, "answer")
            return _visible(await self.online.report(question, client.name, actions, answer), client)
        if asking.actions:
            raise Refusal("invalid", "actions without an answer; open the question with reader caller instead.")
        if asking.reader == "caller":
            opened = await self.online.open(question, client.name)
            return _json({"id": opened.id, "question": opened.question, "state": "open", "agent": client.name})
        return _visible(await self.online.ask(question, client.name), client)

    async def question(self, request: Request) -> Response:
        client = _client(request)
        found = self.online.find(request.path_params["id"], None if client.role == "curator" else client.name)
        return _visible(found, client)

    async def answer(self, request: Request) -> Response:
        action = parse("answer", await _object(request), "reader")
        if isinstance(action, Invalid):
            raise Refusal("invalid", action.reason)
        text = getattr(action, "text", "")
        client = _client(request)
        return _visible(await self.online.close(request.path_params["id"], client.name, text), client)

    async def gold(self, request: Request) -> Response:
        client, gold = _client(request), _converted(await _object(request), Gold)
        id = request.path_params["id"]
        if (gold.answers is None) == (gold.right is None):
            raise Refusal("invalid", "give either answers or right.")
        if gold.right is not None:
            return _visible(await self.online.verdict(id, gold.right, client.name, client.role == "curator"), client)
        if client.role != "curator":
            raise Refusal("forbidden", "the store learns from a gold, so giving one needs a curator's token.")
        answers = tuple(plain_line(answer, "answers") for answer in gold.answers or ())
        if not 1 <= len(answers) <= 100:
            raise Refusal("invalid", "answers are 1 to 100 texts.")
        return _visible(await self.online.gold(id, answers), client)

    # -- looking ------------------------------------------------------------------------------------------------------

    async def stats(self, request: Request) -> Response:
        live, questions = self.live, self.online.questions
        counts = msgspec.to_builtins(ledger(live.store))
        measures = {"asked": questions.total, "graded": questions.graded, "rolling": questions.rolling()}
        return _json({**counts, "version": live.iteration, "hash": live.store.fingerprint, "questions": measures})

    async def health(self, request: Request) -> Response:
        learning, questions = self.online.worker.state, self.online.questions
        waiting = {"waiting": len(questions.to_learn), "set_aside": questions.set_aside}
        status = "ok" if not learning.failures else "degraded"
        shown = {"running": learning.running, "failures": learning.failures, **waiting}
        return _json({"status": status, "version": self.version, "learning": shown})

    async def openapi(self, request: Request) -> Response:
        return Response(self._document, media_type="application/json")

    async def metrics_text(self, request: Request) -> Response:
        live, online = self.live, self.online
        gauges = {
            "documents": ("gauge", "Documents in the store.", float(len(live.store))),
            "links": ("gauge", "Links in the store.", float(live.store.links)),
            "iteration": ("gauge", "The store's iteration.", float(live.iteration)),
            "commits_total": ("counter", "Transactions written.", float(live.commits)),
            "flushes_total": ("counter", "Times the disk was flushed.", float(live.flushes)),
            "questions_total": ("counter", "Questions asked.", float(online.questions.total)),
            "learning_queue": ("gauge", "Questions still to learn from.", float(len(online.questions.to_learn))),
            "learning_failures": ("gauge", "Failures of learning in a row.", float(online.worker.state.failures)),
            "set_aside_total": ("counter", "Lessons set aside.", float(online.questions.set_aside)),
            "open_questions": ("gauge", "Questions being answered.", float(len(online.open_questions))),
            "admitted_total": ("counter", "Backward passes whose edits were admitted.", float(online.admitted)),
            "rolled_back_total": ("counter", "Backward passes whose edits were refused.", float(online.refused)),
            "withdrawn_total": ("counter", "Admitted documents withdrawn since.", float(online.withdrawn)),
            "sessions": ("gauge", "Sessions of clients that are remembered.", float(len(self.sessions))),
            "mcp_sessions": ("gauge", "MCP sessions that are open.", float(len(self.mcp_sessions))),
            "limited_total": (
                "counter",
                "Requests of tokens that asked too often.",
                float(self.rates.refused),
            ),
            "allowed_requests": ("gauge", "Requests a second each token may make.", self.allowance.requests),
            "allowed_sessions": ("gauge", "Sessions of each kind a token may have.", float(self.allowance.sessions)),
        }
        if (recent := online.questions.rolling()) is not None:
            gauges["rolling_actions"] = ("gauge", "Mean actions of the last questions.", recent.actions)
            gauges["rolling_f1"] = ("gauge", "Mean F1 of the last questions with a gold.", recent.f1 or 0.0)
        return PlainTextResponse(self.metrics.text(gauges))


def _visible(asked: Asked, client: Client) -> Response:
    """Return what the client's role may see of a question: only curators see the expected answers.

    Decided here, when the reply is made: a gold may have arrived since the question was looked up.
    """
    return _json(asked if client.role == "curator" else msgspec.structs.replace(asked, golds=()))


def make_app(
    live: LiveStore,
    online: Online,
    tokens: Tokens | None,
    version: str,
    anybody: Client,
    hosts: frozenset[str] | None,
    view: ASGIApp | None = None,
    body_seconds: float = BODY_SECONDS,
    allowance: Quota | None = None,
) -> ASGIApp:
    """The whole application, with learning in the background while it runs; `view` is shown below /view/."""
    api = Api(live, online, version, tokens is not None, allowance or Quota())

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        online.start()
        try:
            async with api.mcp.run():
                yield
        finally:
            await online.stop()
            await live.close()

    async def said(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return refuse(error.status_code, error.detail, error.headers)

    routes = api.routes()
    if view is not None:
        routes += [Route("/view", lambda request: RedirectResponse("view/"), methods=["GET"]), Mount("/view", view)]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: said})
    app.router.redirect_slashes = False
    return _Measured(Guard(app, tokens, anybody, hosts, body_seconds, api.rates), api.metrics, routes)


class _Measured:
    """Counts every answer by route, status and time; a path nobody knows is not repeated anywhere."""

    def __init__(self, app: ASGIApp, metrics: Metrics, routes: list[BaseRoute]) -> None:
        self._app, self._metrics, self._routes = app, metrics, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            known = (r.path for r in self._routes if isinstance(r, Route) and r.matches(scope)[0] is Match.FULL)
            self._metrics.request(next(known, "other"), status, time.perf_counter() - started)


# -- requests and answers ---------------------------------------------------------------------------------------------


def _answered(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """What is refused becomes a status with one sentence."""

    async def handled(request: Request) -> Response:
        try:
            return await handle(request)
        except Refusal as refusal:
            return refuse(_STATUS[refusal.kind], str(refusal))
        except Failed as failure:
            return refuse(503, unfinished(failure))

    return handled


def _client(request: Request) -> Client:
    client: Client = request.scope["kbgym.client"]
    return client


async def _object(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send application/json.")
    try:
        body = decode(await request.body())
    except msgspec.DecodeError:
        raise HTTPException(400, "the body is not JSON.") from None
    if not isinstance(body, dict):
        raise Refusal("invalid", "the body is a JSON object.")
    return body


def _converted(body: dict[str, Any], kind: type[Any]) -> Any:
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise Refusal("invalid", f"{error}.") from None


def _rest(call: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in call.items() if name != "tool"}


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
