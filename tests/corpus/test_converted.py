"""Office files, PDF, books and notebooks, by markitdown where it is installed; and what is said where it is not."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from kbgym.corpus import files, reading
from kbgym.corpus.documents import ReadingOptions, read_corpus
from kbgym.errors import BadInput, Missing

installed = pytest.mark.skipif(find_spec("markitdown") is None, reason="markitdown (kbgym[documents]) is not installed")


def word(path: Path) -> None:
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    rels = "application/vnd.openxmlformats-package.relationships+xml"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="{rels}"/>'
            f'<Override PartName="/word/document.xml" ContentType="{kind}"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}" '
            'Target="word/document.xml"/></Relationships>',
        )
        archive.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{main}"><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
            "<w:r><w:t>Crews</w:t></w:r></w:p><w:p><w:r><w:t>Jonas Vael sails.</w:t></w:r></w:p></w:body></w:document>",
        )


def pdf(path: Path) -> None:
    text = b"BT /F1 24 Tf 72 700 Td (The harbour has twelve berths.) Tj ET"
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(b"%010d 00000 n \n" % len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    end = b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(data)
    path.write_bytes(data + b"xref\n0 6\n0000000000 65535 f \n" + b"".join(places) + end)


@installed
@pytest.mark.slow
def test_what_comes_out(tmp_path):
    word(tmp_path / "crews.docx")
    pdf(tmp_path / "berths.pdf")
    (tmp_path / "broken.pdf").write_bytes(b"nothing of a PDF")
    (tmp_path / "broken.xlsx").write_bytes(b"nothing of an archive")
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence", on_error="skip"))
    assert [document.text for document in corpus.documents] == [
        "berths: The harbour has twelve berths.",
        "Crews: Jonas Vael sails.",
    ]
    assert {problem.file: problem.reason for problem in corpus.skipped} == {
        "broken.pdf": "no .pdf file",
        "broken.xlsx": "no .xlsx file",
    }


def test_an_archive_that_unpacks_without_end_is_refused_before_anybody_unpacks_it(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_UNPACKED", 10 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"\0" * (20 << 20))
    file = files.FoundFile(tmp_path / "bomb.docx", "bomb.docx", "converted", 100)
    with pytest.raises(files.Broken, match="20,971,520 bytes"):
        reading.check_archive(file)


def test_without_markitdown_the_part_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    pdf(tmp_path / "a.pdf")
    with pytest.raises(Missing, match=r"kbgym\[documents\]"):
        read_corpus([tmp_path / "a.pdf"], ReadingOptions(unit="sentence"))
    with pytest.raises(BadInput, match=r"a.pdf .*kbgym\[documents\]"):
        read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    (tmp_path / "b.md").write_text("Ruth is here.")
    corpus = read_corpus([tmp_path], ReadingOptions(unit="sentence"))
    assert len(corpus.documents) == 1 and "kbgym[documents]" in corpus.ignored[0].reason
