"""A model of a disk whose power is cut, fed by strace: what a program wrote, and what of it a cut leaves.

`record` runs a program under strace and returns its writes, syncs, renames and acknowledgements below a folder.
`Disk` replays them: a file's content is durable once the file was synced, a name once its folder was. `Disk.after_cut`
writes what is left into a folder; what was not synced is lost, or (with a source of chance) may have reached the disk.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

SECTOR = 512  # bytes that are written whole or not at all
ACKS = "acknowledged"  # a file of this name: every write to it acknowledges something to the user
_CALLS = (
    "open,openat,creat,write,pwrite64,writev,ftruncate,fsync,fdatasync,rename,renameat,renameat2,"
    "unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,sendfile,copy_file_range"
)
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)(.*)$")
_ENDED = re.compile(r"^(\d+) <\.\.\. \w+ resumed>(.*)$")

Op = tuple[str, str, object]  # what was done, to which path, with what


def record(command: Sequence[str], root: Path, environment: dict[str, str]) -> list[Op]:
    """Run a command and return what it did below `root`."""
    log = root.parent / f"{root.name}.strace"
    traced = ["strace", "-f", "-y", "-xx", "-s", "100000000", "-e", f"trace={_CALLS}", "-o", str(log), *command]
    subprocess.run(traced, check=True, env=environment, cwd=root, timeout=240, stdout=subprocess.DEVNULL)
    return list(_operations(log.read_text().splitlines(), str(root)))


def _text(quoted: str) -> str:
    return bytes.fromhex(quoted.replace("\\x", "")).decode()


def _operations(lines: Iterable[str], root: str) -> Iterator[Op]:
    started: dict[str, str] = {}
    positions: dict[tuple[str, str], int] = {}  # where the next plain write to an open file goes
    for line in lines:
        process = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            started[process] = line.removesuffix("<unfinished ...>").rstrip()
            continue
        if (ended := _ENDED.match(line)) is not None:
            line = started.pop(process) + ended[2]
        if (call := _CALL.match(line)) is None or int(call[4]) < 0:
            continue
        for what, path, value in _call(call[2], call[3], int(call[4]), call[5], positions, root):
            if path == root or path.startswith(f"{root}/"):
                into = str(value).removeprefix(root).lstrip("/") if what == "rename" else value
                yield what, path.removeprefix(root).lstrip("/"), into


def _call(
    name: str, arguments: str, result: int, behind: str, positions: dict[tuple[str, str], int], root: str
) -> Iterator[Op]:
    held = [_text(found) for found in re.findall(r"<((?:\\x[0-9a-f]{2})*)>", arguments)]
    given = [_text(found) for found in re.findall(r'"((?:\\x[0-9a-f]{2})*)"', arguments)] if "write" not in name else []
    paths = [os.path.normpath(os.path.join(held[0] if held else root, one)) for one in given]
    number = arguments.split("<", 1)[0]
    if name in ("open", "openat", "creat"):
        opened = _text(behind.strip()[1:-1]) if behind.strip().startswith("<") else paths[-1]
        positions[str(result), opened] = -1 if "O_APPEND" in arguments else 0
        if "O_CREAT" in arguments or name == "creat":
            yield "create", opened, None
        if "O_TRUNC" in arguments or name == "creat":
            yield "truncate", opened, 0
    elif name in ("write", "pwrite64"):
        data = bytes.fromhex(re.findall(r'"((?:\\x[0-9a-f]{2})*)"', arguments)[0].replace("\\x", ""))[:result]
        at = int(arguments.rsplit(", ", 1)[1]) if name == "pwrite64" else positions.get((number, held[0]), 0)
        yield "write", held[0], (at, data)
        if name == "write" and at >= 0:
            positions[number, held[0]] = at + result
    elif name == "ftruncate":
        yield "truncate", held[0], int(arguments.rsplit(", ", 1)[1])
    elif name in ("fsync", "fdatasync"):
        yield "sync", held[0], None
    elif name.startswith("rename"):
        yield "rename", paths[0], paths[1]
    elif name.startswith(("unlink", "rmdir")):
        yield "remove", paths[0], None
    elif name.startswith("mkdir"):
        yield "mkdir", paths[0], None
    else:
        for path in (*held, *paths):
            yield name, path, None


class _File:
    def __init__(self, data: bytes = b"") -> None:
        self.live, self.durable = bytearray(data), data


class _Folder:
    def __init__(self) -> None:
        self.live: dict[str, _File | _Folder] = {}
        self.durable: dict[str, _File | _Folder] = {}


class Disk:
    """A folder as it is and as it would be after a power cut; it begins with all of `root` on the disk."""

    def __init__(self, root: Path) -> None:
        self._root = self._load(root)
        self.acknowledged: list[str] = []

    def _load(self, path: Path) -> _Folder:
        folder = _Folder()
        for one in path.iterdir():
            folder.live[one.name] = self._load(one) if one.is_dir() else _File(one.read_bytes())
        folder.durable = dict(folder.live)
        return folder

    def _find(self, path: str) -> _File | _Folder:
        node: _File | _Folder = self._root
        for name in filter(None, path.split("/")):
            assert isinstance(node, _Folder)
            node = node.live[name]
        return node

    def _entries(self, path: str) -> tuple[dict[str, _File | _Folder], str]:
        parent, _, name = path.rpartition("/")
        folder = self._find(parent)
        assert isinstance(folder, _Folder)
        return folder.live, name

    def apply(self, op: Op) -> None:
        what, path, value = op
        if path == ACKS:
            if what == "write":
                self.acknowledged += value[1].decode().splitlines()  # type: ignore[index]
            return
        if what in ("write", "truncate", "sync"):
            node = self._find(path)
            if isinstance(node, _Folder):
                node.durable = dict(node.live)
            elif what == "sync":
                node.durable = bytes(node.live)
            elif what == "truncate":
                assert isinstance(value, int)
                node.live = node.live[:value].ljust(value, b"\0")
            else:
                at, data = value  # type: ignore[misc]
                at = len(node.live) if at < 0 else at
                node.live[at : at + len(data)] = data
            return
        entries, name = self._entries(path)
        if what == "create":
            entries.setdefault(name, _File())
        elif what == "mkdir":
            entries[name] = _Folder()
        elif what == "remove":
            entries.pop(name, None)
        elif what == "rename":
            target, new = self._entries(str(value))
            target[new] = entries.pop(name)
        else:
            raise NotImplementedError(f"{what} {path}")

    def after_cut(self, out: Path, chance: Random | None = None) -> None:
        """Write what is left after a cut now."""
        self._write(self._root, out, chance)

    def _write(self, folder: _Folder, out: Path, chance: Random | None) -> None:
        out.mkdir()
        kept = folder.live if chance is not None and chance.random() < 0.5 else folder.durable
        for name, node in kept.items():
            if isinstance(node, _Folder):
                self._write(node, out / name, chance)
            else:
                (out / name).write_bytes(_left(node, chance))


def _left(file: _File, chance: Random | None) -> bytes:
    """Return a file's content after a cut: what was synced, and by chance a part of what was appended since."""
    live = bytes(file.live)
    if chance is None or live == file.durable:
        return file.durable
    if live.startswith(file.durable):
        end = chance.randint(len(file.durable), len(live))
        return live if end > len(live) // SECTOR * SECTOR else live[: max(len(file.durable), end // SECTOR * SECTOR)]
    return live if chance.random() < 0.5 else file.durable
