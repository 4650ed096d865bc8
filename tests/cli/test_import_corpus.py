"""`kbgym import corpus` and the public sets as a user meets them, and the example from folder to examined store."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from kbgym.cli.main import run
from kbgym.gym.actions import Add, LinkMany
from kbgym.gym.environment import apply
from kbgym.trace.events import Acted, Committed
from kbgym.trace.folder import StoreFolder
from kbgym.worlds.kinds import description_of
from kbgym.worlds.world import Description, World

HARBOUR = Path(__file__).parents[2] / "examples" / "harbour"


def kbgym(capfdbinary, *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        run([str(argument) for argument in arguments])
    printed = capfdbinary.readouterr()
    return int(stopped.value.code or 0), printed.out.decode(), printed.err.decode()


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    shutil.copytree(HARBOUR, tmp_path / "harbour")
    return tmp_path / "harbour"


def imported(capfdbinary, harbour: Path, *more: object) -> dict:
    out = harbour.parent / "world"
    code, printed, err = kbgym(capfdbinary, "import", "corpus", harbour / "notes", "--out", out, "--json", *more)
    assert code == 0, err
    return json.loads(printed)


def test_the_example(capfdbinary, harbour):
    result = imported(capfdbinary, harbour, "--questions", harbour / "questions.csv", "--links")
    assert result["files"] == 7 and result["skipped"] == [] and result["leaks"] == []
    assert result["splits"] == {"train": 12, "test_in": 6, "eval": 2}
    assert result["links"] == 2 and result["dead_links"] == 0
    world = World.load(harbour.parent / "world")
    assert result["hash"] == world.hash and result["documents"] == len(world.documents)
    assert all(question.support for question in world.questions if not question.unanswerable)
    gold = [q for q in world.questions if not q.unanswerable]
    texts = {document.id: document.text.casefold() for document in world.documents}
    for question in gold:
        counted = question.text.startswith("How many")
        told = any(answer.casefold() in texts[id] for answer in question.golds for id in question.support)
        # A number of landings is the number of its supports; every other answer but the list of two boats is in one.
        assert question.golds == (str(len(question.support)),) if counted else told or "two boats" in question.text


def test_structure_links_pages(capfdbinary, harbour):
    imported(capfdbinary, harbour, "--structure")
    world = World.load(harbour.parent / "world")
    linked = [document for document in world.documents if document.links]
    assert sum(len(document.links) for document in linked) > 2  # more than the files' own
    # An update keeps the structure, whether it is asked for again or not.
    assert not any(imported(capfdbinary, harbour, "--update")["changes"][what] for what in ("added", "relinked"))
    (harbour / "notes" / "crane.md").write_text("# Crane\n\nThe crane serves the [boats](boats.md). It is red.\n")
    changes = imported(capfdbinary, harbour, "--update")["changes"]
    crane = {one.id: one for one in World.load(harbour.parent / "world").documents}[changes["added"][0]]
    assert len(crane.links) == 1 and "boats" in crane.links[0]


def test_the_example_of_pages(capfdbinary, tmp_path):
    """61 pages and 88 questions, more than half of them about fields, each answered by its supports."""
    skarn = HARBOUR.parent / "skarn"
    arguments = ("import", "corpus", skarn / "pages", "--questions", skarn / "questions.jsonl", "--links", "--json")
    code, printed, err = kbgym(capfdbinary, *arguments, "--out", tmp_path / "w")
    assert code == 0, err
    result = json.loads(printed)
    assert (result["files"], result["questions"], result["dead_links"]) == (61, 88, 0)
    assert result["left_out"] == result["ignored"] == result["skipped"] == result["leaks"] == []
    assert result["splits"] == {"train": 53, "test_in": 26, "eval": 9} and result["links"] > 80
    assert sum(path.stat().st_size for path in skarn.rglob("*.*")) < 300_000
    world = World.load(tmp_path / "w")
    texts = {document.id: document.text.casefold() for document in world.documents}
    asked = [question for question in world.questions if not question.unanswerable]
    classes = {"field": 30, "prose": 30, "whole field": 28}
    assert len(asked) == 86 and Counter(question.class_ for question in world.questions) == classes
    # What a whole field comes to (the most, how many) stands in no document of it.
    for question in (one for one in asked if one.class_ != "whole field"):
        told = any(gold.casefold() in texts[id] for gold in question.golds for id in question.support)
        assert told or question.golds[0] == str(len(question.support)), question


def test_what_is_said_of_the_documents_is_kept(capfdbinary, harbour):
    def described(*more: object) -> tuple[object, Description]:
        imported(capfdbinary, harbour, *more)
        world = World.load(harbour.parent / "world")
        return world.facts.get("description"), description_of(world)

    stored, drafted = described()
    assert stored is None and "7 pages" in drafted.about and any("Boat" in key for key in drafted.keys)
    stored, said = described("--update", "--set", "about= Notes of a harbour office. ")
    assert stored == {"about": "Notes of a harbour office."}
    assert said == Description("Notes of a harbour office.", drafted.forms, drafted.keys)
    assert described("--update") == (stored, said)
    file = harbour.parent / "world" / "world.json"
    facts = json.loads(file.read_text())
    file.write_text(json.dumps({**facts, "description": {**stored, "keys": ["a boat"]}}))
    stored, said = described("--update", "--set", "about=Other words.")
    assert stored == {"about": "Other words.", "keys": ["a boat"]} and said.keys == ("a boat",)


def test_questions_are_never_documents(capfdbinary, harbour):
    """The answers of an exam must not stand in the store, even when everything lies in one folder."""
    out = harbour.parent / "world"
    code, _, err = kbgym(capfdbinary, "import", "corpus", harbour, "--out", out)
    assert code == 2 and "questions.csv" in err and "--questions" in err
    code, _, _ = kbgym(capfdbinary, "import", "corpus", harbour, "--questions", harbour / "questions.csv", "--out", out)
    assert code == 0 and {d.source.file.split("/")[0] for d in World.load(out).documents} == {"notes"}


def test_again_changes_nothing(capfdbinary, harbour):
    first = imported(capfdbinary, harbour, "--questions", harbour / "questions.csv")
    again = imported(capfdbinary, harbour, "--questions", harbour / "questions.csv")
    updated = imported(capfdbinary, harbour, "--questions", harbour / "questions.csv", "--update")
    assert first == again and updated["hash"] == first["hash"]
    assert updated["changes"] == {
        "added": [],
        "edited": [],
        "removed": [],
        "relinked": [],
        "moved": 0,
        "renamed": {},
        "lost_supports": 0,
        "doubtful": [],
    }


def test_from_a_folder_to_a_trained_and_examined_store_that_follows_its_files(capfdbinary, harbour):
    imported(capfdbinary, harbour, "--questions", harbour / "questions.csv")
    world, trained = harbour.parent / "world", harbour.parent / "run"
    code, _, err = kbgym(
        capfdbinary,
        "train",
        "--world",
        world,
        "--out",
        trained,
        "--questions",
        12,
        "--epochs",
        1,
        "--set",
        "embedder=hash",
    )
    assert code == 0, err
    code, printed, err = kbgym(capfdbinary, "exam", trained, "--set", "test_in", "--json")
    assert code == 0 and json.loads(printed)["n"] == 6, err
    before = StoreFolder(trained).iteration

    boats = harbour / "notes" / "boats.md"
    boats.write_text(boats.read_text().replace("Her hull is green;", "Her hull is blue now;"))
    (harbour / "notes" / "notices.txt").unlink()
    result = imported(capfdbinary, harbour, "--update", "--store", trained)
    assert len(result["changes"]["edited"]) == 1 and len(result["changes"]["removed"]) == 1
    assert result["store"]["iteration"] == before + 1 and result["store"]["edited"] == 1
    store = StoreFolder(trained).store()
    (edited,) = result["changes"]["edited"]
    assert "blue now" in store[edited].text and store[edited].flag == "untouched"
    code, printed, _ = kbgym(capfdbinary, "store", "read", trained, edited, "--source")
    assert code == 0 and "stands in boats.md" in printed
    assert kbgym(capfdbinary, "store", "replay", trained)[0] == 0
    code, printed, _ = kbgym(capfdbinary, "audit", trained)
    assert code == 0 and "0 lost origins" in printed and "original fact" not in printed, "withdrawn is not lost"
    assert kbgym(capfdbinary, "audit", trained, "--world", world)[0] == 0, "the world of now has fewer documents"
    code, printed, _ = kbgym(
        capfdbinary, "import", "corpus", harbour / "notes", "--out", world, "--update", "--store", trained
    )
    assert code == 0 and "No document changed." in printed and "is up to date" in printed


def test_a_broken_file_is_refused_or_named(capfdbinary, harbour):
    (harbour / "notes" / "broken.md").write_bytes(b"Ruth \xff")
    out = harbour.parent / "world"
    code, _, err = kbgym(
        capfdbinary, "import", "corpus", harbour / "notes", "--questions", harbour / "questions.csv", "--out", out
    )
    assert code == 2 and "broken.md" in err and not out.exists()
    code, printed, _ = kbgym(
        capfdbinary,
        "import",
        "corpus",
        harbour,
        "--questions",
        harbour / "questions.csv",
        "--out",
        out,
        "--set",
        "on_error=skip",
    )
    assert code == 0 and "left out: notes/broken.md" in printed and World.load(out).documents


def test_the_report_names_what_is_not_in_the_documents(capfdbinary, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("---\ntitle: Kestrel\nbuilt: 1987 # or so\n---\nShe is [old](b.md). <!-- no -->\n")
    for number in range(25):
        (notes / f"photo{number:02d}.png").write_bytes(b"x")
    code, printed, _ = kbgym(capfdbinary, "import", "corpus", notes, "--out", tmp_path / "w")
    assert code == 0 and f"{(notes / 'a.md').stat().st_size} bytes in, 33 characters out." in printed
    assert "comment (2 of " in printed and "link target (1 of 4 characters): a link" in printed
    assert "not read: photo00.png (.png: not a format that is read)" in printed and "photo09.png" in printed
    assert "photo10.png" not in printed and "... and 15 more (see --json)" in printed
    result = json.loads(kbgym(capfdbinary, "import", "corpus", notes, "--out", tmp_path / "w", "--json")[1])
    assert len(result["ignored"]) == 25 and result["characters"] == 33 and result["empty"] == []
    assert {loss["what"]: loss["texts"] for loss in result["left_out"]}["comment"] == ["# or so", "<!-- no -->"]


def test_a_folder_of_other_formats_says_which(capfdbinary, tmp_path):
    (tmp_path / "a.odt").write_text("Ruth")
    code, _, err = kbgym(capfdbinary, "import", "corpus", tmp_path, "--out", tmp_path / "w")
    assert code == 2 and "a.odt" in err and ".odt: not a format that is read" in err


def test_an_update_says_what_it_means_for_questions_and_indexes(capfdbinary, tmp_path):
    notes, world, run_ = tmp_path / "notes", tmp_path / "w", tmp_path / "run"
    notes.mkdir()
    boats = "# Boats\n\n- Kestrel: owner Ingrid Falk\n- Turnstone: owner Ingrid Falk\n- Petrel: owner Amos Teller\n"
    (notes / "boats.md").write_text(boats)
    (tmp_path / "q.csv").write_text("question,answer,support\nWho owns the Petrel?,Amos Teller,owner Amos Teller\n")
    add = ("import", "corpus", notes, "--unit", "sentence", "--out", world)
    assert kbgym(capfdbinary, *add, "--questions", tmp_path / "q.csv")[0] == 0
    shutil.copytree(world, run_ / "world")
    folder = StoreFolder(run_)
    store = folder.store()
    links = tuple(record.id for record in store if "Ingrid" in record.text)
    actions = [Add("Everything about Ingrid Falk"), LinkMany("n1", links)]
    with folder.start("hash", {}) as writer:
        acts = [Acted(1, "backward", n, action, apply(store, action)) for n, action in enumerate(actions, 1)]
        writer.commit([*acts, Committed(1, 1, store.fingerprint, len(store), store.links)])
    (notes / "boats.md").unlink()
    new = boats.replace("Petrel: owner Amos Teller", "Petrel: owner Nell Osgood") + "- Heron: owner Ingrid Falk\n"
    (notes / "fleet.md").write_text(new)
    code, printed, err = kbgym(capfdbinary, *add, "--update", "--store", run_)
    assert code == 0, err
    assert "1 documents added, 1 edited, 0 removed" in printed and "boats.md is fleet.md now" in printed
    assert "'Who owns the Petrel?': its answer 'Amos Teller' is not there any more, with 1 edited" in printed


def test_an_update_needs_a_world_and_a_store_an_update(capfdbinary, harbour, tmp_path):
    code, _, err = kbgym(capfdbinary, "import", "corpus", harbour / "notes", "--out", tmp_path / "w", "--update")
    assert code == 2 and "is not a world" in err
    code, _, err = kbgym(
        capfdbinary, "import", "corpus", harbour / "notes", "--out", tmp_path / "w", "--store", tmp_path / "r"
    )
    assert code == 2 and "--update" in err


def test_other_content_is_never_written_over(capfdbinary, harbour):
    imported(capfdbinary, harbour, "--questions", harbour / "questions.csv")
    (harbour / "notes" / "yards.md").unlink()
    code, _, err = kbgym(capfdbinary, "import", "corpus", harbour / "notes", "--out", harbour.parent / "world")
    assert code == 2 and "exists with other content" in err


@pytest.mark.parametrize("source", ["corpus", "hotpotqa", "2wiki", "musique"])
def test_help_has_an_example(capfdbinary, source):
    code, printed, _ = kbgym(capfdbinary, "import", source, "--help")
    assert code == 0 and f"kbgym import {source}" in printed


def test_a_public_set(capfdbinary, tmp_path):
    entry = {
        "_id": "a",
        "question": "Who?",
        "answer": "Ruth",
        "supporting_facts": [["P", 0]],
        "context": [["P", ["Ruth."]]],
    }
    (tmp_path / "dev.json").write_text(json.dumps([entry]))
    code, printed, _ = kbgym(capfdbinary, "import", "hotpotqa", tmp_path / "dev.json", "--out", tmp_path / "w")
    assert code == 0 and "1 document, 1 question" in printed and "without a store" in printed
    assert World.load(tmp_path / "w").facts["dataset"] == "hotpotqa"
