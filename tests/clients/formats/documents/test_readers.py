"""Texts of HTML, DOCX and PDF files as Markdown, and reasons for files without text."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.document_files import docx, notes, paragraph, pdf

from rankbeam.transforms.clients.formats.documents.files import READERS
from rankbeam.transforms.clients.formats.documents.readers import UnreadableError, read_page, read_pdf

read_word = READERS[".docx"]
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
    assert read_page(b'<?xml version="1.0" encoding="iso-8859-1"?><p>caf\xe9').text == "café"
    assert read_page(b'<meta charset="iso-8859-1"><p>\x93caf\xe9\x94').text == "“café”"  # as browsers read it


@pytest.mark.parametrize(
    "content",
    [
        b"<p>caf\xe9",
        b'<meta charset="undefined"><p>caf\xe9',
        b'<meta charset="utf-16"><p>caf\xe9',
        "<p>cafe".encode("utf-16-le"),
    ],
)
def test_a_page_that_cannot_be_decoded_is_named(content: bytes) -> None:
    with pytest.raises(UnreadableError, match="not UTF-8"):
        read_page(content)


def test_a_page_loses_nothing_of_a_table_without_an_end() -> None:
    assert read_page(b"<table><tr><td>a<td>b<tr><td>c<td>d").text == "| a | b |\n| --- | --- |\n| c | d |"


def test_a_page_may_have_cells_outside_of_rows() -> None:
    assert read_page(b"<table><tr><td>a</tr><td>b<td>c</table>").text == "| a |\n| --- |\n| b | c |"


@given(st.lists(st.sampled_from(["<table>", "</table>", "<tr>", "</tr>", "<td>", "<th rowspan=2 colspan=2>", "a"])))
def test_no_table_of_a_page_is_an_error_or_loses_text(parts: list[str]) -> None:
    assert read_page("".join(parts).encode()).text.count("a") == parts.count("a")


def test_cells_of_a_page_that_cover_several_columns_or_rows_leave_others_in_their_columns() -> None:
    page = """<table><tr><th rowspan=2>Plan<th colspan=2>Price<th>Seats</tr><tr><th>month<th>year</tr>
