"""A real browser for tests: Debian's Chromium, headless, WebGL in software; requests and complaints are noted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
# WebGL without a graphics card; a sandbox of its own is not to be had in a container.
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


class Watched:
    """A page, what it asked for, and what it complained of."""

    def __init__(self, page, url: str) -> None:
        self.page, self.url = page, url
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)

    def open(self, where: str) -> Watched:
        self.page.goto(self.url + where)
        return self.settled()

    def settled(self) -> Watched:
        """Wait until every part of the view has its data."""
        self.page.wait_for_selector("html[data-ready]")
        self.page.wait_for_selector(".part > .waiting", state="detached")
        return self

    def drawn(self) -> Watched:
        self.page.wait_for_selector(".stage[data-ready]", timeout=120_000)
        return self

    def text(self, selector: str = "main") -> str:
        return self.page.locator(selector).first.inner_text()

    def measured(self, name: str) -> list[float]:
        """Durations the page measured of itself, in milliseconds."""
        return self.page.evaluate("name => performance.getEntriesByName(name).map(one => one.duration)", name)

    def checked(self) -> None:
        """Nothing was complained of, and nothing left the machine."""
        assert self.complaints == []
        own = (f"{self.url}/", "data:", "blob:")
        assert [url for url in self.asked if not url.startswith(own)] == []


@contextmanager
def browser() -> Iterator[object]:
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}; install Debian's chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        try:
            yield chromium
        finally:
            chromium.close()
