"""Places of rows, for messages that name several lines of one or several files."""

from collections.abc import Sequence

from rankbeam.transforms.records.errors import InputError

Place = tuple[str, int]
"""A file and a line of it, from 1."""


def repeated_at(problem: str, places: Sequence[Place], advice: str = "") -> InputError:
    """The error of a row that is repeated: located at the last place, naming the earlier ones.

    >>> str(repeated_at("is given twice", [("a", 1), ("b", 2)], "keep one"))
    'b:2: is given twice (also at a:1); keep one'
    """
    *before, (path, line) = places
    earlier = ", ".join(f"line {row}" if name == path else f"{name}:{row}" for name, row in before)
    also = f" (also at {earlier})" if earlier else ""
    return InputError(f"{problem}{also}" + (f"; {advice}" if advice else ""), path=path, line=line)
