"""Bodies and replies of the HTTP API, and the OpenAPI document made from their schemas and those of the tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from kbgym.gym.actions import Result
from kbgym.gym.tools import MOST_TEXT, ROLES, TOOLS
from kbgym.serving.learning.question_log import Asked

ACTIONS = tuple(name for name in dict.fromkeys((*ROLES["reader"], *ROLES["curator"])) if name not in ("answer", "done"))
Line = Annotated[str, Meta(min_length=1, max_length=MOST_TEXT)]


class ActionBody(msgspec.Struct, frozen=True):
    """The reply to an action.

    `observation` is what an agent reads, `result` what happened, by id, and `version` the iteration of the store.
    """

    observation: str
    result: Result
    version: int


class Failure(msgspec.Struct, frozen=True):
    """A refused request."""

    error: str


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question.

    The reader `serving` is the server's own; `caller` opens the question for the client's agent, which searches and
    reads with the header Kbgym-Question. With an `answer`, the agent has answered already; `actions` are its searches
    and reads, such as {"tool": "search", "query": ...}, and are repeated here.
    """

    question: Line
    reader: Literal["serving", "caller"] = "serving"
    answer: Line | None = None
    actions: Annotated[list[dict[str, Any]], Meta(max_length=100)] = []


class Gold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The expected `answers`, or only whether the answer was `right`."""

    answers: Annotated[list[Line], Meta(min_length=1, max_length=100)] | None = None
    right: bool | None = None


_ERRORS = {
    "400": "The body is not JSON.",
    "401": "The token is missing or unknown.",
    "403": "The token's role, the Host or the Origin does not allow this.",
    "404": "There is no such question.",
    "408": "The body did not arrive in time.",
    "409": "The document changed since this client saw it, or the question has been judged already.",
    "413": "The body is too large.",
    "415": "The body is not application/json.",
    "422": "The arguments are invalid.",
    "429": "The token's rate limit is exceeded; Retry-After has the seconds to wait.",
    "431": "The head of the request is too long.",
    "503": "The disk refused the edit and nothing was changed, or the server is closing or has too many connections.",
}
_GOLD_SUMMARY = "Give the expected answers, which the store learns from (curators only), or only right or wrong."


def document(version: str, auth: bool) -> dict[str, Any]:
    """Return the OpenAPI document; `auth` declares the bearer token."""
    types = (ActionBody, Asked, Failure, Ask, Gold)
    references, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    reply, asked, failure, ask, gold = references
    components["Gold"] |= {"minProperties": 1, "maxProperties": 1}
    counts, text = {"type": "object"}, {"type": "string"}
    paths: dict[str, Any] = {}
    for name in ACTIONS:
        tool = TOOLS[name]
        role = "" if name in ROLES["reader"] else " Needs a curator's token."
        paths[f"/{name}"] = {"post": _operation(name, tool.description + role, reply, tool.schema)}
        either = {"type": "object", "anyOf": [reply, failure]}
        paths[f"/{name}"]["post"]["responses"]["409"] = _json(_ERRORS["409"], either)
    question = "/questions/{id}"
    paths["/questions"] = {"post": _operation("ask", "Ask a question, or open or report one.", asked, ask)}
    paths[question] = {"get": _operation("question", "Return a question and its outcome.", asked)}
    answer = TOOLS["answer"].schema
    paths[f"{question}/answer"] = {"post": _operation("answer", "Answer an open question.", asked, answer)}
    paths[f"{question}/gold"] = {"post": _operation("gold", _GOLD_SUMMARY, asked, gold)}
    for path in (question, f"{question}/answer", f"{question}/gold"):
        paths[path]["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": text}]
    paths["/store/stats"] = {"get": _operation("stats", "Return exact counts and rolling measures.", counts)}
    paths["/metrics"] = {"get": _operation("metrics", "Return metrics as Prometheus text.", text, media="text/plain")}
    health = _operation("health", "Return the state of the server.", counts)
    paths["/health"] = {"get": {**health, "security": []}}
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "kbgym", "version": version, "description": "A store served to agents."},
        "paths": paths,
        "components": {"schemas": components},
    }
    if auth:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


def _operation(
    name: str, summary: str, reply: dict[str, Any], body: dict[str, Any] | None = None, media: str = "application/json"
) -> dict[str, Any]:
    failures = {status: _json(meaning, {"$ref": "#/components/schemas/Failure"}) for status, meaning in _ERRORS.items()}
    done = {"description": "Done; an agent's mistake is a result of kind error.", "content": {media: {"schema": reply}}}
    operation: dict[str, Any] = {"operationId": name, "summary": summary, "responses": {"200": done, **failures}}
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return operation


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
