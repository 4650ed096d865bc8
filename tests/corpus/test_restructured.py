"""reStructuredText, by docutils, becomes the documents a person would expect."""

from pathlib import Path

import pytest

from kbgym.corpus.documents import ReadingOptions, read_corpus

TEXT = """\
Boats
=====

:Author: Bettina Crane

The *Kestrel* uses ``panic!, assert!`` and `Yards <yards.rst>`_ [1]_. She is old.

.. note:: Watch the tide.

.. versionadded:: 3.2
   It floats.

Crew
----

Skipper
   Jonas Vael.

Mate : second
   Petra Lind.

- Sam

===== =====
Boat  Built
===== =====
Brent 1998
===== =====

.. code-block:: python

   x = 1

.. [1] In the north.
"""


def of(tmp_path: Path, content: str, name: str = "a.rst", **options) -> list[str]:
    (tmp_path / name).write_text(content, encoding="utf-8")
    return [document.text for document in read_corpus([tmp_path], ReadingOptions(unit="sentence", **options)).documents]


def test_what_comes_out(tmp_path):
    assert of(tmp_path, TEXT) == [
        "Boats: Author: Bettina Crane",
        "Boats: The Kestrel uses panic!, assert! and Yards . (Note: In the north.)",
        "Boats: She is old.",
        "Boats: Note: Watch the tide.",
        "Boats: Added in version 3.2 It floats.",
        "Boats > Crew: Skipper: Jonas Vael.",
        "Boats > Crew: Mate : second: Petra Lind.",
        "Boats > Crew: Sam",
        "Boats > Crew: Boat: Brent; Built: 1998",
        "Boats > Crew: x = 1",
    ]


def test_links_and_places(tmp_path):
    (tmp_path / "yards.rst").write_text("Yards\n=====\n\nElias is here.\n")
    (tmp_path / "a.rst").write_text(TEXT)
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence", links=True))
    linking = [document for document in corpus.documents if document.links]
    assert [document.text.split()[1] for document in linking] == ["The"] and linking[0].links == (
        corpus.documents[-1].id,
    )
    mate = next(document for document in corpus.documents if "Petra" in document.text)
    assert TEXT[mate.source.start :].startswith("Petra Lind")


@pytest.mark.parametrize("directive", [".. include:: {}", ".. raw:: html\n   :file: {}", ".. literalinclude:: {}"])
def test_no_other_file_is_ever_read(tmp_path, directive):
    secret = tmp_path / "secret"
    secret.write_text("the secret word")
    found = of(tmp_path, f"Ruth is here.\n\n{directive.format(secret)}\n")
    assert found[0] == "a: Ruth is here." and not any("secret word" in text for text in found)


def test_a_table_of_contents_is_named_and_no_document(tmp_path):
    (tmp_path / "a.rst").write_text(
        "Boats\n=====\n\n.. contents:: :local:\n\nCrew\n----\n\nJonas sails.\n\nTide\n----\n\nIt ebbs.\n"
    )
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert [document.text for document in corpus.documents] == ["Boats > Crew: Jonas sails.", "Boats > Tide: It ebbs."]
    assert [(loss.what, loss.count) for loss in corpus.lost if "contents" in loss.what] == [("table of contents", 1)]
