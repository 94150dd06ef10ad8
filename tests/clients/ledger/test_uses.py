"""Records of how a run used a ledger: what a lost worker leaves is read back as it was counted."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.call import with_lost_attempts
from rankbeam.transforms.clients.ledger import LaneCounts, Ledger, Owner
from rankbeam.transforms.clients.ledger.survey import survey
from rankbeam.transforms.records.calls.steps import CallUsage, Usage
from rankbeam.transforms.records.reply import Tokens

COUNT = st.integers(0, 1000)
TOOK = st.builds(
    CallUsage, st.none() | st.integers(0, 3), COUNT, COUNT, st.builds(Tokens, COUNT, COUNT, COUNT),
    st.dictionaries(st.integers(-50, 50), st.integers(1, 9), max_size=3),
)  # fmt: skip
MODELS = st.sampled_from(["", "small", "large"])


def lost(folder: Path, counted: LaneCounts) -> Ledger:
    ledger = Ledger(str(folder), Owner("run", "now"))
    ledger.record("pool", 0, lambda: counted).write()
    return ledger


@given(usages=st.lists(st.tuples(st.sampled_from(["answer", "judge"]), MODELS, TOOK), max_size=5))
def test_usage_of_a_lost_worker_is_restored_by_model_and_configuration(
    usages: list[tuple[str, str, CallUsage]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    ledger = lost(tmp_path_factory.mktemp("ledger"), LaneCounts(2, 7, 5, tuple(usages), stage="judge"))
    assert ledger.uses()[0].usages == tuple(usages)
    own = CallUsage(None, 1, 0, Tokens(1, 1, 1), {0: 1})
    used = [Usage("pool", 1, 6, (), "judge", model, own.tokens, (own,)) for model in ("small", "large")]
    restored = {usage.model: usage for usage in with_lost_attempts(used, ledger)}
    assert sum(usage.calls for usage in restored.values()) == 2 + 7
    assert sum(usage.ledger_hits for usage in restored.values()) == 12 - 5
    for model, usage in restored.items():
        here = [usage_of_call for stage, name, usage_of_call in usages if (stage, name) == ("judge", model)]
        for position in {usage_of_call.position for usage_of_call in here} | {None}:
            parts = [usage_of_call for usage_of_call in [own, *here] if usage_of_call.position == position]
            (row,) = [usage_of_call for usage_of_call in usage.took if usage_of_call.position == position]
            assert row.calls == sum(usage_of_call.calls for usage_of_call in parts)
            assert row.tokens == sum((usage_of_call.tokens for usage_of_call in parts), Tokens())
            assert sum(row.durations.values()) == sum(sum(usage_of_call.durations.values()) for usage_of_call in parts)
        assert usage.tokens == sum(
            (usage_of_call.tokens for usage_of_call in here if usage_of_call.position is None), own.tokens
        )


def test_a_record_of_an_earlier_release_restores_calls(tmp_path: Path) -> None:
    ledger = lost(tmp_path, LaneCounts(2, 7, 5))
    (path,) = tmp_path.rglob("use-*.json")
    content = json.loads(path.read_text())
    del content["took"]
    path.write_text(json.dumps(content))
    (usage,) = with_lost_attempts([Usage("pool", 1, 6)], ledger)
    assert (usage.calls, usage.ledger_hits, usage.took) == (8, 1, ())


def test_stages_of_one_pool_have_their_own_calls_and_hits(tmp_path: Path) -> None:
    ledger = lost(tmp_path, LaneCounts(0, 7, 5, stage="rewrite"))
    ledger.record("pool", 0, lambda: LaneCounts(2, 20, 10, stage="judge")).write()
    rewrite, judge = Usage("pool", 0, 5, stage="rewrite"), Usage("pool", 1, 12, stage="judge")
    (first,) = with_lost_attempts([rewrite], ledger)
    (second,) = with_lost_attempts([judge], ledger, [first])
    assert [(usage.calls, usage.ledger_hits) for usage in (first, second)] == [(7, 0), (21, 2)]


def test_hits_of_a_stage_do_not_make_those_of_another_one_in_its_pool_seem_lost(tmp_path: Path) -> None:
    for stage in ("rewrite", "judge"):
        lost(tmp_path, LaneCounts(50, 30, 30, stage=stage))
    assert survey(str(tmp_path)).hits == 100
