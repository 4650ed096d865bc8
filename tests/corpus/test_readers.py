"""Markdown, HTML, text, JSONL and CSV become the documents a person would expect, each with its place in the file."""

import re
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.corpus.blocks import Broken, WordPositions
from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.corpus.markdown import read_markdown
from kbgym.corpus.reading import html_page

MARKDOWN = """\
---
title: "Harbour notes"
tags: [a, b]
---
Eight boats fish from Marrow Quay. They are old.

## Kestrel &amp; crew

The *Kestrel* was built by [Dunmore
Yard](yards.md) in `1987`. \\*She\\* is **18.5 m** long[^1].

The crew are:

- Jonas Vael, skipper
- Petra Lind:
  - mate
  - cook
- It leaks. Karl knows.

> Quoted by Amos Teller
> in 2020.

| Boat | Built |
| :--- | ---: |
| Dipper | 2015 |
| [[Brent\\|the Brent]] | |

```python
x = 1.0  # no sentence. At all.
```

Setext heading
--------------

It is green.

<div>Raw <b>HTML</b> about Ruth Calloway.</div>
"""


def texts(folder: Path, **options) -> list[str]:
    return [document.text for document in read_corpus([folder], ReadingOptions(unit="sentence", **options)).documents]


def of(tmp_path: Path, name: str, content: str, **options) -> list[str]:
    (tmp_path / name).write_text(content, encoding="utf-8")
    return texts(tmp_path, **options)


def test_markdown(tmp_path):
    assert of(tmp_path, "notes.md", MARKDOWN) == [
        "Harbour notes: tags: a",
        "Harbour notes: tags: b",
        "Harbour notes: Eight boats fish from Marrow Quay.",
        "Harbour notes: They are old.",
        "Harbour notes > Kestrel & crew: The Kestrel was built by Dunmore Yard in 1987.",
        "Harbour notes > Kestrel & crew: *She* is 18.5 m long.",
        "Harbour notes > Kestrel & crew: The crew are: Jonas Vael, skipper",
        "Harbour notes > Kestrel & crew: The crew are: Petra Lind: mate",
        "Harbour notes > Kestrel & crew: The crew are: Petra Lind: cook",
        "Harbour notes > Kestrel & crew: The crew are: It leaks.",
        "Harbour notes > Kestrel & crew: The crew are: Karl knows.",
        "Harbour notes > Kestrel & crew: Quoted by Amos Teller in 2020.",
        "Harbour notes > Kestrel & crew: Boat: Dipper; Built: 2015",
        "Harbour notes > Kestrel & crew: Boat: the Brent",
        "Harbour notes > Kestrel & crew: x = 1.0 # no sentence. At all.",
        "Harbour notes > Setext heading: It is green.",
        "Harbour notes > Setext heading: Raw HTML about Ruth Calloway.",
    ]


def test_every_document_knows_its_place(tmp_path):
    for name, content in (("notes.md", MARKDOWN), ("crlf.md", MARKDOWN.replace("\n", "\r\n")), ("page.html", HTML)):
        (tmp_path / name).write_bytes(content.encode())
    found = read_corpus([tmp_path], ReadingOptions(unit="sentence")).documents
    for document in (one for one in found if one.kind != "code"):
        source = document.source
        there = (tmp_path / source.file).read_text(encoding="utf-8")[source.start : source.end]
        words = unescape(there).translate(dict.fromkeys(map(ord, "*`|[]\\"), " "))
        shown = document.text.replace("*", " ")
        assert words.split()[0] in shown or "<" in there, (document, there)
        assert words.split()[-1].rstrip("1^") in shown or document.kind == "row" or "<" in there, (document, there)


HTML = """<!DOCTYPE html><html><head><title>Yards &amp; slips</title><style>p{color:red. Blue}</style></head>
<body><nav>Home. About.</nav><h1>Yards</h1><p>Dunmore Yard was founded by <b>Elias</b>&nbsp;Dunmore &lt;1921&gt;.
It has a dock.<br>The dock is dry.</p>
<script>if (a < b) { alert("No. Never."); }</script><!-- hidden. -->
<h2>Boats</h2><ul><li>Kestrel<li>Petrel, built by Finn Hallow.</ul>
<p>They mend:</p><ol><li>winches</li><li>rudders</li></ol>
<table><tr><th>Boat</th><th>Cost</th></tr><tr><td>Brent</td><td>5 &lt; 6</td></tr><tr><td>Dipper<td>7</table>
<pre>code. Here.</pre><p>a < b and Osric knows.</body></html>"""


def test_html(tmp_path):
    assert of(tmp_path, "page.html", HTML) == [
        "Yards: Dunmore Yard was founded by Elias Dunmore <1921>.",
        "Yards: It has a dock.",
        "Yards: The dock is dry.",
        "Yards > Boats: Kestrel",
        "Yards > Boats: Petrel, built by Finn Hallow.",
        "Yards > Boats: They mend: winches",
        "Yards > Boats: They mend: rudders",
        "Yards > Boats: Boat: Brent; Cost: 5 < 6",
        "Yards > Boats: Boat: Dipper; Cost: 7",
        "Yards > Boats: code. Here.",
        "Yards > Boats: a < b and Osric knows.",
    ]


