"""Runs the official generator in a folder of ours and checks that it made what it should.

Finds `pw-generate` beside this Python or on the PATH, needs SWI-Prolog for it, and says what to install when either is
not there. It does not read what was written beyond counting.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from kbgym.errors import BadInput, Failed, Missing

# (seed, family trees, questions a type): articles, sentences, questions. The paper's world.
KNOWN = {(1, 16, 60): (405, 3403, 480)}
TYPES = 8
SECONDS = 1800

INSTALL = (
    "install SWI-Prolog (Debian and Ubuntu: apt-get install swi-prolog-nox; macOS: brew install swi-prolog), then the "
    "package: pip install phantom-wiki==1.0.3 on Python 3.12, or on Python 3.11 "
    "pip install --no-deps --ignore-requires-python phantom-wiki==1.0.3 && "
    "pip install networkx nltk numpy pandas pydot pyswip tabulate termcolor tqdm "
    "(scripts/install_phantomwiki.sh does both pip steps); or bring an output folder with --from."
)


def generator() -> str:
    """The path of `pw-generate`; Missing says how to get what is not there."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    command = shutil.which("pw-generate", path=beside)
    if command is None:
        raise Missing(f"PhantomWiki's generator pw-generate is not installed: {INSTALL}")
    if shutil.which("swipl") is None:
        raise Missing(f"PhantomWiki's generator needs SWI-Prolog, and there is no swipl on the PATH: {INSTALL}")
    return command


def generate(folder: Path, seed: int, trees: int, per_type: int) -> None:
    """Fill a folder with articles.json and questions.json. The output's own words are kept in pw-generate.log."""
    for name, value in (("--trees", trees), ("--per-type", per_type)):
        if value < 1:
            raise BadInput(f"{name} takes a number of at least 1, not {value}.")
    arguments = [generator(), "-od", str(folder), "--seed", str(seed)]
    arguments += ["--num-family-trees", str(trees), "--num-questions-per-type", str(per_type)]
    arguments += ["--article-format", "json", "--question-format", "json"]
    log = folder / "pw-generate.log"
    with log.open("wb") as out:
        try:
            done = subprocess.run(arguments, stdout=out, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"pw-generate was still running after {SECONDS} seconds and was ended.") from error
        except OSError as error:
            raise Failed(f"pw-generate could not be started: {error}.") from error
    if done.returncode:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise Failed(f"pw-generate ended with code {done.returncode}: {said[-1] if said else 'it said nothing'}.")


def check(seed: int, trees: int, per_type: int, made: tuple[int, int, int]) -> None:
    """That a generated output has the size it must have: always 8 types, and all three counts where they are known."""
    wanted = KNOWN.get((seed, trees, per_type), (made[0], made[1], TYPES * per_type))
    if made != wanted:
        raise Failed(
            f"pw-generate made {made[0]} articles, {made[1]} sentences and {made[2]} questions instead of "
            f"{wanted[0]}, {wanted[1]} and {wanted[2]}: is it phantom-wiki 1.0.3?"
        )
