"""Characters that do not show what they do: which of them a store never takes, and how a stranger's text is shown.

A terminal obeys control characters; direction marks reorder the text around them; invisible ones say something to a
model that a person cannot see. `is_plain` is what tools ask of a text, `sanitize` what imports do to one, `safe_text`
what stands before everything that is printed. It knows nothing of stores.
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
# Joiners write Persian, Indic scripts and emoji, but hide between the letters of others; a variation selector chooses
# the picture of a symbol or an ideograph, and is only a hidden number anywhere else.
_JOINED = "[\u0590-\u1dff\u2190-\ufdff\ufe70-\ufefe\U00010000-\U000dffff]"
_VARIED = "[#*0-9©®‼⁉\u2100-\u2bff\u3030\u303d\u3297\u3299\u3400-\u9fff\U0001f000-\U0001faff]"
_STRAY = f"(?<!{_JOINED})(?<!{_VARIED}\ufe0f)[\u200c\u200d]|[\u200c\u200d](?!{_JOINED})|(?<!{_VARIED})[\ufe00-\ufe0f]"
_HIDDEN = f"[{_DIRECTION}{_INVISIBLE}]|{_STRAY}"
_CONTROLS = f"(?![\\n\\t])[{_CONTROL}]"
_UNSAFE = f"[{_CONTROL}{_DIRECTION}{_INVISIBLE}]|{_STRAY}"
# Made when first used: it takes 25 ms, which an agent that starts a server would wait for.
_pattern = cache(re.compile)

_FORMULA = tuple("=+-@＝＋－＠\t\r")


def is_plain(text: str) -> bool:
    """Return True if a line of text shows everything it holds."""
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
    """JSON as a terminal can be given it: the same values, with what does not show as `\\u` escapes."""
    # Whatever is unsafe stands inside a string; controls below a blank are escaped already.
    return _pattern(_UNSAFE).sub(_escaped, data.decode())


def safe_cell(text: str) -> str:
    """Return a text as a table cell; a quote goes before what a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def number_in(text: str) -> int | None:
    """Return the number a text writes in plain digits; None if it is none, or too long."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _written(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))
