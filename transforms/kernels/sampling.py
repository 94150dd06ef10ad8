"""Samples by hash: what is chosen depends on a seed and on names, never on the order or the machine."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

Named = TypeVar("Named", bound=str)


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
    """One of some names: every run of so many positions has each of them once, in an order that the seed decides.

    Args:
        position: from 0.
        names: distinct.
        seed: seed of the order.
        purpose: so that several lists have orders of their own.

    >>> sorted(in_turn(position, ["a", "b", "c"], 7, "x") for position in range(3, 6))
    ['a', 'b', 'c']
    """
    block, place = divmod(position, len(names))
    return shuffled(names, seed, *purpose, block)[place]
