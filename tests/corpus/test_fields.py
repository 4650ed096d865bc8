"""Front matter and files of data: one document a value, as the file writes it, with the path that leads to it."""

from pathlib import Path

import pytest

from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.corpus.fields import read_yaml

ANGULAR = """\
---
title: Angular
category: framework # of the web
tags: [google, javascript]
releases:
  - cycle: "17"
    eol: 2025-05-15
    lts: no
    latest: 17.10
  - cycle: "16"
    eol: 2024-11-08
link:
---
Angular is a framework. It is old.
"""


def of(tmp_path: Path, name: str, content: str, **options) -> list[str]:
    (tmp_path / name).write_text(content, encoding="utf-8")
    return [document.text for document in read_corpus([tmp_path], ReadingOptions(unit="sentence", **options)).documents]


def test_yaml_front_matter(tmp_path):
    assert of(tmp_path, "angular.md", ANGULAR) == [
        "Angular: category: framework",
        "Angular: tags: google",
        "Angular: tags: javascript",
        "Angular: releases: cycle 17: eol: 2025-05-15",
        "Angular: releases: cycle 17: lts: no",
        "Angular: releases: cycle 17: latest: 17.10",
        "Angular: releases: cycle 16: eol: 2024-11-08",
        "Angular: link: (no value)",
        "Angular: Angular is a framework.",
        "Angular: It is old.",
    ]
    documents = read_corpus([tmp_path], ReadingOptions(unit="sentence")).documents
    assert {document.kind for document in documents[:8]} == {"field"}
    assert {document.about for document in documents} == {("Angular",)}
    there = [ANGULAR[document.source.start : document.source.end] for document in documents[:7]]
    assert there == ["framework", "google", "javascript", "2025-05-15", "no", "17.10", "2024-11-08"]


def test_toml_front_matter(tmp_path):
    content = "+++\ntitle = 'Petrel'\nbuilt = 1994-05-01\nlength = 12.50\n[owner]\nname = 'Amos'\n+++\nShe is green.\n"
    assert of(tmp_path, "p.md", content) == [
        "Petrel: built: 1994-05-01",
        "Petrel: length: 12.50",
        "Petrel: owner: name: Amos",
        "Petrel: She is green.",
    ]


def test_front_matter_that_is_no_yaml_is_read_line_by_line(tmp_path):
    assert of(tmp_path, "a.md", "---\nStatus: open: for now\nOwner: [Ruth\n---\nShe is green.\n") == [
        "a: Status: open: for now",
        "a: Owner: [Ruth",
        "a: She is green.",
    ]


def test_a_text_between_two_rules_is_no_front_matter(tmp_path):
    assert of(tmp_path, "a.md", "---\nRuth is here\n\n---\nNell too\n") == ["a: Ruth is here", "a: Nell too"]


def test_yaml_and_toml_and_json_files(tmp_path):
    (tmp_path / "boats.yaml").write_text(
        "- name: Kestrel\n  crew: {mate: Petra, cook: Sam}\n- name: Kestrel\n  built: 1987\n- [1, 2]\n"
    )
    (tmp_path / "c.toml").write_text("name = 'kb'\n[tool.x]\nports = [80, 8080]\n")
    (tmp_path / "d.json").write_text('{"title": "Prices", "berth": {"5": 55.50, "6": null}, "n": 1e3}')
    assert [document.text for document in read_corpus([tmp_path], ReadingOptions(unit="sentence")).documents] == [
        "boats: Kestrel: crew: mate: Petra",
        "boats: Kestrel: crew: cook: Sam",
        "boats: Kestrel (2): built: 1987",
        "boats: 3: 1",
        "boats: 3: 2",
        "kb: name: kb",
        "kb: tool: x: ports: 80",
        "kb: tool: x: ports: 8080",
        "Prices: title: Prices",
        "Prices: berth: 5: 55.50",
        "Prices: berth: 6: (no value)",
        "Prices: n: 1e3",
    ]


def test_aliases_and_merges_are_what_they_name(tmp_path):
    content = "base: &b {sail: red, mast: 1}\nkestrel:\n  <<: *b\n  mast: 2\npetrel: *b\n"
    assert of(tmp_path, "a.yml", content)[2:] == [
        "a: kestrel: sail: red",
        "a: kestrel: mast: 1",
        "a: kestrel: mast: 2",
        "a: petrel: sail: red",
        "a: petrel: mast: 1",
    ]


def test_a_long_value_is_split_into_sentences_that_all_have_the_path(tmp_path):
    content = "note: |\n  The Kestrel is a trawler of the old kind. " + "She is slow, and so on and so on. " * 8 + "\n"
    found = of(tmp_path, "a.yaml", content)
    assert len(found) == 9 and all(text.startswith("a: note: ") for text in found)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
@pytest.mark.parametrize("array", [True, False])
def test_objects_with_a_text_in_an_array_or_one_a_line(tmp_path, name, array):
    lines = [
        '{"title": "Kestrel", "text": "She is old.", "owner": "Ingrid"}',
        '{"title": "Petrel", "text": "She is green."}',
    ]
    content = f"[{', '.join(lines)}]" if array else "\n".join(lines)
    assert of(tmp_path, name, content) == ["Kestrel: She is old.", "Kestrel: owner: Ingrid", "Petrel: She is green."]


def test_other_columns_of_a_csv_with_texts_are_fields(tmp_path):
    content = "title,text,owner,built\nKestrel,She is old.,Ingrid,\n"
    assert of(tmp_path, "a.csv", content) == ["Kestrel: She is old.", "Kestrel: owner: Ingrid"]


def test_comments_are_found_between_values_only():
    _, comments = read_yaml("a: 'x # y' # one\n# two\nb: c#d\ne: |\n  # text\n")
    assert comments == ["# one", "# two"]
