"""The context put before a sentence so that it stands alone: title, sections, introductions and footnotes."""

from pathlib import Path

from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.corpus.statements import MOST_CONTEXT, MOST_TEXT, context


def of(tmp_path: Path, content: str, name: str = "a.md", **options) -> list[str]:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content, encoding="utf-8")
    return [document.text for document in read_corpus([tmp_path], ReadingOptions(unit="sentence", **options)).documents]


def test_in_any_language(tmp_path):
    found = of(tmp_path, "# Ada Berg\n\nEr wohnt in Hamburg. Dort ist es schön.\n", language="de")
    assert found == ["Ada Berg: Er wohnt in Hamburg.", "Ada Berg: Dort ist es schön."]


def test_what_a_program_prints_has_what_introduces_the_program(tmp_path):
    content = (
        "# T\n\nRun it like this:\n\n```\nrun a\n```\n\n```\nA\n```\n\nThis takes a minute.\n\n## S\n\n```\nB\n```\n"
    )
    assert of(tmp_path, content) == [
        "T: Run it like this: run a",
        "T: Run it like this: A",
        "T: This takes a minute.",
        "T > S: B",
    ]


def test_lists_tables_and_code_have_what_introduces_them(tmp_path):
    content = """# T

Prices in crowns:

| Berth | Fee |
| - | - |
| 5 | 55 |

The crew:

1. Jonas. He is old.

   Since 1996.

   ```
   sail()
   ```
2. Petra

Run this:

    make
"""
    assert of(tmp_path, content) == [
        "T: Prices in crowns: Berth: 5; Fee: 55",
        "T: The crew: Jonas.",
        "T: The crew: He is old.",
        "T: The crew: Since 1996.",
        "T: The crew: sail()",
        "T: The crew: Petra",
        "T: Run this: make",
    ]


def test_quotations_have_what_introduces_them(tmp_path):
    content = "# T\n\nRuth says:\n\n> Boats leak.\n\nThe crew of the Brent are:\n\n- Jonas\n\nThey are old.\n"
    assert of(tmp_path, content) == [
        "T: Ruth says: Boats leak.",
        "T: The crew of the Brent are: Jonas",
        "T: They are old.",
    ]


def test_a_heading_is_the_title_only_if_it_names_the_page(tmp_path):
    assert of(tmp_path, "# Summary\n\nRuth.\n\n# Design\n\nNell.\n", "0042-sails.md") == [
        "0042 sails > Summary: Ruth.",
        "0042 sails > Design: Nell.",
    ]
    assert of(tmp_path, "## First\n\nRuth.\n\n# Late\n\nNell.\n", "x.md")[-1] == "x > Late: Nell."


def test_notes_of_myst(tmp_path):
    content = """# T

(name)=

Use {ref}`the words <target>` and {func}`~a.b`.

```{note}
:class: x

Ruth knows.
```

```{contents}
:depth: 1
```

```{versionadded} 2.0
```
"""
    assert of(tmp_path, content) == ["T: Use the words and a.b.", "T: Note: Ruth knows.", "T: Added in version 2.0"]


def test_a_long_introduction_is_said_itself_as_well(tmp_path):
    long = "The crew of the boat " + "and of its tender " * 10 + "are:"
    found = of(tmp_path, f"# T\n\n{long}\n\n- Jonas\n")
    assert found[0] == f"T: {long}" and found[1].endswith("are: Jonas") and len(found) == 2


def test_footnotes_stand_where_they_are_called(tmp_path):
    content = """# T

The Kestrel is 18.5 m long[^a]. The Petrel is not.[^b] Both float.

| Boat | Fee |
| - | - |
| Brent | 7[^a] |

[^a]: Measured in 2004. By Ruth.
[^b]: Nobody knows.
[^c]: Ruth wrote more.
"""
    assert of(tmp_path, content) == [
        "T: The Kestrel is 18.5 m long. (Note: Measured in 2004. By Ruth.)",
        "T: The Petrel is not. (Note: Nobody knows.)",
        "T: Both float.",
        "T: Boat: Brent; Fee: 7 (Note: Measured in 2004. By Ruth.)",
        "T: Ruth wrote more.",
    ]


def test_a_code_span_is_one_word(tmp_path):
    assert of(tmp_path, "# T\n\nUse `panic!, assert!` and `a. B`. `Foo!` works.\n") == [
        "T: Use panic!, assert! and a. B.",
        "T: Foo! works.",
    ]


def test_lines_of_label_and_value_are_fields(tmp_path):
    content = "Status: *open*\nTitle: The Kestrel\nOwner: [Ruth](r.md),\nNell\n\nAn owner: Ruth\nwho sails.\n"
    assert of(tmp_path, content) == [
        "The Kestrel: Status: open",
        "The Kestrel: Title: The Kestrel",
        "The Kestrel: Owner: Ruth, Nell",
        "The Kestrel: An owner: Ruth who sails.",
    ]


def test_long_code_is_cut_at_lines_and_says_which_part_it_is(tmp_path):
    content = "# T\n\n```\n" + "".join(f"line_{n} = {n}. # Yes. No.\n" for n in range(300)) + "```\n"
    found = of(tmp_path, content)
    assert [text.partition(") ")[0] for text in found] == [
        f"T: (part {n} of {len(found)}" for n in range(1, len(found) + 1)
    ]
    assert len(found) > 3 and all(len(text) <= MOST_TEXT and text.endswith("No.") for text in found)


def test_headings_that_are_long_or_many(tmp_path):
    assert context("Boats", ("Kestrel:", "Engine")) == "Boats > Kestrel > Engine: "
    assert context("", ()) == ""
    assert context("T", ("m" * 200, "n" * 200, "Last")) == f"T > {'n' * 200} > Last: "
    assert len(context("T" * 200, ("S" * 200, "R" * 500))) <= MOST_CONTEXT + 2
    heading = "A heading of many words " * 10
    found = of(tmp_path, f"# T\n\n## {heading}\n\nRuth is here.\n")
    assert found[0].endswith(heading.strip()) and found[1].startswith("T > A heading") and "…: Ruth" in found[1]


def test_a_page_without_a_title_is_called_like_its_file_or_folder(tmp_path):
    assert of(tmp_path, "Ruth is here.", "old-boats.md") == ["old boats: Ruth is here."]
    assert of(tmp_path, "Nell too.", "the_yard/README.md")[1] == "the yard: Nell too."


def test_raw_html_headings_are_headings(tmp_path):
    content = '<h1 align="center">Petrel</h1>\n\nShe is green.\n\n<h2>Crew</h2>\n\nAmos sails.\n'
    assert of(tmp_path, content) == ["Petrel: She is green.", "Petrel > Crew: Amos sails."]
