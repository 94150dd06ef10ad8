"""The bounds of a plan hold although nobody knows which questions of a judge will be repeated."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.pipelines.plan.counting import counted_items
from rankbeam.pipelines.plan.simulation import MOST, simulate_calls
from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry
from rankbeam.transforms.clients.models.offline import Extractive, Lexical
from rankbeam.transforms.judge.answering import AnswerGenerator
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.judge.work import EvaluateAnswers
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.judging.items import Gold, Item, System
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.stages import Generation

MODELS = {"reader": Extractive(), "judge": Lexical()}


@given(
    known=st.sampled_from([0, 2, 4]),
    seed=st.integers(0),
    share=st.sampled_from([0.02, 0.1, 0.5, 0.9]),
    samples=st.integers(1, 2),
)
def test_a_run_makes_no_fewer_and_no_more_calls(
    known: int, seed: int, share: float, samples: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    reader, judge = (Model(name, "offline", parameters) for name, parameters in MODELS.items())
    generator = AnswerGenerator(reader, Generation("reader", "{query}\n{contexts}", contexts=2))
    metrics = tuple(map(parse_judged, ("Faithfulness", "ClaimRecall")))
    own = {"samples": samples, "repeat_share": share}
    work = EvaluateAnswers({0: generator}, (Judge(judge, built_in_templates()),), {0: metrics}, **own)
    passages = (Passage("a", f"Owners pay {seed}."), Passage("b", "It rains in spring. Snow falls."))
    items = [
        Item(f"q{number}", f"Who pays {seed + number}?", {}, passages, (System(0, (0, 1)),), Gold("Owners pay."))
        for number in range(4)
    ]
    ledger = Ledger(str(tmp_path_factory.mktemp("ledger")))
    writer, replies = ledger.writer(), dict[str, Any]()

    def answer(calls: Sequence[Call]) -> Mapping[str, Any]:
        for call in calls:
            reply = Reply(MODELS[call.service].answer(Prompt.parse(call.payload)).written())
            replies[call.key or ""] = work.read(call, reply)
        return replies

    def calls_of(queries: Sequence[Item]) -> list[Call]:
        tasks = {item.query_id: work.steps(item) for item in queries}
        return [call for calls in simulate_calls(tasks, MOST, answer).values() for call in calls.values()]

    for call in calls_of(items[:known]):
        stored = MODELS[call.service].answer(Prompt.parse(call.payload)).written()
        writer.add(LedgerEntry(call.key or "", None, stored, 1, 0.1, datetime.now(UTC)))
    writer.close()
    lookup = ledger.lookup()
    lookup.refresh()
    plan = counted_items(work, items, lookup, {})
    least, most = (sum(map(len, sizes.values())) for sizes in (plan.least, plan.most))
    assert least <= len(calls_of(items)) <= most
    assert known < len(items) or least == most
