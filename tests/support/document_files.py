"""Small PDF and DOCX files for tests."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def pdf(pages: Sequence[str], title: str = "") -> bytes:
    """A PDF with one line of text per page; an empty text makes a page without text."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        box = "/MediaBox [0 0 612 792]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} {font} /Contents {5 + 2 * number} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(f"<< /Title ({title}) >>")
    content, places = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, 1):
        places.append(len(content))
        content += f"{number} 0 obj\n{item}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    count = len(objects) + 1
    trailer = f"trailer\n<< /Size {count} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    return content + f"xref\n0 {count}\n0000000000 65535 f \n{table}{trailer}".encode()


def docx(body: str, title: str = "", more: Mapping[str, str] | None = None) -> bytes:
    """A DOCX file of WordprocessingML; `Ueberschrift1` is the style named `heading 1`, and `Liste` has bullets.

    more: further parts by name; they may replace others.
    """
    styles = '<w:style w:styleId="Ueberschrift1"><w:name w:val="heading 1"/></w:style>'
    styles += '<w:style w:styleId="Liste"><w:name w:val="List Bullet"/><w:pPr><w:numPr/></w:pPr></w:style>'
    parts = {
        "word/document.xml": f'<w:document xmlns:w="{_NAMESPACE}" xmlns:mc="mc"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{_NAMESPACE}">{styles}</w:styles>',
        "docProps/core.xml": f'<p xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title></p>',
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in {**parts, **(more or {})}.items():
            archive.writestr(name, text)
    return content.getvalue()


def notes(kind: str, text: str) -> str:
    """A part with one footnote or endnote, which has the id 2."""
    return f'<w:{kind}s xmlns:w="{_NAMESPACE}"><w:{kind} w:id="2">{paragraph(text)}</w:{kind}></w:{kind}s>'


def paragraph(text: str, style: str = "", *, is_item: bool = False) -> str:
    """A paragraph of WordprocessingML."""
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    properties += "<w:numPr/>" if is_item else ""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"
