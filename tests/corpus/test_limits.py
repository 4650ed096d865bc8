"""Files that exceed a limit on time, memory or output are refused in one sentence, and the next file is read."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kbgym.corpus import reader_process as reading
from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.errors import BadInput

SUBSTITUTIONS = "".join(f".. |{n}| replace:: {f'|{n + 1}| ' * 8}\n" for n in range(3))
SUBSTITUTIONS += f".. |3| replace:: {'letters ' * 250}\n"
HOSTILE = {
    "digits.toml": ("a = " + "1" * 5_000, "digits"),
    "dotted.toml": ("a." * 150_000 + "a = 1", "nested"),
    "inline.toml": ("x = {" + "a." * 150_000 + "a = 1}", "takes more than"),
    "unfolds.rst": (f"|0|\n\n{SUBSTITUTIONS}", "unfolds to more than"),
    "slow.rst": ("a-" * 20_000, "takes more than"),
}


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(reading, "SECONDS", 8.0)
    monkeypatch.setattr(reading, "BYTES_PER_SECOND", 1 << 20)
    yield
    reading.reader_process().close()


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_and_the_next_one_read(tmp_path: Path, name):
    text, reason = HOSTILE[name]
    (tmp_path / name).write_text(text)
    (tmp_path / "z.md").write_text("Ruth is here.")
    began = time.monotonic()
    with pytest.raises(BadInput) as refused:
        read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert name in str(refused.value) and reason in str(refused.value) and "\n" not in str(refused.value)
    assert time.monotonic() - began < 20
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence", on_error="skip"))
    assert [document.text for document in corpus.documents] == ["z: Ruth is here."]
    assert [problem.file for problem in corpus.skipped] == [name]


def test_a_reader_that_dies_is_replaced(tmp_path: Path, monkeypatch):
    (tmp_path / "a.md").write_text("Ruth is here.")
    with monkeypatch.context() as patch:
        patch.setattr(reading, "MEMORY", 1)  # not enough to read anything
        patch.setattr(reading, "MEMORY_PER_BYTE", 0)
        (tmp_path / "b.md").write_text("Nell. " * 10_000)
        with pytest.raises(BadInput, match=r"b\.md"):
            read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert read_corpus([tmp_path], ReadingOptions(unit="sentence")).files == 2


def test_the_command_refuses_a_hostile_file_with_exit_code_2(tmp_path: Path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.toml").write_text(HOSTILE["digits.toml"][0])
    (tmp_path / "notes" / "b.md").write_text("Ruth is here.")
    command = [sys.executable, "-m", "kbgym", "import", "corpus", str(tmp_path / "notes"), "--json"]
    refused = subprocess.run([*command, "--out", tmp_path / "x"], capture_output=True, text=True, env=dict(os.environ))
    assert refused.returncode == 2 and "a.toml" in refused.stderr and "Traceback" not in refused.stderr
    skipped = subprocess.run(
        [*command, "--out", tmp_path / "y", "--set", "on_error=skip"], capture_output=True, text=True
    )
    assert skipped.returncode == 0 and json.loads(skipped.stdout)
