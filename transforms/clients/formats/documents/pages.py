"""Text of HTML: what a reader sees, with headings, lists, tables and code as Markdown, so that chunkers find them."""

import re
from html.parser import HTMLParser

from rankbeam.transforms.clients.formats.documents.content import (
    DAMAGED,
    Content,
    UnreadableError,
    code,
    heading,
    item,
    joined,
    row,
)

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


def read_page(content: bytes) -> Content:
    """The content of an HTML file."""
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
        """End a block."""
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
