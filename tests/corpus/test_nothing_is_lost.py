"""Every word of a file comes out in a document, or is named in the report: corpora in which each word stands once."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgym.corpus.documents import REASONS, Corpus, Loss, ReadingOptions, read_corpus
from kbgym.corpus.reading import missing_words

Word = Callable[[], str]


def words() -> Word:
    numbers = count(1)
    return lambda: f"w{next(numbers):03d}q"


def filled(template: str) -> str:
    """A template with a new word for each `@`."""
    word = words()
    return re.sub("@", lambda _: word(), template)


def unnamed(text: str, corpus: Corpus) -> set[str]:
    """The words of a text that are neither in the documents nor in the report."""
    said = "\n".join(document.text for document in corpus.documents)
    named = "\n".join(text for loss in corpus.lost for text in loss.texts)
    return {word for word in re.findall(r"w\d{3}q", text) if word not in said and word not in named}


YAML = """\
@: @
@:
  - @: @
    @: @ # @
  - @: [@, @]
  - @
# @
@: {@: @, "@": '@'}
@: |
  @ @. @ @.
  @
@: &@ @
@:
"""
TOML = (
    """\
@ = "@"
@ = ["@", "@"]
# @
[@.@]
@ = 17 # @
[[@]]
@ = "@"
[[@]]
@ = """
    + '"""@\n@"""\n'
)
MARKDOWN = """\
# @ @

@ *@* **@** `@! @` [@](@.md "@") [@][@] ![@](@.png) <https://@.org> @[^@] &amp; @. @?

[@]: https://@.org "@"

## @

Intro @:

- @
- @:
  - @
  - @. @ it.

    @ in @.

    ```@
    @
    ```
1. @
2. [ ] @

| @ | @ | @ |
| - | - | - |
| @ | @[^@] | |
| @ | [@](@) | | @ |

> @ @
> @

```@
@ @
```

    @

<!-- @ @ -->

<div class="@">@ <b>@</b> <img alt="@" src="@.png"></div>

<script>@</script>

Text @ <b title="@">@</b> <!-- @ --> @<br>@.

Status: @
Owner: @

@[^@] and [[@|@]] and [[@]] \\* @.

[^@]: @ @.

    @ @

[^@]: @

@
===

### @ @

#### @

## @ with nothing
"""
HTML = """\
<!DOCTYPE html><html><head><title>@</title><style>@</style><meta content="x"></head><body><nav>@</nav>
<h1>@</h1><p>@ <b>@</b> <a href="@">@</a> @&nbsp;@.<br>@</p><!-- @ --><script>var @;</script>
<h2>@</h2><ul><li>@<li>@<ul><li>@</ul></ul><dl><dt>@<dd>@<dd>@<dt>@</dl>
<p>@:</p><table><caption>@</caption><tr><th>@<th>@</tr><tr><td>@<td>@<td>@</tr><tr><th>@<td>@</tr></table>
<table><tr><th>@</table><form>@ <select><option>@</select></form><pre>@ @</pre><img alt="@" src="x">
<h3>@</h3><h2>@</h2>@</body></html>
"""
RST = """\
@ @
===

:@: @
:Author: @

