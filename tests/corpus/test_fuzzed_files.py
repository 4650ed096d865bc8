"""Files of every format with random damage: read, or refused in one sentence; nothing else happens."""

from __future__ import annotations

import json
import os
import random
import zipfile
from pathlib import Path

import pytest
from test_converted import pdf, word
from test_nothing_is_lost import CASES, filled

from kbgym.corpus import files
from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.errors import BadInput

COUNT = int(os.environ.get("KBGYM_FUZZED_FILES", "120"))
PIECES = [b"<", b"\0", b"[" * 50, b"{", b"&", b"|", b"`", b"\n\n", b"..", b"::", b'"', b"\xff", b"9" * 500, b"a." * 100]


def samples(tmp_path: Path) -> dict[str, bytes]:
    """Return a file of every format."""
    found = {name: filled(text).encode() for name, text in CASES.items()}
    cells = [{"cell_type": "markdown", "source": ["# T\n", "x."]}, {"cell_type": "code", "source": "x", "outputs": []}]
    found["a.ipynb"] = json.dumps({"cells": cells}).encode()
    word(tmp_path / "a.docx")
    pdf(tmp_path / "a.pdf")
    for name in ("a.docx", "a.pdf"):
        found[name] = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
    for ending in ("xlsx", "epub", "pptx"):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr("[Content_Types].xml", "<Types/>")
        found[f"a.{ending}"] = (tmp_path / "a.zip").read_bytes()
        (tmp_path / "a.zip").unlink()
    return found


def damaged(data: bytes, draw: random.Random) -> bytes:
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(4):
            case 0:
                data = data[:at] + draw.choice(PIECES) * draw.choice((1, 1, 3, 40)) + data[at:]
            case 1:
                data = data[:at] + data[at + draw.randint(1, 40) :]
            case 2:
                data = data[:at] + data[at // 2 : at] * draw.randint(1, 20) + data[at:]
            case _:
                data = data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
    return data[:200_000]


@pytest.mark.slow
def test_damaged_files_are_read_or_refused(tmp_path):
    draw, kinds = random.Random(5), samples(tmp_path)
    names = [name for name in kinds if not files._unreadable(Path(name))]
    for start in range(0, COUNT, 100):
        folder = tmp_path / str(start)
        folder.mkdir()
        for number in range(start, min(start + 100, COUNT)):
            name = names[number % len(names)]
            (folder / f"{number}{Path(name).suffix}").write_bytes(damaged(kinds[name], draw))
        try:
            corpus = read_corpus([folder], ReadingOptions(on_error="skip"))
        except BadInput as nothing:  # every file of a batch may be refused
            assert "no text" in str(nothing) or "none of these" in str(nothing)
            continue
        assert not [one for one in corpus.skipped if "broke down" in one.reason or "\n" in one.reason]
        assert len(list(folder.iterdir())) == min(100, COUNT - start), "nothing is left behind"
