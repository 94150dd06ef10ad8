"""The items that are exported, with their documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.goldens.folder import GoldensFolder
from rankbeam.transforms.goldens.publishing import reviewed
from rankbeam.transforms.goldens.records.items import Golden, Review
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean


@dataclass(frozen=True)
class Chosen:
    """Items of a benchmark."""

    name: str
    items: Sequence[Golden]
    reviews: Mapping[str, Review]
    documents: Mapping[str, Mapping[str, Any]]  # all of them, by id


def chosen(folder: GoldensFolder, split: str | None, *, only_reviewed: bool) -> Chosen:
    """The items of a benchmark."""
    items, about, reviews = folder.items(), folder.about(), folder.reviews()
    if split is not None and split not in about["splits"]:
        raise InputError(f"has no split {split!r}; {did_you_mean(split, about['splits'])}", path=folder.path)
    selected = [item for item in reviewed(items, reviews) if split in (None, item.split)]
    selected = [item for item in selected if not only_reviewed or item.made.item_id in reviews]
    if not selected:
        raise InputError("has no such item" if items else "has no item", path=folder.path)
    return Chosen(about["name"], selected, reviews, folder.documents())
