"""Unreadable files are named, and skipped or refused as the user chose; nothing is imported partially."""

import os
import resource
import sys
from pathlib import Path

import pytest

from kbgym.corpus import files
from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.errors import BadInput

GOOD = "# Boats\n\nThe Kestrel is a trawler. She is old.\n"


def bad_encoding(path: Path) -> None:
    path.with_suffix(".md").write_bytes(b"The Kestrel is fine. " * 50 + b"\xff\xfe broken")


def binary(path: Path) -> None:
    path.with_suffix(".md").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")


def gigabyte_line(path: Path) -> None:
    with path.with_suffix(".md").open("wb") as file:
        file.truncate(1 << 30)


def gigabyte_row(path: Path) -> None:
    with path.with_suffix(".jsonl").open("wb") as file:
        file.write(b'{"text": "Ruth is here."}\n')
        file.truncate(1 << 30)


def deep_html(path: Path) -> None:
    path.with_suffix(".html").write_text("<p>Ruth is here.</p>" + "<div>" * 200_000 + "bomb")


def huge_html(path: Path) -> None:
    path.with_suffix(".html").write_bytes(b"<b>a</b>" * (5 << 20))


def pipe(path: Path) -> None:
    os.mkfifo(path.with_suffix(".md"))


def half_jsonl(path: Path) -> None:
    path.with_suffix(".jsonl").write_text('{"text": "Ruth is here."}\n{"text": 7}\n')


def half_csv(path: Path) -> None:
    path.with_suffix(".csv").write_text("Boat,Built\nBrent,1998\nDipper,2015,extra\n")


def unclosed_csv(path: Path) -> None:
    path.with_suffix(".csv").write_text('text\nRuth is here.\n"never closed\n')


def questions(path: Path) -> None:
    path.with_suffix(".csv").write_text("question,answer\nWho owns the Kestrel?,Ingrid Falk\n")


BROKEN = {
    bad_encoding: "not UTF-8",
    binary: "binary",
    gigabyte_line: "too many",
    gigabyte_row: "more than 1,048,576 bytes",
    deep_html: "nested more than 200 deep",
    huge_html: "too many",
    pipe: "no regular file",
    half_jsonl: "line 2",
    half_csv: "3 cells",
    unclosed_csv: "line 3",
    questions: "--questions",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda function: function.__name__)
def test_a_broken_file(tmp_path, broken):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "good.md").write_text(GOOD)
    whole = read_corpus([folder], ReadingOptions(unit="sentence")).documents
    broken(folder / "broken")
    with pytest.raises(BadInput, match="broken") as refused:
        read_corpus([folder], ReadingOptions(unit="sentence"))
    assert BROKEN[broken] in str(refused.value) and "--set on_error=skip" in str(refused.value)
    skipped = read_corpus([folder], ReadingOptions(unit="sentence", on_error="skip"))
    assert skipped.documents == whole and skipped.files == 1
    assert skipped.skipped and all(problem.file.startswith("broken") for problem in skipped.skipped)


def test_a_gigabyte_is_not_read_to_find_out(tmp_path):
    gigabyte_line(tmp_path / "a")
    gigabyte_row(tmp_path / "b")
    (tmp_path / "good.md").write_text(GOOD)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read_corpus([tmp_path], ReadingOptions(unit="sentence", on_error="skip"))
    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 100 << 20


def test_a_file_that_grew_after_it_was_measured_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.md").write_text(GOOD)
    found = files.walk([tmp_path]).files[0]
    monkeypatch.setattr(files, "MOST_FILE", 10)
    with pytest.raises(files.Broken, match="more than 10 bytes"):
        files.read_text(found)


def test_other_encodings_that_say_what_they_are(tmp_path):
    (tmp_path / "a.txt").write_bytes("Größe: Ruth ist groß.".encode("utf-16"))
    (tmp_path / "b.md").write_bytes("\ufeffÄ Ruth.".encode())
    (tmp_path / "c.html").write_bytes('<meta charset="iso-8859-1"><p>Über Ruth.'.encode("cp1252"))
    assert [d.text for d in read_corpus([tmp_path], ReadingOptions(unit="sentence")).documents] == [
        "a: Größe: Ruth ist groß.",
        "b: Ä Ruth.",
        "c: Über Ruth.",
    ]


