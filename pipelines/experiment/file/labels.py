"""Labels of swept values, which replace long values in names, tables and plots.

A configuration's identity is its values, never a label.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.transforms.records.errors import InputError

_SIGNS = ",:="
"""Characters that separate the parts of a configuration name."""

Labels = Mapping[str, Sequence[str]]
"""Text that replaces each value in names, by parameter of the grid."""


def labels_of(grid: object) -> Labels:
    """The labels of a grid; a value without a label is its own label.

    >>> labels_of({"corpus": {"small": "projects/p/c/1"}, "top_k": [5, 10]})
    {'corpus': ('small',), 'top_k': ('5', '10')}
    """
    labels = grid if isinstance(grid, dict) else {}
    return {str(name): tuple(map(str, values)) for name, values in labels.items() if isinstance(values, dict | list)}


def values_of(value: Any) -> Any:
    """The values alone, of a list of them or of values by their labels."""
    return list(value.values()) if isinstance(value, dict) else value


def wrong_labels(located: Located) -> Iterator[InputError]:
    """Labels that would make a name ambiguous."""
    grid = located.value.get("grid")
    for name, values in (grid if isinstance(grid, dict) else {}).items():
        for label in values if isinstance(values, dict) else ():
            if not str(label).strip() or any(sign in str(label) for sign in _SIGNS):
                problem = (
                    f"the label {label!r} is empty, or has one of {' '.join(_SIGNS)}, which separate parts of names"
                )
                yield located.error(("grid", str(name), label), problem)
