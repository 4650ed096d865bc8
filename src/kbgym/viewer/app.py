"""The viewer as a read-only starlette application: the page, its assets, and its data.

Every response carries a strict content security policy; only GET and HEAD are allowed. `make_viewer` can be mounted
below any path, because the page uses relative URLs only; `guarded` adds the middleware for loopback.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kbgym.analysis.cells import as_csv
from kbgym.errors import BadInput, Damaged, KbgymError, Missing
from kbgym.sanitize import number_in
from kbgym.serving.middleware import LOOPBACK, Guard, refuse
from kbgym.serving.tokens import Client
from kbgym.viewer import compare, overview, questions, stores
from kbgym.viewer.live import Live
from kbgym.viewer.maps import Map
from kbgym.viewer.places import ViewedPlace, ViewedPlaces, ViewedStore

PAGES = ("", "store", "map", "questions", "compare", "live")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
STATIC = StaticFiles(directory=Path(__file__).with_name("static"))
LAYOUT_WAIT = 2.0  # seconds a request waits for a layout before it replies "not yet"

Handler = Callable[[Request], Any]


class Viewer:
    """The routes over the places of one process."""

    def __init__(self, places: ViewedPlaces) -> None:
        self.places = places
        self.live_runs = Live()

    def routes(self) -> list[BaseRoute]:
        data: dict[str, Handler] = {
            "places": self.all_places,
            "about": lambda request: overview.about(self._place(request)),
            "gradient": lambda request: overview.gradient(self._place(request)),
            "learning": lambda request: overview.learning(*self._seeded(request)),
            "table": lambda request: overview.table_values(self._table(request)),
            "summary": lambda request: stores.summary(self._viewed(request)),
            "search": lambda request: stores.search(self._viewed(request), _text(request, "q")),
            "corrections": lambda request: stores.corrections(self._viewed(request)),
            "document": lambda request: stores.document(self._viewed(request), _text(request, "id")),
            "audit": lambda request: stores.audit(self._place(request), self._viewed(request)),
            "questions": lambda request: questions.listing(*self._seeded(request)),
            "lessons": lambda request: questions.lessons(*self._seeded(request), request.query_params.get("arm")),
            "question": self.question,
            "lesson": lambda request: questions.lesson(
                *self._seeded(request), request.query_params.get("arm"), _number(request, "iteration")
            ),
            "compare": lambda request: compare.stores(*self._sides(request)),
            "compare-questions": lambda request: compare.exams(*self._sides(request)),
            "live": lambda request: self.live_runs.look(*self._seeded(request)),
            "table.csv": self.table_csv,
            "map": self.map,
        }
        return [
            *(Route(f"/api/{name}", _answered(handler), methods=["GET"]) for name, handler in data.items()),
            Mount("/assets", STATIC),
            *(Route(f"/{name}", page, methods=["GET"]) for name in PAGES),
        ]

    # -- request parameters --------------------------------------------------------------------------------------------

    def _place(self, request: Request, which: str = "run") -> ViewedPlace:
        return self.places.named(request.query_params.get(which))

    def _seeded(self, request: Request) -> tuple[ViewedPlace, int]:
        place = self._place(request)
        return place, place.seed(request.query_params.get("seed"))

    def _viewed(self, request: Request) -> ViewedStore:
        place, seed = self._seeded(request)
        at = _number(request, "at") if request.query_params.get("at") else None
        return place.viewed(seed, request.query_params.get("arm"), at)

    def _sides(self, request: Request) -> tuple[compare.Side, compare.Side]:
        """Return the arms `left` and `right`; the right one may be of another run and seed (`run2`, `seed2`)."""
        place, seed = self._seeded(request)
        other = self._place(request, "run2") if request.query_params.get("run2") else place
        asked = request.query_params.get("seed2")
        seed2 = other.seed(asked) if asked or other is not place else seed
        left, right = request.query_params.get("left"), request.query_params.get("right")
        return compare.Side(place, seed, left), compare.Side(other, seed2, right)

    def _table(self, request: Request) -> Any:
        return overview.report_table(self._place(request), _text(request, "name"))

    # -- responses that are not plain JSON -----------------------------------------------------------------------------

    def all_places(self, request: Request) -> Any:
        return [
            {"name": place.name, "kind": place.kind, "seeds": place.seeds, "folder": str(place.folder)}
            for place in self.places.values()
        ]

    def question(self, request: Request) -> Any:
        place, seed = self._seeded(request)
        arms = [arm for arm in _text(request, "arms").split(",") if arm]
        return questions.exam(place, seed, _text(request, "set"), _text(request, "id"), arms)

    def table_csv(self, request: Request) -> Response:
        table = self._table(request)
        named = {"content-disposition": f'attachment; filename="{table.name}.csv"'}
        return Response(as_csv(table), media_type="text/csv; charset=utf-8", headers=named)

    def map(self, request: Request) -> Response:
        viewed = self._viewed(request)
        place, seed = self._seeded(request)
        drawn = place.keep(("map", seed, viewed.name, viewed.at), lambda: Map(viewed))
        packed = drawn.packed(LAYOUT_WAIT)
        if packed is not None:
            return Response(packed, media_type="application/octet-stream")
        if drawn.failure:
            return refuse(503, drawn.failure)
        return JSONResponse({"state": "laying out", "documents": len(drawn.growth.texts)}, 202)


def make_viewer(places: ViewedPlaces) -> ASGIApp:
    """Return the application, ready to be served or mounted."""
    app = Starlette(routes=Viewer(places).routes())
    app.router.redirect_slashes = False
    return _ReadOnly(app)


def warm(places: ViewedPlaces) -> None:
    """Compute the data of the first page in the background, so that it loads at once."""

    def work() -> None:
        for place in places.values():
            for part in (overview.about, overview.gradient):
                with contextlib.suppress(KbgymError):
                    part(place)

    threading.Thread(target=work, daemon=True).start()


def guarded(app: ASGIApp) -> ASGIApp:
    """Reject requests with the Host or Origin of another site, which prevents DNS rebinding to loopback."""
    return _ReadOnly(Guard(app, None, Client("viewer", "reader"), LOOPBACK))


class _ReadOnly:
    """Rejects every method but GET and HEAD, and adds the security headers to every response, rejections included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                default = HEADERS | {"cache-control": "no-cache"}
                extra = [(name.encode(), value.encode()) for name, value in default.items()]
                message["headers"] = [*message["headers"], *(pair for pair in extra if pair[0] not in present)]
            await send(message)

        if scope["method"] not in ("GET", "HEAD"):
            refusal = refuse(405, "the viewer only reads.", {"Allow": "GET, HEAD"})
            await refusal(scope, receive, sending)
            return
        await self._app(scope, receive, sending)


# -- requests and responses --------------------------------------------------------------------------------------------


async def page(request: Request) -> Response:
    """Serve the page; every URL has the same file."""
    return await STATIC.get_response("index.html", request.scope)


def _answered(handle: Handler) -> Callable[[Request], Response]:
    """Return a handler's value as JSON, and its errors as a status with a one-sentence message."""

    def answer(request: Request) -> Response:
        try:
            found = handle(request)
        except KbgymError as error:
            asked = isinstance(error, BadInput) and not isinstance(error, Damaged)
            return refuse(503 if isinstance(error, Missing) else 404 if asked else 500, str(error))
        if isinstance(found, Response):
            return found
        headers = {"cache-control": "no-store"}
        return Response(msgspec.json.encode(found), media_type="application/json", headers=headers)

    return answer


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name, "")[:8_000]


def _number(request: Request, name: str) -> int:
    value = _text(request, name)
    if (number := number_in(value)) is None:
        raise BadInput(f"{name} is a number, not {value[:20]!r}.")
    return number