LINKS = {"same.md": "a.md", "there": "/etc", "loop": ".", "circle.md": "circle.md", "dead.md": "nothing"}


def test_hidden_and_other_files_and_links_are_passed_over_and_named(tmp_path):
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / ".secret.md").write_text("Ruth is hidden.")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.md").write_text("Ruth is hidden.")
    (tmp_path / "photo.png").write_bytes(b"\0")
    for name, target in LINKS.items():
        (tmp_path / name).symlink_to(target)
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert (corpus.files, len(corpus.documents)) == (1, 2)
    assert {problem.file: problem.reason for problem in corpus.ignored} == {
        ".git": "hidden",
        ".secret.md": "hidden",
        "photo.png": ".png: not a format that is read",
    } | dict.fromkeys(LINKS, "a symbolic link; name its target to import it")


@pytest.mark.parametrize("name", ["missing.md", "photo.png"])
def test_a_path_that_was_named_must_be_readable(tmp_path, name):
    (tmp_path / "photo.png").write_bytes(b"x")
    with pytest.raises(BadInput, match=name):
        read_corpus([tmp_path / name], ReadingOptions(unit="sentence", on_error="skip"))


def test_two_folders_keep_their_names_apart(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(GOOD)
    corpus = read_corpus([tmp_path / "one", tmp_path / "two"], ReadingOptions(unit="sentence"))
    assert {d.source.file for d in corpus.documents} == {"one/a.md", "two/a.md"}
    assert len({d.id for d in corpus.documents}) == 4


def test_nothing_to_read_is_said(tmp_path):
    (tmp_path / "a.md").write_text("---\n\n***\n")
    with pytest.raises(BadInput, match="no text"):
        read_corpus([tmp_path], ReadingOptions(unit="sentence"))


def test_a_folder_of_formats_nobody_reads_names_them(tmp_path):
    for name in ("a.odt", "b.svg", ".hidden"):
        (tmp_path / name).write_text("Ruth.")
    with pytest.raises(BadInput) as refused:
        read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert "a.odt" in str(refused.value) and ".odt: not a format" in str(refused.value) and ".svg" in str(refused.value)


def test_a_file_that_gives_nothing_is_named(tmp_path):
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / "b.md").write_text("# Only a title\n")
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert corpus.empty == ["b.md"] and corpus.files == 2
    assert corpus.bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert corpus.characters == sum(len(document.text) for document in corpus.documents)


@pytest.mark.parametrize("ending", [ending for ending, format in files.FORMATS.items() if format != "converted"])
@pytest.mark.parametrize("content", ["", " \n", "\ufeff"])
def test_an_empty_file_is_named_whatever_it_is(tmp_path, ending, content):
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / f"b{ending}").write_text(content, encoding="utf-8")
    assert read_corpus([tmp_path], ReadingOptions(unit="sentence"), tick=lambda *_: None).empty == [f"b{ending}"]


def deep_yaml(path: Path) -> None:
    path.with_suffix(".yaml").write_text("a: " + "[" * 100_000)


def yaml_bomb(path: Path) -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    path.with_suffix(".yaml").write_text("\n".join(lines))


def yaml_circle(path: Path) -> None:
    path.with_suffix(".yml").write_text("a: &a\n  b: *a\n  c: 1\n")


def deep_json(path: Path) -> None:
    path.with_suffix(".json").write_text("[" * 200_000)


def bad_toml(path: Path) -> None:
    path.with_suffix(".toml").write_text("a = [1\nb = 2")


def json_questions(path: Path) -> None:
    path.with_suffix(".json").write_text('[{"question": "Who?", "answer": "Ruth"}]')


DATA = {
    deep_yaml: "nested more than 60 deep",
    yaml_bomb: "unfold",
    yaml_circle: "back to itself",
    deep_json: "nested more than 60 deep",
    bad_toml: "no TOML",
    json_questions: "--questions",
}


@pytest.mark.parametrize("broken", DATA, ids=lambda function: function.__name__)
def test_broken_data(tmp_path, broken):
    (tmp_path / "good.md").write_text(GOOD)
    broken(tmp_path / "broken")
    with pytest.raises(BadInput, match="broken") as refused:
        read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert DATA[broken] in str(refused.value)
    assert len(read_corpus([tmp_path], ReadingOptions(unit="sentence", on_error="skip")).documents) == 2
