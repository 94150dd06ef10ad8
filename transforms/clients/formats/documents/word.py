"""Text of DOCX files: paragraphs in order, with headings, lists and tables as Markdown."""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from rankbeam.transforms.clients.formats.documents.content import (
    DAMAGED,
    LOCKED,
    TOO_LARGE,
    Content,
    UnreadableError,
    heading,
    item,
    joined,
    row,
)

_OLE = b"\xd0\xcf\x11\xe0"  # encrypted documents are such a container
_MOST_BYTES = 1 << 28
_MOST_LEVELS = 6
_MARKS = {"tab": "\t", "br": " ", "cr": " ", "noBreakHyphen": "-"}
_WRAPPERS = ("sdt", "sdtContent", "ins", "customXml", "smartTag", "moveTo")
_SKIPPED = ("Fallback", "del", "moveFrom", "pPr", "rPr", "instrText")


def read_word(content: bytes) -> Content:
    """The content of a DOCX file."""
    if content.startswith(_OLE):
        raise UnreadableError(LOCKED)
    try:
        with zipfile.ZipFile(BytesIO(content)) as parts:
            document = _part(parts, "word/document.xml")
            names = set(parts.namelist())
            styles = _headings(_part(parts, "word/styles.xml")) if "word/styles.xml" in names else {}
            properties = _part(parts, "docProps/core.xml") if "docProps/core.xml" in names else Element("none")
    except RuntimeError as error:
        raise UnreadableError(LOCKED) from error
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError, ElementTree.ParseError) as error:
        raise UnreadableError(DAMAGED) from error
    body = next((node for node in document if _tag(node) == "body"), Element("none"))
    blocks = [block for block in _blocks(body, styles) if block[1].strip()]
    title = next((node.text or "" for node in properties if _tag(node) == "title"), "").strip()
    first = next((text.lstrip("# ") for kind, text in blocks if kind == "heading"), "")
    return Content(title or first, joined(blocks))


def _part(parts: zipfile.ZipFile, name: str) -> Element:
    if parts.getinfo(name).file_size > _MOST_BYTES:
        raise UnreadableError(TOO_LARGE)
    return ElementTree.fromstring(parts.read(name))  # noqa: S314  expat limits how much entities may expand


def _tag(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _value(element: Element | None) -> str:
    attributes = {} if element is None else element.attrib
    return next((value for name, value in attributes.items() if name.rpartition("}")[2] == "val"), "")


def _below(element: Element, *path: str) -> Element | None:
    child: Element | None = element
    for name in path:
        child = None if child is None else next((node for node in child if _tag(node) == name), None)
    return child


def _headings(styles: Element) -> Mapping[str, int]:
    """Levels of headings by the id of their style; ids are translated, names are not."""
    levels = {}
    for style in styles:
        name = _value(_below(style, "name")).lower()
        word, _, number = name.partition(" ")
        if name == "title" or (word == "heading" and number.isdecimal()):
            key = next((value for name, value in style.attrib.items() if name.endswith("styleId")), "")
            levels[key] = 1 if name == "title" else min(int(number), _MOST_LEVELS)
    return levels


def _blocks(parent: Element, styles: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    for element in parent:
        kind = _tag(element)
        if kind == "p":
            yield _paragraph(element, styles)
        elif kind == "tbl":
            rows = [node for node in element if _tag(node) == "tr"]
            for number, node in enumerate(rows):
                cells = ["".join(_texts(cell, " ")) for cell in node if _tag(cell) == "tc"]
                yield row(cells, is_first=number == 0)
        elif kind in _WRAPPERS:
            yield from _blocks(element, styles)


def _paragraph(element: Element, styles: Mapping[str, int]) -> tuple[str, str]:
    text = "".join(_texts(element, "")).strip()
    level = styles.get(_value(_below(element, "pPr", "pStyle")))
    if not text:
        return "paragraph", ""
    if level is not None:
        return heading(level, text)
    return item(text) if _below(element, "pPr", "numPr") is not None else ("paragraph", text)


def _texts(parent: Element, after_paragraph: str) -> Iterator[str]:
    for element in parent:
        kind = _tag(element)
        if kind == "t":
            yield element.text or ""
        elif kind in _MARKS:
            yield _MARKS[kind]
        elif kind not in _SKIPPED:
            yield from _texts(element, after_paragraph)
            if kind == "p":
                yield after_paragraph
