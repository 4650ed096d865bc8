"""Sanitize text: reject, remove or escape control, direction and invisible characters.

A terminal obeys control characters, direction marks reorder the text around them, and invisible characters show a model
text that a person cannot see. Tools check texts with `is_plain`, imports clean them with `sanitize`, and output is
escaped with `safe_text`. The module is independent of stores.
"""

from __future__ import annotations

import re
from functools import cache

_CONTROL = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Joiners are needed in Persian, Indic scripts and emoji, but can be hidden between other letters. A variation selector
# selects the glyph of a symbol or an ideograph; anywhere else it is hidden data.
_JOINED = "[\u0590-\u1dff\u2190-\ufdff\ufe70-\ufefe\U00010000-\U000dffff]"
_VARIED = "[#*0-9©®‼⁉\u2100-\u2bff\u3030\u303d\u3297\u3299\u3400-\u9fff\U0001f000-\U0001faff]"
_STRAY = f"(?<!{_JOINED})(?<!{_VARIED}\ufe0f)[\u200c\u200d]|[\u200c\u200d](?!{_JOINED})|(?<!{_VARIED})[\ufe00-\ufe0f]"
_HIDDEN = f"[{_DIRECTION}{_INVISIBLE}]|{_STRAY}"
_CONTROLS = f"(?![\\n\\t])[{_CONTROL}]"
_UNSAFE = f"[{_CONTROL}{_DIRECTION}{_INVISIBLE}]|{_STRAY}"
# Built on first use: it takes 25 ms, which would delay the start of a server.
_pattern = cache(re.compile)

_FORMULA = tuple("=+-@＝＋－＠\t\r")


def is_plain(text: str) -> bool:
    """Return True if a line of text has no control or invisible characters."""
    return (text.isascii() and text.isprintable()) or _pattern(_UNSAFE).search(text) is None


def sanitize(text: str) -> tuple[str, int]:
    """Return a text without invisible characters, and how many were removed; line ends and tabs stay."""
    shown, hidden = _pattern(_HIDDEN).subn("", text)
    plain, controls = _pattern(_CONTROLS).subn(" ", shown)
    return plain, hidden + controls


def safe_text(text: str) -> str:
    """Return a text as one line for a terminal; invisible characters are escaped, as `\\x1b`."""
    return text if text.isascii() and text.isprintable() else _pattern(_UNSAFE).sub(_written, text)


def safe_json(data: bytes) -> str:
    """Return JSON that is safe to print: equal values, with invisible characters as `\\u` escapes."""
    # Unsafe characters occur inside strings only; control characters below a space are escaped already.
    return _pattern(_UNSAFE).sub(_escaped, data.decode())


def safe_cell(text: str) -> str:
    """Return a text as a table cell, with a quote before anything a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or the plural."""
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('s') else 's'}"


def number_in(text: str) -> int | None:
    """Return the number that a text gives in plain digits, or None if it is not a number or too long."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _written(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))
