"""The OpenAPI document of the HTTP API, made from the tools' own schemas so that the two cannot drift apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kbgym.gym.tools import MOST_TEXT, ROLES, TOOLS

ACTIONS = tuple(name for name in dict.fromkeys((*ROLES["reader"], *ROLES["curator"])) if name not in ("answer", "done"))

_ERRORS = {
    "400": "The body is not JSON.",
    "401": "The token is missing or unknown.",
    "403": "The token's role, the Host or the Origin does not allow this.",
    "404": "There is no such question.",
    "408": "The body did not arrive in time.",
    "409": "The document changed since this client saw it; or the question has been judged already.",
    "413": "The body is too large.",
    "415": "The body is not application/json.",
    "422": "The arguments are not what the action takes.",
    "429": "This token asks too often; Retry-After says for how many seconds it may not.",
    "431": "The head of the request is too long.",
    "503": "The disk refused the edit, and nothing was changed; or the server is closing, or has too many callers.",
}
_TEXT = {"type": "string"}
_LINE = {"type": "string", "minLength": 1, "maxLength": MOST_TEXT}


def _object(properties: dict[str, Any], required: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, **more}


def _list_of(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, **more}


_ERROR = _object({"error": _TEXT}, ["error"])
_REPLY = _object(
    {
        "observation": {"type": "string", "description": "What an agent reads."},
        "result": {"type": "object", "description": "What happened, by id; its `result` names the kind."},
        "version": {"type": "integer", "description": "The iteration of the store this is true of."},
    },
    ["observation", "result", "version"],
)
_ASKED = _object(
    {
        "id": _TEXT,
        "question": _TEXT,
        "agent": _TEXT,
        "outcome": _TEXT,
        "answer": {"type": ["string", "null"]},
        "actions": {"type": "integer"},
        "state": {"enum": ["open", "answered", "graded", "learnt", "refused"]},
        "golds": _list_of(_TEXT),
        "f1": {"type": ["number", "null"]},
        "em": {"type": ["number", "null"]},
        "right": {"type": ["boolean", "null"]},
        "note": _TEXT,
    },
    ["id", "question", "state"],
)
_ASK = _object(
    {
        "question": _LINE,
        "reader": {
            "enum": ["serving", "caller"],
            "description": "Who answers: the server's own reader, or the caller's agent, which then searches and reads "
            "with the header Kbgym-Question.",
        },
        "answer": {**_LINE, "description": "The caller's agent has answered already."},
        "actions": {
            "type": "array",
            "maxItems": 100,
            "items": {"type": "object"},
            "description": 'Its searches and reads, as {"tool": "search", "query": ...}; they are done again here.',
        },
    },
    ["question"],
    additionalProperties=False,
)
_GOLD = _object(
    {
        "answers": _list_of(_LINE, minItems=1, maxItems=100),
        "right": {"type": "boolean", "description": "Only whether it was right: counted, never learnt from."},
    },
    minProperties=1,
    maxProperties=1,
    additionalProperties=False,
)
_STATS = {"type": "object", "additionalProperties": True}
_GOLD_SUMMARY = "The right answer (needs a curator's token, because the store learns from it), or only right or wrong."


def document(version: str, auth: bool) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for name in ACTIONS:
        tool = TOOLS[name]
        role = "" if name in ROLES["reader"] else " Needs a curator's token."
        paths[f"/{name}"] = {"post": _operation(name, tool.description + role, tool.schema, _REPLY, conflict=True)}
    paths["/questions"] = {"post": _operation("ask", "Ask a question, or open or report one.", _ASK, _ASKED)}
    answer = TOOLS["answer"].schema
    of_question = {
        "": ("get", _operation("question", "A question and what became of it.", None, _ASKED)),
        "/answer": ("post", _operation("answer", "The caller's agent answers an open question.", answer, _ASKED)),
        "/gold": ("post", _operation("gold", _GOLD_SUMMARY, _GOLD, _ASKED)),
    }
    named = [{"name": "id", "in": "path", "required": True, "schema": _TEXT}]
    for path, (method, operation) in of_question.items():
        paths[f"/questions/{{id}}{path}"] = {"parameters": named, method: operation}
    paths["/store/stats"] = {"get": _operation("stats", "Exact counts, and the rolling measures.", None, _STATS)}
    plain = {"200": {"description": "Plain text.", "content": {"text/plain": {"schema": _TEXT}}}}
    paths["/metrics"] = {
        "get": {"operationId": "metrics", "summary": "Counters, as Prometheus text.", "responses": plain | _errors()}
    }
    paths["/health"] = {
        "get": {
            "operationId": "health",
            "summary": "Whether the server answers.",
            "security": [],
            "responses": {"200": _content("It does.", _STATS), "403": _content(_ERRORS["403"], _ERROR)},
        }
    }
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "kbgym", "version": version, "description": "A store served to agents."},
        "paths": paths,
    }
    if auth:
        found["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        found["security"] = [{"token": []}]
    return found


def _operation(
    name: str, summary: str, body: dict[str, Any] | None, reply: dict[str, Any], conflict: bool = False
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {"200": _content("Done; an agent's mistake is a result of kind error.", reply), **_errors()},
    }
    if conflict:
        either = {"type": "object", "anyOf": [reply, _ERROR]}
        operation["responses"]["409"] = _content(_ERRORS["409"], either)
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return operation


def _errors() -> dict[str, Any]:
    return {status: _content(meaning, _ERROR) for status, meaning in _ERRORS.items()}


def _content(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
