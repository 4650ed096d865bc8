"""`kbgym view`: a local page on runs, experiments and stores."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path

import click

from kbgym.cli.common import emit, output_options
from kbgym.cli.settings import Command, place
from kbgym.errors import BadInput, Missing

HOST = "127.0.0.1"


@click.command("view", cls=Command)
@place("RUN...", name="folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen.  [default: a free port]")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
@click.option("--world", type=click.Path(path_type=Path), help="The world of a store that does not hold its own.")
@output_options
def command(
    folders: tuple[Path, ...], port: int, open_browser: bool, world: Path | None, as_json: bool, quiet: bool
) -> None:
    """Serve a local page on a RUN: gains, the store, its map, every question, and live progress.

    RUN is a run, an experiment or a store; several may be given. The page is served to this machine only, needs no
    network and changes nothing. Press Ctrl-C to stop.

    \b
    Examples:
      kbgym view runs/demo
      kbgym view runs/demo runs/other stores/b3 --open
    """
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} is no folder.")
    try:
        from kbgym.serving.server import listen, serve
        from kbgym.viewer.app import guarded, make_viewer, warm
        from kbgym.viewer.places import ViewedPlaces
    except ImportError as error:
        name = error.name or "a package"
        raise Missing(f"the viewer needs {name}, which is not installed; run `pip install 'kbgym[serve]'`.") from None
    places = ViewedPlaces(folders, world)
    app = guarded(make_viewer(places))
    listening, address = listen(HOST, port, 128)
    url = f"{address}/"
    emit({"url": url}, as_json, quiet, f"Look at {url} (Ctrl-C ends it).")
    warm(places)
    if open_browser:
        webbrowser.open(url)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is the normal way to stop
        serve(app, listening)
