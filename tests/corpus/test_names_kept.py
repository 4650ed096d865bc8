"""Names that a format gives to what it holds are kept in the documents."""

import json

from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.corpus.reading import _LIGATURES

RST = """\
Settings
========

.. _cookies:

.. confval:: SESSION_COOKIE_NAME

   Default: ``'session'``

.. confval:: SESSION_COOKIE_PATH
   :default: None

.. py:function:: join(a, b)

   Joins strings. See :doc:`the yards <yards>`.
"""


def texts(tmp_path, **files: str) -> list[str]:
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return [one.text for one in read_corpus([tmp_path], ReadingOptions(unit="sentence")).documents]


def test_objects_of_rst_domains_carry_their_names(tmp_path):
    assert texts(tmp_path, a_rst=RST) == [
        "Settings: SESSION_COOKIE_NAME: Default: 'session'",
        "Settings: SESSION_COOKIE_PATH: Default: None",
        "Settings: join(a, b): Joins strings.",
        "Settings: join(a, b): See the yards.",
    ]


def test_doc_and_ref_are_links(tmp_path):
    (tmp_path / "a.rst").write_text(RST)
    (tmp_path / "yards.md").write_text("# Yards\n\nSee {ref}`the cookies <cookies>`.\n")
    settings, yards = read_corpus([tmp_path], ReadingOptions(links=True)).documents
    assert settings.links == (yards.id,) and yards.links == (settings.id,)


def test_a_qualified_name_is_one_word(tmp_path):
    assert texts(tmp_path, a_md="# Go\n\nUse strings.Join to join. It works.\n") == [
        "Go: Use strings.Join to join.",
        "Go: It works.",
    ]


def test_a_table_without_headers_keeps_its_columns(tmp_path):
    table = "<table><tr><td>Brent</td><td></td><td>7</td></tr><tr><td>Dipper</td><td>x</td><td>8</td></tr></table>"
    assert texts(tmp_path, a_html=table) == ["a: Brent; -; 7", "a: Dipper; x; 8"]


def test_a_notebook_has_its_outputs(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "\n", "High water is at six."]},
        {"cell_type": "code", "source": "print(x)", "outputs": [{"output_type": "stream", "text": ["17 boats\n"]}]},
        {"cell_type": "code", "source": "y", "outputs": [{"data": {"text/plain": "42", "image/png": "AAAA"}}]},
    ]
    assert texts(tmp_path, a_ipynb=json.dumps({"cells": cells})) == [
        "Tides: High water is at six.",
        "Tides: print(x)",
        "Tides: 17 boats",
        "Tides: y",
        "Tides: 42",
    ]


def test_ligatures_are_letters():
    assert "e\ufb03cient \ufb01sh".translate(_LIGATURES) == "efficient fish"
