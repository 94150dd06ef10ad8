"""Stages that share a quota pool need an order: each pool has one owner at a time."""

import pytest

from rankbeam.pipelines.run.calling import CallStage, refuse_shared_pools
from rankbeam.transforms.records.errors import InputError

CORPORA = CallStage("corpora", {"data", "embeddings"})
RETRIEVE = CallStage("retrieve", {"search", "embeddings"}, after={"corpora"})


def test_stages_without_a_common_pool_need_no_order() -> None:
    refuse_shared_pools([CallStage("retrieve", {"search"}), CallStage("judge", {"gemini"})])


def test_stages_in_a_row_may_share_a_pool() -> None:
    refuse_shared_pools([CORPORA, RETRIEVE, CallStage("judge", {"data"}, after={"retrieve"})])


@pytest.mark.parametrize("after", [set(), {"corpora"}])
def test_stages_that_share_a_pool_without_an_order_are_refused_by_name(after: set[str]) -> None:
    judge = CallStage("judge", {"gemini", "search"}, after=after)
    with pytest.raises(InputError, match="stages 'retrieve' and 'judge' would call the quota pool 'search' at"):
        refuse_shared_pools([CORPORA, RETRIEVE, judge])