<tr><td rowspan=2>Team<td>3<td>30<td>5</tr><tr><td colspan=x>4<td>40<td rowspan=9>6
<tr><td colspan=100>per user</table>
<table><tr><td>a<td rowspan=2>b<tr><td>c<tr><td>d<td>e</table>"""

    assert read_page(page.encode()).text.splitlines() == [
        "| Plan | Price |  | Seats |",
        "| --- | --- | --- | --- |",
        "|  | month | year |",
        "| Team | 3 | 30 | 5 |",
        "|  | 4 | 40 | 6 |",
        "| per user |",
        "",
        "| a | b |",
        "| --- | --- |",
        "| c |",
        "| d | e |",
    ]


def test_words_of_a_page_are_not_divided() -> None:
    title = "<title>Rech&shy;nung</title>"
    page = title + "<p>E<big>v</big>ery<strike>one</strike> Rech&shy;nung <math><mi>x</mi><mo>=</mo><mn>1</mn></math>"

    read = read_page(page.encode())

    assert (read.title, read.text) == ("Rechnung", "Everyone Rechnung x=1")


@given(st.text())
def test_a_page_of_plain_text_keeps_its_words(text: str) -> None:
    plain = "".join(character for character in text if character not in "<&\0\u00ad")

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


def control(content: str) -> str:
    return f"<w:sdt><w:sdtContent>{content}</w:sdtContent></w:sdt>"


def test_a_word_file_loses_no_rows_and_cells_in_content_controls() -> None:
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("a", "b"))
    body = f"<w:tbl><w:tr>{control(cells)}</w:tr>{control(f'<w:tr>{cells}</w:tr>')}</w:tbl>"

    assert read_word(docx(body)).text == "| a | b |\n| --- | --- |\n| a | b |"


def test_a_cell_of_a_word_file_that_covers_two_columns_leaves_others_in_their_columns() -> None:
    wide = '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>'
    body = f"<w:tbl><w:tr><w:tc>{wide}{paragraph('a')}</w:tc><w:tc>{paragraph('b')}</w:tc></w:tr></w:tbl>"

    assert read_word(docx(body)).text == "| a |  | b |\n| --- | --- | --- |"


@pytest.mark.parametrize(("kind", "mark"), [("footnote", "[^2]"), ("endnote", "[^e2]")])
def test_a_word_file_keeps_its_notes(kind: str, mark: str) -> None:
    body = f'<w:p><w:r><w:t>Fees</w:t></w:r><w:r><w:{kind}Reference w:id="2"/></w:r><w:r><w:t>.</w:t></w:r></w:p>'

    read = read_word(docx(body, more={f"word/{kind}s.xml": notes(kind, "Since May.")}))

    assert read.text == f"Fees{mark}.\n\n{mark}: Since May."


def test_paragraphs_of_a_text_box_are_apart() -> None:
    box = f"<w:txbxContent>{paragraph('One.')}{paragraph('Two.')}</w:txbxContent>"
    choice = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"

    body = f"<w:p><w:r><w:t>Before</w:t></w:r>{choice}<w:r><w:t>after.</w:t></w:r></w:p>"

    assert read_word(docx(body)).text == "Before One. Two. after."


def test_a_word_file_has_items_by_their_style() -> None:
    none = '<w:p><w:pPr><w:pStyle w:val="Liste"/><w:numPr><w:numId w:val="0"/></w:numPr></w:pPr><w:t>b</w:t></w:p>'

    assert read_word(docx(paragraph("a", "Liste") + none)).text == "- a\n\nb"


def test_words_of_a_word_file_are_not_divided() -> None:
    read = read_word(docx(paragraph("Rech\u00adnung", "Ueberschrift1")))

    assert (read.title, read.text) == ("Rechnung", "# Rechnung")


def test_a_word_file_may_call_its_parts_otherwise() -> None:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    root = f'<r><Relationship Type="{kind}/officeDocument" Target="/word/document2.xml"/></r>'
    related = f'<r><Relationship Type="{kind}/footnotes" Target="notes2.xml"/></r>'
    text = f"<document><body>{'<p><t>Found</t></p>'}</body></document>"
    more = {
        "_rels/.rels": root,
        "word/_rels/document2.xml.rels": related,
        "word/document2.xml": text,
        "word/notes2.xml": notes("footnote", "Note."),
    }

    assert read_word(docx("", more=more)).text == "Found\n\n[^2]: Note."


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (docx("<w:sdt>" * 3000 + "</w:sdt>" * 3000), "damaged"),
        (b"", "damaged"),
        (b"PK\3\4", "damaged"),
        (b"\xd0\xcf\x11\xe0rest", "password-protected"),
        (b"text", "damaged"),
    ],
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


def test_a_pdf_has_letters_for_ligatures() -> None:
    pytest.importorskip("pypdf", reason="the extra `documents` is not installed")
    font = b"/BaseFont /Helvetica >>"
    content = pdf(["of\\001ce", "\\002ow"]).replace(font, b"/Encoding << /Differences [1 /ffi /fl] >> " + font)

    assert read_pdf(content.replace(b"(of", b"(o")).text == "office\n\nflow"


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
        with pytest.raises(UnreadableError, match="not UTF-8"):
            READERS[suffix]("cats".encode("utf-16-le"))


def test_cells_that_cover_many_columns_do_not_fill_the_memory() -> None:
    page = f"<table><tr>{'<td colspan=1000>x' * 1_000}</table>"
    assert len(read_page(page.encode()).text) < 1_000_000


def test_a_word_file_whose_text_expands_a_thousandfold_is_too_large() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("word/document.xml", " " * 100_000_000)
    with pytest.raises(UnreadableError, match="too large"):
        read_word(content.getvalue())
