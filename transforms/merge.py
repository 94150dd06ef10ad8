"""Combine values that can be merged in any order."""

from collections.abc import Iterable
from typing import Generic, Protocol, Self, TypeVar

import apache_beam as beam


class Mergeable(Protocol):
    """A type with a neutral value, `Mergeable()`, and a commutative, associative `merge`."""

    def merge(self, other: Self, /) -> Self: ...


Merged = TypeVar("Merged", bound=Mergeable)


class MergeFn(beam.CombineFn, Generic[Merged]):
    """Merges all values of a type."""

    def __init__(self, kind: type[Merged]) -> None:
        self._kind = kind

    def create_accumulator(self) -> Merged:
        return self._kind()

    def add_input(self, accumulator: Merged, element: Merged) -> Merged:
        return accumulator.merge(element)

    def merge_accumulators(self, accumulators: Iterable[Merged]) -> Merged:
        merged = self._kind()
        for accumulator in accumulators:
            merged = merged.merge(accumulator)
        return merged

    def extract_output(self, accumulator: Merged) -> Merged:
        return accumulator
