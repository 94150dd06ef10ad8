"""Text of PDF files, page by page, by pypdf."""

import itertools
import logging
import struct
import zlib
from io import BytesIO

from rankbeam.transforms.clients.formats.documents.content import DAMAGED, LOCKED, Content, UnreadableError

_BETWEEN_PAGES = "\n\n"
_DAMAGES = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, NotImplementedError,
            AssertionError, OSError, EOFError, zlib.error, struct.error)  # fmt: skip
"""Errors of Python that pypdf raises for damaged files, besides its own."""


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
    return Content(title, _BETWEEN_PAGES.join(pages), {"pages": str(len(pages)), "page_starts": starts})


def _valid(text: str) -> str:
    """A text without halves of characters, which broken fonts yield."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
