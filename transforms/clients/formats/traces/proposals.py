"""Paths to propose for questions and answers inside inputs and outputs that are JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankbeam.transforms.clients.formats.traces.spans import Span

_LIKELY = {
    "input": ("question", "query", "user_input", "input", "prompt", "content", "text", "message"),
    "output": ("answer", "response", "output", "result", "content", "text", "message"),
}
_OPTIONS = {"input": "--question", "output": "--answer"}
_DEEPEST, _MOST_SHOWN = 4, 3
AT = "with a text at "
"""The part of a count's name between the option and the path."""


def text_paths(value: Any, depth: int = 0) -> Iterator[str]:
    """The JMESPaths of the texts in an object; of a list, those of its last entry.

    >>> list(text_paths({"model": "m", "messages": [{"content": "Hi"}], "my key": "x", "n": 1}))
    ['model', 'messages[-1].content', '"my key"']
    """
    if not isinstance(value, Mapping) or depth == _DEEPEST:
        return
    for key, inner in value.items():
        name = key if key.isidentifier() and key.isascii() else json.dumps(key)
        if isinstance(inner, list) and inner:
            name, inner = f"{name}[-1]", inner[-1]
        if isinstance(inner, str) and inner.strip():
            yield name
        yield from (f"{name}.{path}" for path in text_paths(inner, depth + 1))


def proposals(spans: Sequence[Span], part: str) -> Counter[str]:
    """Counts of the paths of texts in the JSON inputs or outputs of roots.

    Args:
        spans: those of one trace.
        part: "input" or "output".
    """
    counts = Counter[str]()
    for value in (span.attributes.get(f"{part}.value") for span in spans if span.parent_id == ""):
        try:
            parsed = json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            continue
        counts.update(f"{_OPTIONS[part]} {AT}{path}" for path in text_paths(parsed))
    return counts


def advice(counts: Mapping[str, int]) -> Iterator[str]:
    """The likeliest paths for people: names that are common, then the most frequent."""
    for part, option in _OPTIONS.items():
        prefix = f"{option} {AT}"
        known = {name.removeprefix(prefix): count for name, count in counts.items() if name.startswith(prefix)}
        likely = _LIKELY[part]
        order = sorted(known, key=lambda path: (_place(path, likely), -known[path], path))
        for path in order[:_MOST_SHOWN]:
            yield f"try {option} '{path}': a text in {known[path]:,} {part}s of a sample"


def _place(path: str, likely: Sequence[str]) -> int:
    last = path.rpartition(".")[2].removesuffix("[-1]").strip('"')
    return likely.index(last) if last in likely else len(likely)
