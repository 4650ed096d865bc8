"""`kbgym watch`: a store that follows a folder of documents while they are written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from kbgym.api import open
from kbgym.baselines.pages import with_page_links
from kbgym.cli.common import emit, output_options, say
from kbgym.cli.import_report import change_lines, followed_lines
from kbgym.corpus.watching import Followed, Watcher
from kbgym.errors import BadInput, KbgymError
from kbgym.trace.url import is_url


@click.command("watch")
@click.argument("paths", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(path_type=Path, exists=True))
@click.option("--store", required=True, help="The run or store that follows.")
@click.option("--every", default=2.0, show_default=True, type=click.FloatRange(min=0.05), help="Seconds between looks.")
@output_options
def command(paths: Sequence[Path], store: str, every: float, as_json: bool, quiet: bool) -> None:
    """Keep a store in step with the files it was made from, until interrupted.

    Files are read again when their time or size changed, and what they say now becomes one iteration of the store's
    history: sentences that did not change keep their ids, also in a file that was renamed, and what agents wrote stays.
    Every change is a line. Servers that only read the store (`kbgym serve STORE --mcp --role reader`) follow by
    themselves; while another process writes to it, changes wait. The world folder is left as it is. With --json every
    update is one object.

    \b
    Example:
      kbgym watch harbour/notes --store runs/harbour
    """
    if is_url(store) or "@" in Path(store).name:
        raise BadInput("watch follows a folder's newest state; use `kbgym import corpus --update` and copy the store.")
    with open(store) as opened:
        if opened.world is None:
            raise BadInput(f"{store} does not say which documents it was made from.")
        watcher = Watcher(paths, Path(store), opened.world, with_page_links)
    said = ""
    while True:
        try:
            followed = watcher.look()
        except KbgymError as problem:  # a file half written, another writer: the next look may go well
            if str(problem) != said:
                say(f"{problem} FairQueue.")
            said, followed = str(problem), None
        else:
            said = ""
        if followed is not None:
            emit(_result(followed), as_json, quiet, _lines(store, followed))
        time.sleep(every)


def _result(followed: Followed) -> dict[str, object]:
    changed = followed.made.changed
    assert changed is not None
    return {
        "iteration": followed.store.iteration,
        "added": [one.id for one in changed.added],
        "edited": [one.id for one in changed.edited],
        "removed": changed.removed,
        "moved": len(changed.moved),
        "renamed": followed.made.renamed,
        "doubtful": followed.made.doubtful,
        "belongs": followed.store.belongs,
    }


def _lines(store: str, followed: Followed) -> list[str]:
    changed = followed.made.changed
    assert changed is not None
    return [
        *(f"added [{one.id}] {one.text}" for one in changed.added),
        *(f"edited [{one.id}] {one.text}" for one in changed.edited),
        *(f"removed [{id}]" for id in changed.removed),
        *change_lines(followed.made)[1:],
        *followed_lines(Path(store), followed.store),
    ]
