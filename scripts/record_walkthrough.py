"""Record the cassette of docs/your-own-documents.md anew: run its commands with the scripted player for a model.

    python scripts/record_walkthrough.py [--out examples/harbour/scripted.cassette.jsonl]

Needed whenever the page's commands, the example's files, the prompts, the tools or the search change, because a
cassette finds replies by what was asked. Every command of the page that names the cassette is run with a local server
instead; what these runs recorded is put together in one file. The server runs on the loopback and is no language model.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fault_server import FaultServer  # noqa: E402
from harbour_player import Player  # noqa: E402

PAGE = ROOT / "docs" / "your-own-documents.md"
CASSETTE = ROOT / "examples" / "harbour" / "scripted.cassette.jsonl"
NAMED = "cassette:harbour/scripted.cassette.jsonl"
MODEL = "llm:local/scripted-player"
REPLY = '"kind":"reply"'


def commands(page: Path = PAGE) -> list[str]:
    """The commands of a page's sh blocks, as tests/test_docs.py runs them."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def record(folder: Path, say: bool = True) -> list[str]:
    """Run the page in a folder with the player; the lines of all cassettes that were recorded."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("*.cassette.jsonl"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with FaultServer(Player(ROOT / "examples" / "harbour" / "questions.csv")) as server:
        for command in commands():
            if NAMED in command:
                command = f"{command.replace(NAMED, MODEL)} --set base_url={server.url} --yes"
            done = subprocess.run(
                command, shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
            )
            if say:
                print(f"$ {command}\n{done.stdout}", end="", flush=True)
            if done.returncode:
                raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")
    return merged(sorted(folder.rglob("*cassette.jsonl")))


def merged(cassettes: list[Path]) -> list[str]:
    """One cassette out of several: every reply, and once each what they share."""
    lines: list[str] = []
    once: set[str] = set()
    for cassette in cassettes:
        for line in cassette.read_text(encoding="utf-8").splitlines():
            if REPLY in line or line not in once:
                once.add(line)
                lines.append(line)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=CASSETTE)
    out: Path = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        lines = record(Path(folder))
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    replies = sum(REPLY in line for line in lines)
    print(f"{out}: {replies} replies, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
