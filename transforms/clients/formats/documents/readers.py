"""Text of HTML, DOCX and PDF files, with headings, lists, tables and code as Markdown, so that chunkers find them."""

import itertools
import logging
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from io import BytesIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

NO_TEXT = "no text"
LOCKED = "password-protected"
DAMAGED = "damaged, or not of the format that its suffix names"
TOO_LARGE = "too large"

_SAME_BLOCK = ("item", "row")  # kinds of lines that follow each other without a blank line
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg"})
_INLINE = frozenset(
    re.findall(
        r"\w+",
        "a abbr b bdi bdo cite code data del dfn em font i img input ins kbd label mark q s samp small span strong sub "
        "sup time tt u var wbr",
    )
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9_-]+)", re.IGNORECASE)
_HEAD_BYTES = 4096
_OLE = b"\xd0\xcf\x11\xe0"  # encrypted documents are such a container
_MOST_BYTES = 1 << 28
_MOST_LEVELS = 6
_MARKS = {"tab": "\t", "br": " ", "cr": " ", "noBreakHyphen": "-"}
_WRAPPERS = ("sdt", "sdtContent", "ins", "customXml", "smartTag", "moveTo")
_SKIPPED = ("Fallback", "del", "moveFrom", "pPr", "rPr", "instrText")
_BETWEEN_PAGES = "\n\n"
_DAMAGES = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, NotImplementedError,
            AssertionError, OSError, EOFError, zlib.error, struct.error)  # fmt: skip
"""Errors of Python that pypdf raises for damaged files, besides its own."""


class UnreadableError(ValueError):
    """Raised for a file without text that can be read; its text is the reason, the same for all such files."""


@dataclass(frozen=True)
class Content:
    """Text of a file; its title is empty where the file names none."""

    title: str
    text: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    pages: int = 0  # of a PDF file
    pages_without_text: int = 0


def heading(level: int, text: str) -> tuple[str, str]:
    return "heading", f"{'#' * level} {text}"


def item(text: str) -> tuple[str, str]:
    return "item", f"- {text}"


def code(text: str) -> tuple[str, str]:
    return "code", f"```\n{text}\n```"


def row(cells: Iterable[str], *, is_first: bool) -> tuple[str, str]:
    escaped = [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
    below = f"\n|{' --- |' * len(escaped)}" if is_first else ""
    return "row", f"| {' | '.join(escaped)} |{below}"


def joined(blocks: Iterable[tuple[str, str]]) -> str:
    """The text of blocks, with blank lines between all but neighbouring items and rows."""
    text, before = "", ""
    for kind, block in blocks:
        starts_table = kind == "row" and "\n" in block
        is_same = kind == before and kind in _SAME_BLOCK and not starts_table
        text += f"{'' if not text else chr(10) if is_same else chr(10) * 2}{block}"
        before = kind
    return text


def read_page(content: bytes) -> Content:
    parser = _Parser()
    try:
        parser.feed(_decoded(content))
        parser.close()
    except AssertionError as error:  # of html.parser, for a declaration that it does not know
        raise UnreadableError(DAMAGED) from error
    parser.flush()
    first = next((text.lstrip("# ") for kind, text in parser.blocks if kind == "heading"), "")
    return Content(" ".join(parser.title.split()) or first, joined(parser.blocks))


def _decoded(content: bytes) -> str:
    charset = _CHARSET.search(content[:_HEAD_BYTES])
    declared = [] if charset is None else [charset[1].decode()]
    for encoding in ("utf-8-sig", *declared):
        try:
            return content.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    raise UnreadableError("not UTF-8")


class _Parser(HTMLParser):
    """Collects blocks of Markdown."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[tuple[str, str]] = []
        self.title = ""
        self._text: list[str] = []
        self._kind = ""
        self._hidden: list[str] = []
        self._tables = 0
        self._cells: list[str] | None = None
        self._is_first_row = True
        self._is_title = self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag == "title" and not self._hidden and not self.title:
            self._is_title = True
        elif tag == "br":
            self._text.append("\n" if self._is_code else " ")
        elif self._is_code or tag in _INLINE:
            return
        elif tag == "table":
            self._tables += 1
            if self._tables == 1:
                self.flush()
                self._is_first_row = True
        elif self._tables:
            self._in_table(tag)
        else:
            self.flush()
            self._kind = tag if tag in _HEADINGS or tag == "li" else self._kind if tag == "p" else ""
            self._is_code = tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag == self._hidden[-1]:
                self._hidden.pop()
        elif tag == "title":
            self._is_title = False
        elif tag == "table" and self._tables:
            self._tables -= 1
            if not self._tables:
                self._end_row()
        elif tag == "tr" and self._tables == 1:
            self._end_row()
        elif tag == "pre" and self._is_code:
            text, self._text, self._is_code = "".join(self._text).strip("\n"), [], False
            self.blocks += [code(text)] if text.strip() else []
        elif not (self._is_code or self._tables or tag in _INLINE):
            self.flush()

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title += data
        elif not self._hidden:
            self._text.append(data)

    def flush(self) -> None:
        text, kind = " ".join("".join(self._text).split()), self._kind
        self._text = []
        if not text:
            return
        self._kind = ""
        if kind in _HEADINGS:
            self.blocks.append(heading(_HEADINGS[kind], text))
        else:
            self.blocks.append(item(text) if kind == "li" else ("paragraph", text))

    def _in_table(self, tag: str) -> None:
        if self._tables > 1 or tag not in ("tr", "td", "th"):
            self._text.append(" ")
        elif tag == "tr":
            self._end_row()
            self._cells = []
        else:
            self._end_cell()
            self._cells = [] if self._cells is None else self._cells
            self._cells.append("")

    def _end_cell(self) -> None:
        if self._cells:
            self._cells[-1] = "".join(self._text)
            self._text = []
        else:
            self.flush()

    def _end_row(self) -> None:
        self._end_cell()
        if self._cells and any(cell.strip() for cell in self._cells):
            self.blocks.append(row(self._cells, is_first=self._is_first_row))
            self._is_first_row = False
        self._cells = None


def read_word(content: bytes) -> Content:
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


def read_pdf(content: bytes) -> Content:
    """The content of a PDF file; `page_starts` are the offsets of its pages in the text."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns for every irregular object
    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError(LOCKED)
        pages = [_valid(page.extract_text()).strip() for page in reader.pages]
        metadata = reader.metadata
        title = _valid(str(metadata.title or "") if metadata is not None else "").strip()
    except UnreadableError:
        raise
    except DependencyError as error:
        raise UnreadableError("encrypted in a way that needs pip install cryptography") from error
    except (PyPdfError, *_DAMAGES) as error:
        raise UnreadableError(DAMAGED) from error
    if not any(pages):
        raise UnreadableError("PDF without text (scanned pages need OCR)")
    lengths = [len(page) + len(_BETWEEN_PAGES) for page in pages]
    starts = " ".join(map(str, itertools.accumulate(lengths[:-1], initial=0)))
    attributes = {"pages": str(len(pages)), "page_starts": starts}
    return Content(title, _BETWEEN_PAGES.join(pages), attributes, len(pages), pages.count(""))


def _valid(text: str) -> str:
    """A text without halves of characters, which broken fonts yield."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
