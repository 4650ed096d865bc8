"""Cost of importing a corpus against splitting its text: python benchmarks/corpus.py [--sentences N ...]

Writes a corpus of Markdown, HTML, text and JSONL files (a quarter of the sentences each, with headings, lists, tables
and links), then measures in fresh processes: the bare sentence splitter on the same paragraphs, the import (reading,
sentences, ids, links, world on disk), and importing again as an update. Prints a Markdown table; the peer is the
splitter, and the last columns are ratios to it. Memory is the peak of the process, and what each sentence adds to it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILE = 200  # sentences in a file


def paragraph(number: int) -> list[str]:
    """Four sentences about a made-up boat."""
    name = f"Boat{number:06d}"
    return [
        f"The {name} of Dr. Vael was built in {1900 + number % 120} by Pell & Sons, e.g. for crabs.",
        f"She lies at berth no. {number % 97} and costs {number % 50 + 1}.50 crowns a day.",
        f"Her skipper is Jonas No{number % 1009}, who learnt the trade under Capt. Teller.",
        "It was repaired in Aug. 2022 at the old slip.",
    ]


def markdown(numbers: range) -> str:
    parts = ["# Fleet\n"]
    for number in numbers:
        first, second, third, fourth = paragraph(number)
        parts.append(f"## Entry {number}\n\n{first} {second}\n{third.replace('Capt.', '*Capt.*')}\n\n- {fourth}\n")
    return "\n".join(parts)


def html(numbers: range) -> str:
    rows = (f"<h2>Entry {number}</h2><p>{' '.join(paragraph(number)).replace('&', '&amp;')}</p>" for number in numbers)
    return "<html><head><title>Fleet</title></head><body>" + "\n".join(rows) + "</body></html>"


def text(numbers: range) -> str:
    return "Fleet\n\n" + "\n\n".join(" ".join(paragraph(number)) for number in numbers) + "\n"


def jsonl(numbers: range) -> str:
    rows = ({"title": f"Entry {number}", "text": " ".join(paragraph(number))} for number in numbers)
    return "".join(json.dumps(row) + "\n" for row in rows)


FORMATS = {"md": markdown, "html": html, "txt": text, "jsonl": jsonl}


def write(folder: Path, sentences: int) -> None:
    folder.mkdir()
    size = FILE // 4
    for number, start in enumerate(range(0, sentences // 4, size)):
        ending = list(FORMATS)[number % len(FORMATS)]
        numbers = range(start, min(start + size, sentences // 4))
        (folder / f"file{number:05d}.{ending}").write_text(FORMATS[ending](numbers), encoding="utf-8")


def measure(what: str, folder: Path, sentences: int) -> dict[str, float]:
    from kbgym.corpus.documents import ReadingOptions
    from kbgym.corpus.importing import load_old, make, replace_world
    from kbgym.corpus.statements import split

    split("Warm. Up.")
    out = folder.parent / "world"
    before = _peak()
    started = time.perf_counter()
    count = 0
    if what == "splitter":
        import sentencex

        for number in range(sentences // 4):
            count += len(sentencex.segment("en", " ".join(paragraph(number))))
    elif what == "import":
        made = make([folder], None, ReadingOptions(links=True))
        made.world.save(out)
        count = len(made.world.documents)
    else:
        old = load_old(out)
        made = make([folder], None, ReadingOptions(links=True), old=old)
        assert not replace_world(old, made.world, out)
        count = len(made.world.documents)
    return {"seconds": time.perf_counter() - started, "count": count, "peak": _peak(), "added": _peak() - before}


def _peak() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        what, folder, sentences = arguments.one
        print(json.dumps(measure(what, Path(folder), int(sentences))))
        return
    print("| sentences | step | seconds | documents | a second | peak MiB | bytes a sentence | time / splitter |")
    print("| ---: | :--- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for sentences in arguments.sentences:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "files"
            write(folder, sentences)
            alone = 0.0
            for what in ("splitter", "import", "update"):
                command = [sys.executable, __file__, "--one", what, str(folder), str(sentences)]
                row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                alone = alone or row["seconds"]
                each = row["added"] * 2**20 / sentences
                print(
                    f"| {sentences:,} | {what} | {row['seconds']:.2f} | {row['count']:,} | "
                    f"{row['count'] / row['seconds']:,.0f} | {row['peak']:.0f} | {each:,.0f} | "
                    f"{row['seconds'] / alone:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
