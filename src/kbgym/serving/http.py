"""The HTTP API of a served store: JSON in, JSON out, with MCP at /mcp and an OpenAPI document.

An agent's mistake, such as an unknown id, is a reply of status 200 with a result of kind error; any other status means
that the request itself was refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from kbgym.canonical import decode
from kbgym.errors import Failed
from kbgym.gym.actions import Action, Invalid
from kbgym.gym.tools import ROLES, Role, parse
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.question_log import Asked, Refusal
from kbgym.serving.lessons import plain_line
from kbgym.serving.mcp_http import SESSION, McpEndpoint
from kbgym.serving.mcp_tools import Opened, StoreToolbox
from kbgym.serving.middleware import BODY_SECONDS, Guard, Measured, Metrics, Quota, RateLimit, check_json, refuse
from kbgym.serving.openapi import ACTIONS, ActionBody, Ask, Gold, document
from kbgym.serving.sessions import ClientSession, Sessions, act
from kbgym.serving.tokens import Client, Tokens
from kbgym.serving.tool_calls import Caller, unfinished, visible
from kbgym.store import ledger
from kbgym.trace.live import LiveStore

QUESTION = "kbgym-question"
_STATUS = {"missing": 404, "conflict": 409, "forbidden": 403, "invalid": 422}
T = TypeVar("T")


class Api:
    """The routes of a served store."""

    def __init__(self, live: LiveStore, online: Online, version: str, auth: bool, quota: Quota) -> None:
        self.live, self.online, self.version = live, online, version
        self.quota, self.rate_limit = quota, RateLimit(quota.requests)
        self.sessions = Sessions(quota.sessions)
        self.metrics = Metrics()
        self.mcp = McpEndpoint(self._toolbox, version, quota.sessions)
        self._document = msgspec.json.encode(document(version, auth))

    def routes(self) -> list[BaseRoute]:
        return [
            *(Route(f"/{name}", self._action(name), methods=["POST"]) for name in ACTIONS),
            Route("/questions", _answered(self.ask), methods=["POST"]),
            Route("/questions/{id}", _answered(self.question), methods=["GET"]),
            Route("/questions/{id}/answer", _answered(self.answer), methods=["POST"]),
            Route("/questions/{id}/gold", _answered(self.gold), methods=["POST"]),
            Route("/store/stats", _answered(self.stats), methods=["GET"]),
            Route("/health", _answered(self.health), methods=["GET"]),
            Route("/metrics", self.metrics_text, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            *self.mcp.routes(),
        ]

    # -- actions ------------------------------------------------------------------------------------------------------

    def _action(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            client = _client(request)
            if name not in ROLES[client.role]:
                raise Refusal("forbidden", f"{name} needs a curator's token.")
            action = _parsed(name, await _object(request), client.role)
            if (question := request.headers.get(QUESTION)) is not None and name in ROLES["reader"]:
                version, conflict = self.online.open_questions.find(question, client.name).base.iteration, False
                step = await self.online.act(question, client.name, action)
            else:
                reply = await act(self.live, self._session(request), action, client.role)
                step, version, conflict = reply.step, reply.version, reply.conflict
            return _json(ActionBody(step.observation.text, step.result, version), 409 if conflict else 200)

        return _answered(handle)

    def _session(self, request: Request) -> ClientSession:
        name = request.headers.get(SESSION) or request.headers.get("kbgym-session") or ""
        return self.sessions.of(_client(request).name, name)

    def _toolbox(self, request: Request) -> StoreToolbox:
        role, question = _client(request).role, request.headers.get(QUESTION)

        async def opened() -> Opened:
            return self.live, self.online, Caller(role, self._session(request), question)

        return StoreToolbox(role, question is not None, False, opened)

    # -- questions ----------------------------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Response:
        client, asking = _client(request), _converted(await _object(request), Ask)
        question = plain_line(asking.question, "question")
        if asking.answer is not None:
            calls = [dict(call) for call in asking.actions]
            actions = [_parsed(str(call.pop("tool", None)), call, "reader") for call in calls]
            answer = plain_line(asking.answer, "answer")
            return _reply(await self.online.report(question, client.name, actions, answer), client)
        if asking.actions:
            raise Refusal("invalid", "actions without an answer; open the question with reader caller instead.")
        if asking.reader == "caller":
            opened = await self.online.open(question, client.name)
            return _reply(Asked(opened.id, opened.question, client.name, state="open"), client)
        return _reply(await self.online.ask(question, client.name), client)

    async def question(self, request: Request) -> Response:
        client = _client(request)
        found = self.online.find(request.path_params["id"], None if client.role == "curator" else client.name)
        return _reply(found, client)

    async def answer(self, request: Request) -> Response:
        client, action = _client(request), _parsed("answer", await _object(request), "reader")
        text = getattr(action, "text", "")
        return _reply(await self.online.close(request.path_params["id"], client.name, text), client)

    async def gold(self, request: Request) -> Response:
        client, gold = _client(request), _converted(await _object(request), Gold)
        id = request.path_params["id"]
        if (gold.answers is None) == (gold.right is None):
            raise Refusal("invalid", "give either answers or right.")
        if gold.right is not None:
            return _reply(await self.online.verdict(id, gold.right, client.name, client.role == "curator"), client)
        if client.role != "curator":
            raise Refusal("forbidden", "the store learns from expected answers: giving them needs a curator's token.")
        answers = tuple(plain_line(answer, "answers") for answer in gold.answers or ())
        return _reply(await self.online.gold(id, answers), client)

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
            "learning_queue": ("gauge", "Questions waiting to be learnt from.", float(len(online.questions.to_learn))),
            "learning_failures": ("gauge", "Consecutive failures of learning.", float(online.worker.state.failures)),
            "set_aside_total": ("counter", "Lessons set aside.", float(online.questions.set_aside)),
            "open_questions": ("gauge", "Questions being answered by clients.", float(len(online.open_questions))),
            "admitted_total": ("counter", "Backward passes admitted by the gate.", float(online.admitted)),
            "rolled_back_total": ("counter", "Backward passes refused by the gate.", float(online.refused)),
            "withdrawn_total": ("counter", "Admitted documents withdrawn later.", float(online.withdrawn)),
            "sessions": ("gauge", "Sessions of clients.", float(len(self.sessions))),
            "mcp_sessions": ("gauge", "Open MCP sessions.", float(len(self.mcp))),
            "limited_total": ("counter", "Requests beyond the rate limit.", float(self.rate_limit.refused)),
            "allowed_requests": ("gauge", "Requests per second per token.", self.quota.requests),
            "allowed_sessions": ("gauge", "Sessions of each kind per token.", float(self.quota.sessions)),
        }
        if (recent := online.questions.rolling()) is not None:
            gauges["rolling_actions"] = ("gauge", "Mean actions of the last questions.", recent.actions)
            gauges["rolling_f1"] = ("gauge", "Mean F1 of the last questions with an expected answer.", recent.f1 or 0.0)
        return PlainTextResponse(self.metrics.text(gauges))


def make_app(
    live: LiveStore,
    online: Online,
    tokens: Tokens | None,
    version: str,
    local_client: Client,
    hosts: frozenset[str] | None,
    view: ASGIApp | None = None,
    body_seconds: float = BODY_SECONDS,
    quota: Quota | None = None,
) -> ASGIApp:
    """Return the application, which learns in the background while it runs.

    Args:
        tokens: the tokens that are accepted; without them, every request comes from `local_client`.
        hosts: the accepted Host headers; None accepts any.
        view: an application to mount at /view/.
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
    if view is not None:
        routes += [Route("/view", lambda request: RedirectResponse("view/"), methods=["GET"]), Mount("/view", view)]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: error_reply})
    app.router.redirect_slashes = False
    return Measured(Guard(app, tokens, local_client, hosts, body_seconds, api.rate_limit), api.metrics, routes)


# -- requests and replies ---------------------------------------------------------------------------------------------


def _answered(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Turn what a handler raises into a status with a message."""

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
    check_json(request)
    try:
        body = decode(await request.body())
    except msgspec.DecodeError:
        raise HTTPException(400, "the body is not JSON.") from None
    if not isinstance(body, dict):
        raise Refusal("invalid", "the body is not a JSON object.")
    return body


def _converted(body: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise Refusal("invalid", f"{error}.") from None


def _parsed(name: str, arguments: dict[str, Any], role: Role) -> Action:
    action = parse(name, arguments, role)
    if isinstance(action, Invalid):
        raise Refusal("invalid", action.reason)
    return action


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _reply(asked: Asked, client: Client) -> Response:
    return _json(visible(asked, client.role))
