"""A file of cases as the whole dataset: one text, used like a path, with an experiment's options for the file.

    cases://{"path": "gs://bucket/run.csv", "columns": {"question": "inputs.query"}}

An experiment gives it as `dataset: {file: …, columns: …}`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

SCHEME = "cases://"


@dataclass(frozen=True)
class CaseSource:
    """A file of cases, and how to read it."""

    path: str
    columns: Mapping[str, str] = field(default_factory=dict)
    flatten: bool = False  # accept that alternatives among relevant documents are lost

    @property
    def text(self) -> str:
        value: dict[str, object] = {"path": self.path}
        value |= {"columns": dict(self.columns)} if self.columns else {}
        value |= {"flatten": True} if self.flatten else {}
        return SCHEME + json.dumps(value, ensure_ascii=False, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> "CaseSource":
        """Parse a text that begins with `cases://`."""
        return cls(**json.loads(text.removeprefix(SCHEME)))


def is_cases(path: str) -> bool:
    return path.startswith(SCHEME)


def file_of(path: str) -> str:
    """The file that a path names; other paths are unchanged."""
    return CaseSource.parse(path).path if is_cases(path) else path
