"""Every compiled pattern of the package takes time that grows with its input, not with the square of it."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kbgym
from kbgym.errors import KbgymError

PIECES = (
    "a", "A", "1", " ", "\t", "\n", ".", "-", "_", "'", ":", "/", "\\", "[", "(", "{", "<", ">", "`", "*", "|", ",",
    "=", '"',
    "a ", "A ", "a.", "a-", "A-", "1.", "1,", "a: ", "a'", " \n", "\n\n", "\n ", "- ", ". ", "[[", "a|", "((", "a, ",
    "aA",
    "A b ", "of ", "de ", "is ", "the ", " and ", "'s ", "\ue0001\ue001", "\ue0001\ue001, ",
)  # fmt: skip
SIZE = 3_000
GROWTH = 11.0  # of the time when the input grows fourfold: 4 if it is linear, 16 if it is quadratic


def patterns() -> dict[str, tuple[re.Pattern[str], list[str]]]:
    """Return the patterns of all modules by name, with the methods that the sources call."""
    found = {}
    for info in pkgutil.walk_packages(kbgym.__path__, "kbgym."):
        if info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except (ImportError, KbgymError):  # an extra that is not installed
            continue
        text = Path(module.__file__ or "").read_text(encoding="utf-8")
        for name, value in vars(module).items():
            several = value if isinstance(value, tuple) else (value,)
            for number, one in enumerate(several):
                if isinstance(one, re.Pattern) and isinstance(one.pattern, str):
                    methods = set(re.findall(rf"\b{name}\.(\w+)", text)) or {"search"}
                    anchored = methods <= {"match", "fullmatch", "pattern"}
                    found[f"{info.name}.{name}[{number}]"] = (one, ["match", "fullmatch"] if anchored else ["search"])
    return found


def texts(pattern: re.Pattern[str], size: int) -> Iterator[tuple[str, str]]:
    """Yield strings that a backtracking engine may take long for, each with a name."""
    words = [word for word in re.findall(r"[A-Za-z<\[(`'.:#-]{2,}", pattern.pattern) if not word.startswith("(")][:12]
    for piece in (*PIECES, *words, *(f"{word} " for word in words)):
        for begin in ("", "a ", "A", *(words[:6])):
            body = begin + piece * (size // len(piece))
            yield f"{begin!r} {piece!r}", body + "\0"


def seconds(work: Callable[[], object]) -> float:
    def once() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once() for _ in range(3))


def find_all(pattern: re.Pattern[str], method: str, text: str) -> Callable[[], object]:
    if method == "search":
        return lambda: sum(1 for _ in pattern.finditer(text))
    return lambda: getattr(pattern, method)(text)


def slow(pattern: re.Pattern[str], methods: list[str]) -> list[str]:
    """Return the inputs for which the time of a pattern grows faster than its input."""
    found = []
    for method in methods:
        short, long = dict(texts(pattern, SIZE)), dict(texts(pattern, 4 * SIZE))
        for name, text in short.items():
            start = time.process_time()
            find_all(pattern, method, text)()
            if time.process_time() - start < 0.002:
                continue
            growth = seconds(find_all(pattern, method, long[name])) / seconds(find_all(pattern, method, text))
            if growth > GROWTH:
                found.append(f"{method} of {name}: {growth:.1f}")
    return found


@pytest.mark.slow
def test_the_time_of_every_pattern_grows_with_its_input():
    found = {name: quadratic for name, one in patterns().items() if (quadratic := slow(*one))}
    assert found == {}


def test_a_quadratic_pattern_is_found():
    assert slow(re.compile(r"\s+$"), ["search"])


if __name__ == "__main__":
    for name, one in patterns().items():
        if quadratic := slow(*one):
            print(name, one[0].pattern[:100], quadratic[:6])
            sys.stdout.flush()
