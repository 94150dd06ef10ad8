"""Extract text from HTML and PDF files, with headings, lists, tables and code as Markdown for chunkers."""

import codecs
import itertools
import logging
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from io import BytesIO

NO_TEXT = "no text"
LOCKED = "password-protected"
DAMAGED = "damaged, or not of the format that its suffix names"
TOO_LARGE = "too large"
NOT_UTF8 = "not UTF-8"

_SAME_BLOCK = ("item", "row")  # kinds of lines that follow each other without a blank line
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg"})
_INLINE = frozenset(
    re.findall(
        r"\w+",
        "a abbr acronym b bdi bdo big cite code data del dfn em font i img input ins kbd label mark nobr q rb rp rt "
        "ruby s samp small span strike strong sub sup time tt u var wbr "
        "math mfrac mi mn mo mroot mrow ms msqrt mstyle msub msubsup msup mtext",
    )
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CHARSET = re.compile(rb"(?:<meta[^>]+charset|<\?xml[^>]+encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_-]+)", re.IGNORECASE)
_SUPERSETS = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "tis-620": "cp874", "gb2312": "gb18030",
    "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949",
}  # fmt: skip
"""Encodings that browsers read instead of a declared one, by Python's names."""
_NOT_OF_PAGES = ("utf-16", "utf-32", "utf-7", "unicode", "raw")  # declared wrongly, or never used
_HEAD_BYTES = 4096
_MOST_EXTENT = 100  # browsers take 1,000, but a page may be hostile: each cell takes memory
_LIGATURES = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st"}
)
_BETWEEN_PAGES = "\n\n"
DAMAGES = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, NotImplementedError,
            AssertionError, OSError, EOFError, zlib.error, struct.error)  # fmt: skip
"""Python's built-in errors that libraries raise for damaged files, in addition to their own."""


class UnreadableError(ValueError):
    """Raised for a file without readable text; the message is the reason, the same for all such files."""


@dataclass(frozen=True)
class FileContent:
    """Text of a file; the title is empty if the file has none."""

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


def extent(value: str | None) -> int:
    """The number of columns or rows that a cell covers, as it states."""
    return min(max(int(value), 1), _MOST_EXTENT) if value is not None and value.isdecimal() else 1


def without_soft_hyphens(text: str) -> str:
    """Remove soft hyphens, so that search finds whole words."""
    return text.replace("\u00ad", "")


def join_blocks(blocks: Iterable[tuple[str, str]]) -> str:
    """Join blocks with blank lines, except between neighbouring items and rows."""
    text, before = "", ""
    for kind, block in blocks:
        starts_table = kind == "row" and "\n" in block
        is_same = kind == before and kind in _SAME_BLOCK and not starts_table
        text += f"{'' if not text else chr(10) if is_same else chr(10) * 2}{block}"
        before = kind
    return text


def read_page(content: bytes) -> FileContent:
    parser = _Parser()
    try:
        parser.feed(_decoded(content))
        parser.close()
    except AssertionError as error:  # of html.parser, for a declaration that it does not know
        raise UnreadableError(DAMAGED) from error
    parser.finish()
    first = next((text.lstrip("# ") for kind, text in parser.blocks if kind == "heading"), "")
    return FileContent(" ".join(parser.title.split()) or first, join_blocks(parser.blocks))


def _decoded(content: bytes) -> str:
    for encoding in _encodings(content):
        with suppress(UnicodeError, LookupError):
            text = content.decode(encoding)
            if "\0" not in text:
                return text
    raise UnreadableError(NOT_UTF8)


def _encodings(content: bytes) -> Iterator[str]:
    yield "utf-8-sig"
    declared = _CHARSET.search(content[:_HEAD_BYTES])
    if declared is not None:
        with suppress(LookupError):
            name = codecs.lookup(declared[1].decode()).name
            if not name.startswith(_NOT_OF_PAGES):
                yield _SUPERSETS.get(name, name)


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
        self._extents: list[tuple[int, int]] = []  # number of columns and rows that each cell covers
        self._covered: dict[int, int] = {}  # rows that cells above still cover, by column
        self._is_first_row = True
        self._is_title = self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
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
                self._is_first_row, self._covered = True, {}
        elif self._tables:
            self._in_table(tag, dict(attrs))
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
        data = without_soft_hyphens(data)
        if self._is_title:
            self.title += data
        elif not self._hidden:
            self._text.append(data)

    def finish(self) -> None:
        """Close the elements that the file left open."""
        if self._tables:
            self._end_row()
        self.flush()

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

    def _in_table(self, tag: str, attributes: Mapping[str, str | None]) -> None:
        if self._tables > 1 or tag not in ("tr", "td", "th"):
            self._text.append(" ")
        elif tag == "tr":
            self._end_row()
            self._cells = []
        else:
            self._end_cell()
            self._cells = [] if self._cells is None else self._cells
            self._cells.append("")
            self._extents.append((extent(attributes.get("colspan")), extent(attributes.get("rowspan"))))

    def _end_cell(self) -> None:
        if self._cells:
            self._cells[-1] = "".join(self._text)
            self._text = []
        else:
            self.flush()

    def _end_row(self) -> None:
        self._end_cell()
        columns = [] if self._cells is None else self._columns(self._cells)
        if any(cell.strip() for cell in columns):
            self.blocks.append(row(columns, is_first=self._is_first_row))
            self._is_first_row = False
        self._cells, self._extents = None, []

    def _columns(self, cells: Iterable[str]) -> list[str]:
        """Cells in their columns, with empty cells added wherever an earlier cell covers several columns or rows."""
        covered, column, placed = self._covered, 0, dict[int, str]()
        self._covered = {place: rows - 1 for place, rows in covered.items() if rows > 1}
        for cell, (columns, rows) in zip(cells, self._extents, strict=True):
            while column in covered:
                column += 1
            placed[column] = cell
            if rows > 1:
                self._covered |= dict.fromkeys(range(column, column + columns), rows - 1)
            column += columns
        return [placed.get(place, "") for place in range(max(placed, default=-1) + 1)]


def read_pdf(content: bytes) -> FileContent:
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
    except (PyPdfError, *DAMAGES) as error:
        raise UnreadableError(DAMAGED) from error
    if not any(pages):
        raise UnreadableError("PDF without text (scanned pages need OCR)")
    lengths = [len(page) + len(_BETWEEN_PAGES) for page in pages]
    starts = " ".join(map(str, itertools.accumulate(lengths[:-1], initial=0)))
    attributes = {"pages": str(len(pages)), "page_starts": starts}
    return FileContent(title, _BETWEEN_PAGES.join(pages), attributes, len(pages), pages.count(""))


def _valid(text: str) -> str:
    """A text without ligatures, which search cannot match, and without lone surrogates, which broken fonts yield."""
    return text.replace("\0", "").translate(_LIGATURES).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
