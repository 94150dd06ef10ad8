"""Samples by hash, and quotas of strata: the same on any machine, and in any order of the inputs.

The choice depends on a seed and on names. Quotas are computed in integers.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

Named = TypeVar("Named", bound=str)
_SCALE = 10**12


def draw(seed: int, *parts: object) -> int:
    """A whole number below 2^64 that is a hash of a seed and of names.

    >>> draw(0, "a") == draw(0, "a") != draw(1, "a")
    True
    """
    text = "\x1f".join([str(seed), *map(str, parts)])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def shuffled(names: Iterable[Named], seed: int, *purpose: object) -> list[Named]:
    """Distinct names in an order that the seed decides.

    >>> shuffled(["a", "b", "c"], 0) == shuffled(["c", "b", "a"], 0)
    True
    """
    return sorted(names, key=lambda name: (draw(seed, *purpose, name), name))


def in_turn(position: int, names: Sequence[Named], seed: int, *purpose: object) -> Named:
    """The name at a position: each cycle through the names has all of them once, in an order that the seed decides.

    Args:
        position: from 0.
        names: distinct.
        seed: seed of the order.
        purpose: gives several lists different orders.

    >>> sorted(in_turn(position, ["a", "b", "c"], 7, "x") for position in range(3, 6))
    ['a', 'b', 'c']
    """
    block, place = divmod(position, len(names))
    return shuffled(names, seed, *purpose, block)[place]


def apportion(weights: Sequence[int], total: int) -> list[int]:
    """Whole numbers in proportion to weights, by largest remainders (Hamilton); ties go to the first.

    Args:
        weights: not negative, some positive.
        total: the sum of the result.

    >>> apportion([2, 1, 1], 10)
    [5, 3, 2]
    """
    whole = sum(weights)
    shares = [divmod(weight * total, whole) for weight in weights]
    numbers = [number for number, _ in shares]
    order = sorted(range(len(weights)), key=lambda place: (-shares[place][1], place))
    for place in order[: total - sum(numbers)]:
        numbers[place] += 1
    return numbers


def apportion_by_root(sizes: Sequence[int], total: int) -> list[int]:
    """Whole numbers in proportion to the square roots of sizes: small strata are seen, large ones count for more.

    >>> apportion_by_root([100, 25, 1], 16)
    [10, 5, 1]
    """
    return apportion([math.isqrt(size * _SCALE) for size in sizes], total)


def proportional_table(rows: Sequence[int], columns: Sequence[int]) -> list[list[int]]:
    """A table of whole numbers with these sums, each cell its proportional value rounded down or up.

    Such a table exists for all margins (Cox, "A constructive procedure for unbiased controlled rounding", JASA 1987).
    After rounding down, a flow from rows to columns distributes what is missing, at most one per cell.

    Args:
        rows: sums of the rows.
        columns: sums of the columns, with the same total.

    >>> proportional_table([3, 2], [2, 2, 1])
    [[2, 1, 0], [0, 1, 1]]
    """
    total = sum(rows)
    if not total:
        return [[0] * len(columns) for _ in rows]
    table = [[row * column // total for column in columns] for row in rows]
    open_cells = [[row * column % total > 0 for column in columns] for row in rows]
    raised: list[set[int]] = [set() for _ in rows]
    lacking = [column - sum(row[place] for row in table) for place, column in enumerate(columns)]
    for number, row in enumerate(rows):
        for _ in range(row - sum(table[number])):
            _raise_one(number, open_cells, raised, lacking)
    return [[cell + (place in raised[number]) for place, cell in enumerate(row)] for number, row in enumerate(table)]


def _raise_one(start: int, open_cells: list[list[bool]], raised: list[set[int]], lacking: list[int]) -> None:
    """Raise one more cell of a row: the shortest augmenting path to a column that lacks one."""
    came: dict[int, tuple[int, int]] = {}  # column: the row that reaches it, and the column that row was reached by
    queue, seen = [(start, -1)], {start}
    for row, before in queue:
        for column, is_open in enumerate(open_cells[row]):
            if not is_open or column in raised[row] or column in came:
                continue
            came[column] = (row, before)
            if lacking[column]:
                lacking[column] -= 1
                while column >= 0:
                    owner, previous = came[column]
                    raised[owner].add(column)
                    if previous >= 0:
                        raised[owner].discard(previous)
                    column = previous
                return
            for other in range(len(raised)):
                if column in raised[other] and other not in seen:
                    seen.add(other)
                    queue.append((other, column))
    raise AssertionError("margins with the same total always have a table")
