"""The public surface: every promised name is there, can be used again and again, and importing kbgym costs nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import pytest

import kbgym

HOME = Path(kbgym.__file__).parent


def test_every_public_name_is_there():
    assert sorted(kbgym.__all__) == sorted([*kbgym._MODULE_OF, "__version__"]) == sorted(dir(kbgym))
    for name in kbgym.__all__:
        assert getattr(kbgym, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = kbgym.nonsense


def test_no_public_name_is_also_a_modules():
    """Importing `kbgym.NAME` would put the module in the place of what was promised."""
    modules = {path.stem for path in HOME.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert modules.isdisjoint(kbgym.__all__)


def test_every_public_class_describes_its_fields_and_methods():
    for cls in (found for name in kbgym.__all__ if isinstance(found := getattr(kbgym, name), type)):
        assert cls.__doc__, cls
        for field in getattr(cls, "__struct_fields__", ()):
            assert f"        {field}: " in cls.__doc__, f"{cls.__name__}.{field}"
        for name, member in vars(cls).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property | cached_property)):
                assert member.__doc__, f"{cls.__name__}.{name}"


# What is called, and what must come of it; a name is called twice, as a user would.
USED = """
Action: kbgym.Search("x").query == "x" and isinstance(kbgym.Done(), kbgym.Action)
Add: kbgym.Add("A sentence.").text
Answer: kbgym.Answer("blue").text == "blue"
Delete: kbgym.Delete("d1").id
Edit: kbgym.Edit("d1", "Now.").text
Link: kbgym.Link("a", "b").target
LinkMany: kbgym.LinkMany("a", ("b",)).targets
Read: kbgym.Read("d1").id
Unlink: kbgym.Unlink("a", "b").source
documents: kbgym.documents("[d1] One.\\n[d2] Two.") == [("d1", "One."), ("d2", "Two.")]
open: kbgym.open(folder).kind == "world"
Workspace: isinstance(kbgym.open(folder), kbgym.Workspace)
import_corpus: len(kbgym.import_corpus(notes).documents) == 1
train: kbgym.train(world, run, questions=1, epochs=1, embedder="hash", eval=False).iteration == 1
Exam: kbgym.Exam([]).summary.n == 0
frame: callable(kbgym.frame)
Environment: kbgym.Environment(kbgym.Store(), kbgym.Engine(HashEmbedder())).ranking == "paper"
play: callable(kbgym.play)
Transcript: kbgym.Transcript("reader", "answered", ()).characters == 0
BadInput: issubclass(kbgym.BadInput, kbgym.KbgymError)
Damaged: issubclass(kbgym.Damaged, kbgym.BadInput)
Failed: kbgym.Failed("no").exit_code == 1
Missing: kbgym.Missing("no").exit_code == 2
grade: kbgym.grade("the Blue", ("blue",), False).f1 == 1.0
ReaderEnv: kbgym.ReaderEnv.metadata
AgentFailed: str(kbgym.AgentFailed("no")) == "no"
Backward: kbgym.Backward("q", (), ("g",), 0.0, "wrong").golds
Forward: kbgym.Forward("q").question == "q"
Policy: kbgym.Policy.act
View: kbgym.View("reader", kbgym.Forward("q"), (), 3).remaining == 3
Row: kbgym.Row.__struct_fields__
examine: kbgym.run_sync(kbgym.examine(kbgym.Store(), kbgym.Engine(HashEmbedder()), (), None)) == []
summarise: kbgym.summarise([]).n == 0
gradient: callable(kbgym.gradient)
probe_run: callable(kbgym.probe_run)
Run: kbgym.Run(run).settings.questions == 1
Settings: kbgym.Settings(seed=3).seed == 3
Agents: kbgym.Agents(None, None).described == {}
Trainer: callable(kbgym.Trainer)
default_embedder: callable(kbgym.default_embedder)
Ledger: kbgym.ledger(kbgym.Store()) == kbgym.Ledger(*[0] * len(kbgym.Ledger.__struct_fields__))
Record: kbgym.Record("d1", "One.").text
run_sync: callable(kbgym.run_sync)
StoreFolder: kbgym.StoreFolder(folder).iteration == 0
open_folder: kbgym.open_folder(folder).iteration == 0
save_store: kbgym.save_store(kbgym.Store(), run.parent / "saved") is None
generate: kbgym.generate(people=40).documents
Document: kbgym.Document("d1", "One.").id
Key: kbgym.Key("city", "Lund") < kbgym.Key("job", "baker")
Question: kbgym.Question("q", "train", "c", "t", "Who?", ("I",)).golds
World: kbgym.World((kbgym.Document("d1", "One."),)).hash
__version__: kbgym.__version__[0].isdigit()
"""


def test_every_public_name_does_what_it_is_for(tmp_path):
    """`kbgym.grade` once worked a single time: then the module of that name stood in its place."""
    from kbgym.search.embed import HashEmbedder

    (tmp_path / "note.txt").write_text("The Kestrel is blue.")
    world = kbgym.generate(people=40)
    world.save(tmp_path / "world")
    known = {"kbgym": kbgym, "HashEmbedder": HashEmbedder, "world": world, "folder": tmp_path / "world"}
    known |= {"notes": tmp_path / "note.txt", "run": tmp_path / "run"}
    lines = dict(line.split(": ", 1) for line in USED.strip().splitlines())
    assert set(re.findall(r"kbgym\.(\w+)", " ".join(lines.values()))) == set(kbgym.__all__)
    for _ in range(2):
        for name, code in lines.items():
            assert eval(code, known), name


def test_importing_kbgym_is_free():
    code = "import sys, kbgym; sys.exit(any(m in sys.modules for m in ('numpy', 'onnxruntime', 'click', 'rich')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_loads_no_verb():
    code = (
        "import sys\nfrom kbgym.cli.main import run\n"
        "try:\n    run(['--help'])\nexcept SystemExit:\n    pass\n"
        "sys.exit('onnxruntime' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_the_package_is_a_command_too(tmp_path):
    done = subprocess.run([sys.executable, "-m", "kbgym", "--version"], check=False, capture_output=True, text=True)
    assert done.returncode == 0 and kbgym.__version__ in done.stdout
    flags = ["--people", "60", "--questions", "12", "--epochs", "1", "--n", "2", "--set", "embedder=hash", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "kbgym", "demo", "--out", str(tmp_path / "run"), *flags],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and '"groups"' in done.stdout, done.stderr


def test_a_class_name_means_one_thing_in_its_package():
    """Integrations are left out: each of their modules is for another framework."""
    found: dict[tuple[str, str], list[str]] = {}
    for file in sorted(HOME.rglob("*.py")):
        package, *_ = file.relative_to(HOME).parts
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and package != "integrations":
                found.setdefault((package, node.name), []).append(str(file.relative_to(HOME)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
