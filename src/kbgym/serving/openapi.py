"""Bodies of the HTTP API, and the OpenAPI document made from the operations of the server and their schemas."""

from __future__ import annotations

import html
import json
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from kbgym.gym.actions import Result
from kbgym.gym.tools import MOST_PAGE, MOST_TARGETS, ROLES, TOOLS, Role
from kbgym.serving.clients import DocumentResult, Id, Line, Note

Handler = Callable[[Request], Awaitable[Response]]
_FIELDS: dict[str, tuple[Any, ...]] = {
    "id": (Id,),
    "text": (Line,),
    "source": (Id,),
    "target": (Id,),
    "targets": (Annotated[list[Id], Meta(min_length=1, max_length=MOST_TARGETS)],),
    "page": (Annotated[int, Meta(ge=1, le=MOST_PAGE)], 1),
    "about": (Note, ""),
}


def body_of(name: str) -> type[Any]:
    """Return the type of the body of an action: the arguments of its tool."""
    tool = TOOLS[name]
    fields: list[Any] = [(field, *_FIELDS[field]) for field in tool.parameters]
    kind = "".join(map(str.capitalize, name.split("_"))) + "Body"
    namespace = {"__doc__": tool.description}
    return msgspec.defstruct(kind, fields, namespace=namespace, frozen=True, forbid_unknown_fields=True)


class ActionReply(msgspec.Struct, frozen=True):
    """The reply to an action.

    `observation` is the text an agent reads, `documents` the same documents as values, `result` the outcome, by id,
    and `version` the iteration of the store.
    """

    observation: str
    documents: list[DocumentResult]
    result: Result
    version: int


class Failure(msgspec.Struct, frozen=True):
    """A rejected request."""

    error: str


class ReportedSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="tool", tag="search"):
    """A search that the client's agent made."""

    query: Line
    page: Annotated[int, Meta(ge=1, le=MOST_PAGE)] = 1


class ReportedRead(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="tool", tag="read"):
    """A document that the client's agent read."""

    id: Id


class AskBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question.

    The reader `serving` is the server's own; `caller` opens the question for the client's agent, which searches and
    reads with the header Kbgym-Question. With an `answer`, the agent has answered already; `actions` are its searches
    and reads, such as {"tool": "search", "query": ...}, and are repeated here.
    """

    question: Line
    reader: Literal["serving", "caller"] = "serving"
    answer: Line | None = None
    actions: Annotated[list[ReportedSearch | ReportedRead], Meta(max_length=100)] = []


class GoldBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The expected answers."""

    answers: Annotated[list[Line], Meta(min_length=1, max_length=100)]


class Operation(msgspec.Struct, frozen=True):
    """An operation of the API: its route, its handler, and the types of its body and reply."""

    method: Literal["GET", "POST"]
    path: str
    summary: str
    name: str
    handle: Handler
    reply: Any
    body: Any = None
    role: Role = "reader"
    media: str = "application/json"


API: dict[str, Any] = tomllib.loads(Path(__file__).with_name("api.toml").read_text(encoding="utf-8"))
ERRORS: dict[str, str] = API["errors"]


def operation(name: str, handle: Handler, reply: Any, body: Any = None) -> Operation:
    """Return an operation of `api.toml`, or the one of a tool of a pass."""
    if name in API["operations"]:
        return Operation(**API["operations"][name], name=name, handle=handle, reply=reply, body=body)
    role: Role = "reader" if name in ROLES["reader"] else "curator"
    return Operation("POST", f"/v1/{name}", TOOLS[name].description, name, handle, reply, body_of(name), role)


def document(version: str, auth: bool, operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document; `auth` declares the bearer token."""
    types = dict.fromkeys(kind for one in operations for kind in (one.reply, one.body) if isinstance(kind, type))
    kinds = [kind for kind in (*types, Failure) if kind not in (str, dict)]
    references, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    reference: dict[Any, Any] = dict(zip(kinds, references, strict=True))
    reference |= {str: {"type": "string"}, dict: {"type": "object"}}
    either = {"anyOf": [reference[ActionReply], reference[Failure]]}
    responses = {
        f"Error{status}": _content(meaning, either if status == "409" else reference[Failure])
        for status, meaning in ERRORS.items()
    }
    paths: dict[str, Any] = {}
    for one in operations:
        described: dict[str, Any] = {
            "operationId": one.name,
            "summary": one.summary + (" Needs a curator's token." if one.role == "curator" else ""),
            "responses": {"200": _content("Done.", reference[one.reply], one.media)}
            | {status: {"$ref": f"#/components/responses/Error{status}"} for status in ERRORS},
        }
        if one.body is not None:
            content = {"application/json": {"schema": reference[one.body]}}
            described["requestBody"] = {"required": True, "content": content}
        if auth and one.path == "/health":
            described["security"] = []
        path = paths.setdefault(one.path, {})
        path[one.method.lower()] = described
        if "{id}" in one.path:
            path["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "kbgym", "version": version, "description": "A store served to agents."},
        "paths": paths,
        "components": {"schemas": schemas, "responses": responses},
    }
    if auth:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


def _content(description: str, schema: dict[str, Any], media: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema}}}


def page(described: dict[str, Any]) -> str:
    """Return the OpenAPI document as a page without scripts."""
    title = f"{described['info']['title']} {described['info']['version']}"
    parts = [f"<h1>{html.escape(title)}</h1>"]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if method != "parameters":
                parts.append(f"<h2><code>{method.upper()} {path}</code></h2><p>{html.escape(operation['summary'])}</p>")
    for name, schema in described["components"]["schemas"].items():
        shown = html.escape(json.dumps(schema, indent=2, ensure_ascii=False))
        parts.append(f'<details id="{name}"><summary>{name}</summary><pre>{shown}</pre></details>')
    style = "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{overflow:auto}"
    head = f'<meta charset="utf-8"><title>kbgym API</title><style>{style}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'
