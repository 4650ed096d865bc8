"""Links of files as links between documents: relative ones, addresses of front matter, and the site's own URL."""

from pathlib import Path

import pytest

from kbgym.corpus.documents import Corpus, ReadingOptions, read_corpus

PAGES = {
    "docs/a.md": "---\npermalink: /alpha/\n---\nAlpha is here.",
    "docs/sub/b.md": "# B\n\nSee {}.",
    "docs/c.rst": "C\n=\n\nGamma is here.\n",
    "docs/unique.md": "Delta is here.",
    "x/twice.md": "One.",
    "y/twice.md": "Two.",
    "z/index.md": "Zeta is here.",
}


def linked(folder: Path, link: str, site: str = "") -> tuple[Corpus, str]:
    for name, text in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("{}", link))
    corpus = read_corpus([folder], ReadingOptions(unit="sentence", links=True, site=site))
    (source,) = (document for document in corpus.documents if document.text.startswith("B: See"))
    there = {document.id: document.source.file for document in corpus.documents}
    return corpus, "".join(there[id] for id in source.links)


@pytest.mark.parametrize(
    ("link", "file"),
    [
        ("[x](../a.md)", "docs/a.md"),
        ("[x](../a)", "docs/a.md"),
        ("[x](../c.html#top)", "docs/c.rst"),
        ("[x](/alpha)", "docs/a.md"),
        ("[x](/z/)", "z/index.md"),
        ("[[c]]", "docs/c.rst"),
        ("[x](https://example.org/alpha/)", ""),
        ("[x](/unique)", ""),
    ],
)
def test_without_a_site(tmp_path, link, file):
    assert linked(tmp_path, link)[1] == file


@pytest.mark.parametrize(
    ("link", "file"),
    [
        ("[x](https://example.org/alpha/?q=1#y)", "docs/a.md"),
        ("[x](http://example.org/docs/c)", "docs/c.rst"),
        ("<https://example.org/alpha>", "docs/a.md"),
        ("[x](https://example.org/twice)", ""),
        ("[x](https://example.organic/alpha)", ""),
        ("[x](mailto:a@example.org)", ""),
    ],
)
def test_with_a_site(tmp_path, link, file):
    corpus, found = linked(tmp_path, link, "https://example.org/")
    assert found == file and corpus.dead_links == ("twice" in link)
