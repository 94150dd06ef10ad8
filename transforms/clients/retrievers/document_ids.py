"""Document ids: extract the id that judgements use from the URI or name that a service returns.

A rule that does not fit is an error. It never gives a wrong id: that would be scored as an unjudged document.
"""

import hashlib
import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rankbeam.transforms.records.errors import CallError, FailureKind

FILE_EXTENSIONS = frozenset({
    "csv", "doc", "docx", "htm", "html", "json", "jsonl", "md", "ndjson", "pdf", "pptx", "rtf", "tsv", "txt", "xhtml",
    "xlsm", "xlsx", "xml", "yaml", "yml",
})  # fmt: skip
"""Extensions of files that Google's services import. Any other text after a dot is part of the id, as in "v1.2"."""

_LINKS_WITHOUT_NAMES = ("https://drive.google.com/", "https://docs.google.com/")
_LONGEST_SHOWN = 120


class IdRule(BaseModel):
    r"""Rule that extracts an id from a name.

    Attributes:
        prefix: the beginning of the name, which is removed first; with it, ids may hold slashes.
        pattern: regular expression to search for in the rest. The id is its group named `id`, else its first group,
            else the whole match. Without a pattern, the id of a path is its last part without file extension; with a
            `prefix`, it is the whole rest without file extension.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    prefix: Annotated[str, Field(min_length=1)] | None = None
    pattern: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"is not a regular expression: {error}") from error
        return value

    def cut(self, name: str, *, is_path: bool = True) -> str:
        r"""The id in a name.

        >>> IdRule().cut("gs://bucket/kb/MED-10.txt"), IdRule().cut("gs://bucket/v1.2")
        ('MED-10', 'v1.2')
        >>> IdRule(prefix="gs://bucket/kb/").cut("gs://bucket/kb/a/b.txt")
        'a/b'
        >>> IdRule(pattern=r"doc=(\d+)").cut("https://example.com/?doc=42&lang=en")
        '42'
        """
        if self.prefix is not None and not name.startswith(self.prefix):
            problem = f"doc_id: {_short_repr(name)} does not begin with the prefix {self.prefix!r}"
            raise CallError(FailureKind.INVALID, problem)
        rest = name.removeprefix(self.prefix or "")
        if self.pattern is not None:
            doc_id = self._match_pattern(rest)
        elif is_path:
            doc_id = stem(rest if self.prefix is not None else rest.rpartition("/")[2])
        else:
            doc_id = rest
        if not doc_id:
            raise CallError(FailureKind.INVALID, f"doc_id: no id in {_short_repr(name)}; set doc_id.pattern")
        return doc_id

    def _match_pattern(self, rest: str) -> str:
        match = re.search(self.pattern or "", rest)
        if match is None:
            raise CallError(
                FailureKind.INVALID, f"doc_id: the pattern {self.pattern!r} does not match {_short_repr(rest)}"
            )
        group: int | str = "id" if "id" in match.re.groupindex else min(match.re.groups, 1)
        return match[group] or ""


class DocumentIds(IdRule):
    """Rule for the document id of a context of RAG Engine.

    Attributes:
        field: source of the name: "source_uri", "source_display_name", or "auto": the URI if it names a file, else the
            display name. With "chunk" (for `unit: chunk`) the id is a hash of URI and text, since a context has no id
            of its own: the first 32 hexadecimal digits of SHA-256 over the URI, a newline, and the text.
    """

    field: Literal["auto", "source_uri", "source_display_name", "chunk"] = "auto"

    @model_validator(mode="after")
    def _a_hash_is_not_cut(self) -> "DocumentIds":
        if self.field == "chunk" and (self.prefix is not None or self.pattern is not None):
            raise ValueError("with field: chunk the id is a hash; remove prefix and pattern")
        return self

    def of(self, uri: str, name: str, text: str) -> str:
        if self.field == "chunk":
            return hashlib.sha256(f"{uri or name}\n{text}".encode()).hexdigest()[:32]
        return self.cut(self._source_name(uri, name))

    def _source_name(self, uri: str, name: str) -> str:
        if self.field == "source_uri":
            return uri
        if self.field == "source_display_name":
            return name
        nameless = not uri or uri.startswith(_LINKS_WITHOUT_NAMES)  # links to Drive end in "view", for every file
        return name if nameless and name else uri


def stem(name: str) -> str:
    """A file's name without its extension, if that is in `FILE_EXTENSIONS`.

    >>> stem("a.b.pdf"), stem("v1.2"), stem(".txt")
    ('a.b', 'v1.2', '.txt')
    """
    before, _, extension = name.rpartition(".")
    return before if before and extension.lower() in FILE_EXTENSIONS else name


def _short_repr(value: str) -> str:
    return repr(value if len(value) <= _LONGEST_SHOWN else value[:_LONGEST_SHOWN] + "…")