def test_html_tables_definitions_and_images(tmp_path):
    assert of(
        tmp_path,
        "page.html",
        "<h1>Yards</h1><table><tr><th>Boat<th>Crew<th>Cost</tr><tr><td>Brent</td><td></td><td>7</td></tr></table>"
        "<p>Prices:</p><table><tr><th>Owner</th><td>Ruth</td></tr></table>"
        "<dl><dt>Slip</dt><dd>A slope. Boats use it.</dd><dt>Berth</dt><dd>A place.</dd></dl>"
        '<p>See <code>panic!, assert!</code> and <img src="a.png" alt="a red boat"> here.</p>',
    ) == [
        "Yards: Boat: Brent; Cost: 7",
        "Yards: Prices: Owner: Ruth",
        "Yards: Slip: A slope.",
        "Yards: Slip: Boats use it.",
        "Yards: Berth: A place.",
        "Yards: See panic!, assert! and a red boat here.",
    ]


@given(st.text(alphabet="<>!-/ab \"'=&;#x3?\n", max_size=200))
def test_html_never_fails_and_never_leaves_its_text(text):
    places = WordPositions(text)
    for block in html_page(text).blocks:
        start, end = places.find(block.text)
        assert 0 <= start < end <= len(text) + 1


@pytest.mark.parametrize(
    "piece",
    ["<!--", "<a", "<", '<a b="', "<![CDATA[", "<script>", "<p>", "<td>", "<li>", "&", "&a", "</", "<?", "<ul>x<li>"],
)
def test_hostile_html_is_read_in_one_pass(piece):
    """A quadratic reader would need hours for this; the deepest ones are refused."""
    text = piece * (300_000 // len(piece))
    try:
        html_page(text)
    except Broken as broken:
        assert "nested" in str(broken)


@pytest.mark.parametrize("piece", ["[", "![[](", "*a **b ", "`a", "<a ", "> ", "- ", "&", "[a](", "|a"])
def test_hostile_markdown_is_read(piece):
    read_markdown(piece * (300_000 // len(piece)))


WORDS = st.sampled_from(
    ["# Kestrel", "- item", "  - deeper", "text here.", "", "> quote", "| a | b |", "| - | - |", "`code`", "*em* it",
     "1. one", "[[Wiki]]", "[x](y.md)", "    indented", "<b>raw</b>", "\\* star", "Dr. Who", "end: "]
)  # fmt: skip


@given(st.lists(WORDS, max_size=25))
def test_markdown_of_any_shape_has_true_places(lines):
    text = "\n".join(lines)
    places = WordPositions(text)
    for block in read_markdown(text).blocks:
        start, end = places.find(block.words or block.text)
        assert 0 <= start < end <= len(text) + 1
        if block.kind in ("sentence", "item") and (first := re.search(r"\w+", block.text)):
            assert text[start:].startswith(first[0]), (block.text, text[start:])


def test_plain_text(tmp_path):
    content = (
        "Notices of the office\n\nThe ice house is\nclosed. Dag Halvorsen knows.\n\nBring:\n- ice\n- Nell's salt.\n"
    )
    assert of(tmp_path, "notices.txt", content) == [
        "Notices of the office: The ice house is closed.",
        "Notices of the office: Dag Halvorsen knows.",
        "Notices of the office: Bring: ice",
        "Notices of the office: Bring: Nell's salt.",
    ]


def test_jsonl(tmp_path):
    content = '{"title": "Kestrel", "text": "She is old. Jonas Vael sails her."}\n\n{"text": "Ruth is here."}\n'
    (tmp_path / "docs.jsonl").write_text(content)
    documents = read_corpus([tmp_path], ReadingOptions(unit="sentence")).documents
    assert [d.text for d in documents] == [
        "Kestrel: She is old.",
        "Kestrel: Jonas Vael sails her.",
        "docs: Ruth is here.",
    ]
    assert [content[d.source.start : d.source.end] for d in documents] == [content.splitlines()[n] for n in (0, 0, 2)]


def test_csv_with_and_without_a_text_column(tmp_path):
    (tmp_path / "a.csv").write_text('title,text\nPetrel,"She is ""green"".\nAmos Teller owns her."\n')
    (tmp_path / "b.tsv").write_text("Boat\tBuilt\nBrent\t1998\n\t\nDipper\t\n")
    documents = read_corpus([tmp_path], ReadingOptions(unit="sentence")).documents
    assert [d.text for d in documents] == [
        'Petrel: She is "green".',
        "Petrel: Amos Teller owns her.",
        "b: Boat: Brent; Built: 1998",
        "b: Boat: Dipper",
    ]
    text = (tmp_path / "b.tsv").read_text()
    assert [text[d.source.start : d.source.end] for d in documents[2:]] == ["Brent\t1998\n", "Dipper\t\n"]


def test_a_sentence_that_is_too_long_is_cut_and_counted(tmp_path):
    (tmp_path / "long.md").write_text("The Kestrel " + "sails, " * 2_000 + "and rests.")
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert corpus.long_sentences == 1 and len(corpus.documents) > 3
    assert all(len(document.text) <= 4_000 for document in corpus.documents)


def test_links_between_pages(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text(
        "# Alpha\n\nGo to [b](sub/b.md#x) or [[Beta Page]]. Ask [Nell](https://example.org). "
        "See [[Nothing]] here, Nell.\n"
    )
    (tmp_path / "sub" / "b.md").write_text(
        "# Beta Page\n\nBack to [a](../a.md) with Karl. Then to [[a|Alpha]] and Ruth.\n"
    )
    linked = read_corpus([tmp_path], ReadingOptions(unit="sentence", links=True))
    a, b = linked.documents[0], linked.documents[3]
    assert a.links == (b.id,) and b.links == (a.id,)
    assert linked.documents[4].links == (a.id,)
    assert linked.dead_links == 1
    assert not any(document.links for document in read_corpus([tmp_path], ReadingOptions(unit="sentence")).documents)