@ *@* ``@`` `@ <https://@.org>`_ :ref:`@ <@>` :func:`@` |@| @_ [#@]_.

.. |@| replace:: @
.. _@: https://@.org
.. [#@] @ @.
.. @

.. note:: @

.. versionadded:: 1 @

.. py:function:: @(@)

   @ @.

   :param @: @

.. code-block:: python

   @

::

   @

@ @
---

- @

  - @

1. @

@
   @

+---------+---------+
| @   | @   |
+=========+=========+
| @   | @   |
+---------+---------+

.. list-table:: @
   :header-rows: 1

   * - @
     - @
   * - @
     - @

.. image:: @.png
   :alt: @

| @
| @

.. epigraph::

   @

   -- @

-a  @
"""
TEXT = "@ @\n\n@ @. @!\n\n@:\n- @\n- @\n  @\n\n1. @\n2) @\n@\n"
JSON = '{"@": "@", "@": {"@": ["@", {"name": "@", "@": true}, ["@"]], "@": null}, "@": ""}'
OBJECTS = '[{"title": "@", "text": "@ @. @", "@": "@", "@": ["@"]}, {"text": "@", "title": "", "@": {"@": "@"}}]'
LINES = '{"title": "@", "text": "@. @", "@": "@"}\n{"@": "@", "@": {"@": "@"}}\n'
CSV = "@,@,@\n@,@,\n@,,@\n"
CSV_TEXT = "title,text,@,@\n@,@. @,@,\n,@,,@\n"
CASES = {
    "yaml.md": f"---\ntitle: @\n{YAML}---\n{MARKDOWN}",
    "toml.md": f"+++\ntitle = '@'\n{TOML}+++\n{MARKDOWN}",
    "not-yaml.md": f"---\nTitle: @: @\nOther: [@\n---\n{MARKDOWN}",
    "plain.md": MARKDOWN,
    "rules.md": "---\n@ @\n\n---\n@ @\n",
    "page.html": HTML,
    "page.rst": RST,
    "data.yaml": f"{YAML}---\n- @\n- @: @\n",
    "data.toml": TOML,
    "data.json": JSON,
    "objects.json": OBJECTS,
    "array.jsonl": OBJECTS,
    "lines.jsonl": LINES,
    "table.csv": CSV,
    "texts.csv": CSV_TEXT,
    "notes.txt": TEXT,
}


@pytest.mark.parametrize("unit", ["passage", "sentence"])
@pytest.mark.parametrize("name", CASES)
def test_every_word_comes_out_or_is_named(tmp_path: Path, name: str, unit):
    text = filled(CASES[name])
    (tmp_path / name).write_text(text, encoding="utf-8")
    corpus = read_corpus([tmp_path], ReadingOptions(unit=unit))
    assert unnamed(text, corpus) == set()
    assert all(loss.why == REASONS[loss.what] and loss.count >= len(loss.texts) > 0 for loss in corpus.lost)


@pytest.mark.parametrize("name", ["yaml.md", "toml.md", "data.yaml", "data.json", "objects.json", "texts.csv"])
def test_front_matter_and_data_come_out_as_documents_but_for_comments(tmp_path: Path, name: str):
    text = filled(CASES[name].removesuffix(MARKDOWN))
    (tmp_path / name).write_text(text, encoding="utf-8")
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    said = "\n".join(document.text for document in corpus.documents)
    bare = re.sub(r"#[^\n]*|&w\d+q", "", text)
    assert [word for word in re.findall(r"w\d{3}q", bare) if word not in said] == []


def test_of_markdown_only_markup_is_lost_without_a_reader_saying_so(tmp_path: Path):
    """Names of footnotes and attributes of tags; everything else a reader gave or named itself."""
    text = filled(MARKDOWN)
    (tmp_path / "a.md").write_text(text)
    (other,) = (loss for loss in read_corpus([tmp_path], ReadingOptions(unit="sentence")).lost if loss.what == "other")
    markup = set(re.findall(r'(?:\[\^|=")(w\d{3}q)', text))
    assert {word for word in other.texts if re.fullmatch(r"w\d{3}q", word)} <= markup


PIECES = [piece for piece in re.split(r"\n\n+", MARKDOWN) if piece.strip()]


@settings(max_examples=30)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=12))
def test_in_any_order(tmp_path_factory, pieces):
    folder = tmp_path_factory.mktemp("any")
    text = filled("Begin @.\n\n" + "\n\n".join(pieces) + "\n")
    (folder / "a.md").write_text(text)
    assert unnamed(text, read_corpus([folder], ReadingOptions(unit="sentence"))) == set()


def test_a_word_no_reader_gave_is_named():
    assert missing_words("Ruth sails un*believ*ably &amp; well", ["Ruth sails unbelievably"], ["and"]) == ["well"]


def test_what_is_left_out_is_counted_and_shortened():
    loss = Loss("comment", REASONS["comment"])
    for _ in range(1_500):
        loss.add("x" * 300)
    assert (loss.count, loss.characters, len(loss.texts)) == (1_500, 450_000, 1_000)
    assert len(loss.texts[0]) == 200 and loss.texts[0].endswith("…")


def test_characters_nobody_sees_are_taken_out_and_counted(tmp_path: Path):
    (tmp_path / "a.md").write_text("# T\n\nRuth\u200b is\U000e0041 here\u202e.\n", encoding="utf-8")
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert [document.text for document in corpus.documents] == ["T: Ruth is here."]
    assert [(loss.what, loss.count, loss.texts) for loss in corpus.lost] == [("hidden character", 3, [])]
