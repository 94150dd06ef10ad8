"""Texts of HTML, DOCX and PDF files as Markdown, and reasons for files without text."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.document_files import docx, paragraph, pdf

from rankbeam.transforms.clients.formats.documents.files import READERS
from rankbeam.transforms.clients.formats.documents.readers import UnreadableError, read_page, read_pdf, read_word

PAGE = """<!DOCTYPE html><html><head><title> Cats &amp; dogs </title><style>p {color: red}</style>
<script>var x = "<p>no</p>";</script></head><body><h1>Cats</h1><p>They <b>purr</b>,
and sleep.<p>Second<br>line</p><ul><li>One</li><li><p>Two</p></ul>
<table><tr><th>Name<th>Age</tr><tr><td>Tom<td>3 | 4</td></tr></table>
<pre><code>def f():
    return 1
</code></pre>after</body></html>"""


def test_a_page_becomes_markdown() -> None:
    read = read_page(PAGE.encode())

    assert read.title == "Cats & dogs"
    assert read.text == (
        "# Cats\n\nThey purr, and sleep.\n\nSecond line\n\n- One\n- Two\n\n"
        "| Name | Age |\n| --- | --- |\n| Tom | 3 \\| 4 |\n\n```\ndef f():\n    return 1\n```\n\nafter"
    )


def test_a_page_without_title_has_its_first_heading_as_title() -> None:
    assert read_page(b"<p>a<h2>Second <i>level</i></h2>b").title == "Second level"


def test_a_page_is_decoded_as_it_declares() -> None:
    assert read_page('<meta charset="iso-8859-1"><p>caf\xe9'.encode("latin-1")).text == "café"
    with pytest.raises(UnreadableError, match="not UTF-8"):
        read_page(b"<p>caf\xe9")


@given(st.text())
def test_a_page_of_plain_text_keeps_its_words(text: str) -> None:
    plain = "".join(character for character in text if character not in "<&\0")

    assert read_page(plain.encode(errors="replace")).text.split() == plain.encode(errors="replace").decode().split()


@given(st.text(st.sampled_from("<>/!-[]&;\"'= abpliuhtrd123\n")))
def test_no_page_is_an_error(text: str) -> None:
    try:
        read_page(text.encode())
    except UnreadableError as error:
        assert str(error)  # noqa: PT017


def test_a_word_file_becomes_markdown() -> None:
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("a", "b"))
    deleted = "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>kept</w:t></w:r></w:p>"
    body = (
        paragraph("Cats", "Ueberschrift1")
        + paragraph("They purr & sleep.")
        + paragraph("One", is_item=True)
        + paragraph("Two", is_item=True)
        + f"<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>"
        + f"<w:sdt><w:sdtContent>{deleted}</w:sdtContent></w:sdt>"
    )
    read = read_word(docx(body))

    assert read.title == "Cats"
    assert read.text == ("# Cats\n\nThey purr & sleep.\n\n- One\n- Two\n\n| a | b |\n| --- | --- |\n| a | b |\n\nkept")
    assert read_word(docx(body, "Named")).title == "Named"


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "damaged"), (b"PK\3\4", "damaged"), (b"\xd0\xcf\x11\xe0rest", "password-protected"), (b"text", "damaged")],
)
def test_word_files_that_cannot_be_read_have_a_reason(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        read_word(content)


def test_a_word_file_without_a_document_is_damaged() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("word/document.xml", "<unclosed>")
    with pytest.raises(UnreadableError, match="damaged"):
        read_word(content.getvalue())


def test_a_pdf_has_the_places_of_its_pages() -> None:
    pytest.importorskip("pypdf", reason="the extra `documents` is not installed")
    read = read_pdf(pdf(["Cats purr.", "", "Dogs bark."], "Animals"))

    assert (read.title, read.text) == ("Animals", "Cats purr.\n\n\n\nDogs bark.")
    starts = [int(start) for start in read.attributes["page_starts"].split()]
    assert [read.text[start : start + 4] for start in starts] == ["Cats", "\n\nDo", "Dogs"]
    assert read.attributes["pages"] == "3"


def test_pdf_files_that_cannot_be_read_have_a_reason() -> None:
    pypdf = pytest.importorskip("pypdf", reason="the extra `documents` is not installed")
    writer, content = pypdf.PdfWriter(clone_from=io.BytesIO(pdf(["Cats"]))), io.BytesIO()
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(content)
    reasons = {"password-protected": content.getvalue(), "without text": pdf(["", ""]), "damaged": b"%PDF-1.4\nhalf"}
    for reason, damaged in reasons.items():
        with pytest.raises(UnreadableError, match=reason):
            read_pdf(damaged)


@given(st.integers(0, 600), st.binary(max_size=8))
def test_a_damaged_pdf_is_read_or_named(place: int, damage: bytes) -> None:
    pytest.importorskip("pypdf", reason="the extra `documents` is not installed")
    content = pdf(["Cats purr."])
    try:
        assert read_pdf(content[:place] + damage + content[place + len(damage) :]).text
    except UnreadableError as error:
        assert str(error)  # noqa: PT017


def test_plain_text_is_read_as_python_reads_text() -> None:
    for suffix in (".txt", ".md"):
        read = READERS[suffix]("\ufeff\r\n## Cats \r\n\r\nThey purr.\r".encode())
        assert (read.title, read.text) == ("Cats", "\n## Cats \n\nThey purr.\n")
