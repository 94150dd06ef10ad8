"""A file of cases as the whole dataset: one text, like a path, with what an experiment says of the file.

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
    flatten: bool = False  # whether alternatives among relevant documents may be lost

    @property
    def text(self) -> str:
        """The text that `parse` reads."""
        value: dict[str, object] = {"path": self.path}
        value |= {"columns": dict(self.columns)} if self.columns else {}
        value |= {"flatten": True} if self.flatten else {}
        return SCHEME + json.dumps(value, ensure_ascii=False, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> "CaseSource":
        """From a text that begins with `cases://`.

        >>> CaseSource.parse(CaseSource("run.csv", {"answer": "reply"}).text)
        CaseSource(path='run.csv', columns={'answer': 'reply'}, flatten=False)
        """
        return cls(**json.loads(text.removeprefix(SCHEME)))


def is_cases(path: str) -> bool:
    """Return whether a path names a file of cases."""
    return path.startswith(SCHEME)


def file_of(path: str) -> str:
    """The file that a path names; other paths are unchanged.

    >>> file_of(CaseSource("run.csv").text), file_of("queries.jsonl")
    ('run.csv', 'queries.jsonl')
    """
    return CaseSource.parse(path).path if is_cases(path) else path
