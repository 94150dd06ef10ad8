"""Extract text from DOCX files, with headings, lists and tables as Markdown."""

import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from rankbeam.transforms.clients.formats.documents.readers import (
    DAMAGED,
    DAMAGES,
    LOCKED,
    TOO_LARGE,
    FileContent,
    UnreadableError,
    extent,
    heading,
    item,
    join_blocks,
    row,
    without_soft_hyphens,
)

_OLE = b"\xd0\xcf\x11\xe0"  # encrypted documents are such a container
_MOST_BYTES = 1 << 26  # a few compressed kilobytes may expand to gigabytes; the tree takes ten times as much
_MOST_LEVELS = 6
_MARKS = {"tab": "\t", "ptab": "\t", "br": " ", "cr": " ", "noBreakHyphen": "-"}
_SKIPPED = ("Fallback", "del", "moveFrom", "pPr", "rPr", "instrText")
_NOTES = {"footnote": "", "endnote": "e"}  # kinds of notes, and the prefix of their numbers

Styles = Mapping[str, int]  # levels of headings by the id of their style; 0 for styles of lists


def read_word(content: bytes) -> FileContent:
    if content.startswith(_OLE):
        raise UnreadableError(LOCKED)
    try:
        with zipfile.ZipFile(BytesIO(content)) as parts:
            return _read_content(parts)
    except UnreadableError:
        raise
    except (zipfile.BadZipFile, ElementTree.ParseError, *DAMAGES) as error:
        raise UnreadableError(DAMAGED) from error
    except RuntimeError as error:
        raise UnreadableError(LOCKED) from error


def _read_content(parts: zipfile.ZipFile) -> FileContent:
    package = {
        "officeDocument": "word/document.xml",
        "core-properties": "docProps/core.xml",
        **_related_parts(parts, ""),
    }
    main = package["officeDocument"]
    usual = {kind: f"word/{kind}.xml" for kind in ("styles", *(f"{note}s" for note in _NOTES))}
    related = {**usual, **_related_parts(parts, main)}
    styles = _styles(_part(parts, related["styles"]))
    body = next((node for node in _parse_part(parts, main) if _tag(node) == "body"), Element("none"))
    blocks = [block for block in _blocks(body, styles) if block[1].strip()]
    for note, mark in _NOTES.items():
        blocks += _notes(_part(parts, related[f"{note}s"]), mark)
    properties = _part(parts, package["core-properties"])
    title = next((node.text or "" for node in properties if _tag(node) == "title"), "").strip()
    first = next((text.lstrip("# ") for kind, text in blocks if kind == "heading"), "")
    return FileContent(title or first, join_blocks(blocks))


def _related_parts(parts: zipfile.ZipFile, source: str) -> dict[str, str]:
    """The parts that a part, or the whole file, refers to, by kind."""
    folder, name = posixpath.split(source)
    relations = _part(parts, posixpath.join(folder, "_rels", f"{name}.rels"))
    return {
        one.get("Type", "").rpartition("/")[2]: posixpath.join("/", folder, one.get("Target", "")).lstrip("/")
        for one in relations
    }


def _part(parts: zipfile.ZipFile, name: str) -> Element:
    """A part; an empty one if the file has no part of this name."""
    return _parse_part(parts, name) if name in parts.namelist() else Element("none")


def _parse_part(parts: zipfile.ZipFile, name: str) -> Element:
    if parts.getinfo(name).file_size > _MOST_BYTES:
        raise UnreadableError(TOO_LARGE)
    return ElementTree.fromstring(parts.read(name))  # noqa: S314  expat limits how much entities may expand


def _tag(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _value(element: Element | None, attribute: str = "val") -> str:
    attributes = {} if element is None else element.attrib
    return next((value for name, value in attributes.items() if name.rpartition("}")[2] == attribute), "")


def _below(element: Element, *path: str) -> Element | None:
    child: Element | None = element
    for name in path:
        child = None if child is None else next((node for node in child if _tag(node) == name), None)
    return child


def _styles(styles: Element) -> Styles:
    """Styles by id: ids are translated, but names are not."""
    levels = {}
    for style in styles:
        name = _value(_below(style, "name")).lower()
        word, _, number = name.partition(" ")
        if name == "title" or (word == "heading" and number.isdecimal()):
            levels[_value(style, "styleId")] = 1 if name == "title" else min(int(number), _MOST_LEVELS)
        elif _below(style, "pPr", "numPr") is not None:
            levels[_value(style, "styleId")] = 0
    return levels


def _within(parent: Element, *kinds: str) -> Iterator[Element]:
    """Elements of some kinds, also inside wrappers: content controls, tracked changes, alternatives."""
    for element in parent:
        kind = _tag(element)
        if kind in kinds:
            yield element
        elif kind not in _SKIPPED:
            yield from _within(element, *kinds)


def _blocks(body: Element, styles: Styles) -> Iterator[tuple[str, str]]:
    for element in _within(body, "p", "tbl"):
        if _tag(element) == "p":
            yield _paragraph(element, styles)
            continue
        for number, node in enumerate(_within(element, "tr")):
            yield row(_columns(node), is_first=number == 0)


def _columns(node: Element) -> Iterator[str]:
    """Cells of a row in their columns, with empty cells added wherever a cell covers several columns."""
    for cell in _within(node, "tc"):
        columns = extent(_value(_below(cell, "tcPr", "gridSpan")))
        yield from ("".join(_texts(cell)), *[""] * (columns - 1))


def _paragraph(element: Element, styles: Styles) -> tuple[str, str]:
    text = "".join(_texts(element)).strip()
    level = styles.get(_value(_below(element, "pPr", "pStyle")))
    if not text:
        return "paragraph", ""
    if level:
        return heading(level, text)
    own = _below(element, "pPr", "numPr")
    is_item = level == 0 if own is None else _value(_below(own, "numId")) != "0"
    return item(text) if is_item else ("paragraph", text)


def _notes(notes: Element, mark: str) -> Iterator[tuple[str, str]]:
    for note in notes:
        if text := " ".join("".join(_texts(note)).split()):
            yield "paragraph", f"[^{mark}{_value(note, 'id')}]: {text}"


def _texts(parent: Element) -> Iterator[str]:
    for element in parent:
        kind = _tag(element)
        note = kind.removesuffix("Reference")
        if kind == "t":
            yield without_soft_hyphens(element.text or "")
        elif kind in _MARKS:
            yield _MARKS[kind]
        elif note != kind and note in _NOTES:
            yield f"[^{_NOTES[note]}{_value(element, 'id')}]"
        elif kind not in _SKIPPED:
            yield " " if kind == "txbxContent" else ""
            yield from _texts(element)
            yield " " if kind == "p" else ""
