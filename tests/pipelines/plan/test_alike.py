"""Configurations that need the same calls for a query are simulated once, and counted as often as they occur."""

from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from rankbeam.pipelines.plan.counting import counted_items
from rankbeam.pipelines.plan.simulation import MOST, with_imagined
from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry
from rankbeam.transforms.clients.models.offline import Extractive, Lexical
from rankbeam.transforms.judge.answering import AnswerGenerator
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.judge.work import EvaluateAnswers
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Steps
from rankbeam.transforms.records.judging.items import Gold, Item, System
from rankbeam.transforms.records.rankings.contexts import Passage, SuppliedAnswer
from rankbeam.transforms.records.stages import Generation

PASSAGES = (Passage("owners", "Owners pay the invoices."), Passage("weather", "It rains in spring."))
RANKINGS = ((0, 1), (1, 0), (0,))


class CountedWork(EvaluateAnswers):
    """Counts the configurations that are simulated, and the calls of each simulation."""

    simulated: ClassVar[list[int]] = []
    calls: ClassVar[Counter[str]] = Counter()

    def steps(self, item: Item) -> Steps[Any]:
        self.simulated.append(len(item.systems))
        steps = super().steps(item)
        outcomes = None
        with suppress(StopIteration):
            while True:
                calls = steps.send(outcomes)
                self.calls[item.query_id] += len(calls)
                outcomes = yield calls


def test_a_sweep_of_many_configurations_with_three_rankings_is_simulated_as_one_of_few(tmp_path: Path) -> None:
    def planned(configurations: int) -> tuple[int, dict[str, int], list[int]]:
        CountedWork.simulated.clear()
        reader, judge = Model("reader", "extractive", Extractive()), Model("judge", "lexical", Lexical())
        generator = AnswerGenerator(reader, Generation("reader", "{query}\n{contexts}", contexts=2))
        metrics = tuple(map(parse_judged, ("Faithfulness", "ContextRecall")))
        places = range(configurations)
        work = CountedWork(
            dict.fromkeys(places, generator), (Judge(judge, built_in_templates()),), dict.fromkeys(places, metrics)
        )
        systems = tuple(System(place, RANKINGS[place % 3]) for place in places)
        item = Item("q1", "Who pays?", {}, PASSAGES, systems, Gold("Owners pay. It rains."))
        counts = counted_items(work, [item], Ledger(str(tmp_path)).lookup(), {}, [("earlier prompts", replace(work))])
        apart = {step.step: number for step, number in counts.apart.items()}
        return sum(CountedWork.simulated), apart, [len(sizes) for sizes in counts.most.values()]

    few, many = planned(6), planned(60)
    assert many[0] == few[0] < 50
    assert many[1] == {step: 10 * number for step, number in few[1].items()}
    assert many[2] == few[2]
    assert few[1]["answer"] == 6


def test_supplied_answers_are_simulated_alone_if_no_metric_compares_them(tmp_path: Path) -> None:
    def simulated(configurations: int) -> int:
        CountedWork.simulated.clear()
        judge, metrics = Model("judge", "lexical", Lexical()), (parse_judged("Faithfulness"),)
        work = CountedWork({}, (Judge(judge, built_in_templates()),), dict.fromkeys(range(configurations), metrics))
        systems = tuple(
            System(place, (0,), supplied=SuppliedAnswer(f"Owner {place} pays.")) for place in range(configurations)
        )
        counted_items(work, [Item("q1", "Who pays?", {}, PASSAGES, systems)], Ledger(str(tmp_path)).lookup(), {})
        return sum(CountedWork.simulated)

    assert simulated(20) == 10 * simulated(2)


def test_a_single_configuration_is_simulated_once_for_each_bound_and_once_for_limits_of_tokens(tmp_path: Path) -> None:
    work, item = judged("q1", "Owners pay.")
    for limited in ((), ("judge",)):
        CountedWork.simulated.clear()
        counts = counted_items(work, [item], Ledger(str(tmp_path)).lookup(), {}, limited=limited)
        assert len(CountedWork.simulated) == 2 + len(limited)
        assert {step.step: number for step, number in counts.apart.items()} == {"claims": 1, "support": 2}
        assert counts.largest.keys() == set(limited)


def test_earlier_prompts_ask_a_new_query_no_questions_about_imagined_replies(tmp_path: Path) -> None:
    (work, old), (_, new) = judged("old", "Owners pay."), judged("new", "Guests pay.")
    steps = work.steps(old)
    next(steps)  # no answers to generate
    (call,) = steps.send([])
    ledger = Ledger(str(tmp_path))
    with closing(ledger.writer()) as writer:
        stored = Lexical().answer(Prompt.parse(call.payload)).written()
        writer.add(LedgerEntry(call.key or "", None, stored, 1, 0.1, datetime.now(UTC)))
    lookup = ledger.lookup()
    lookup.refresh()
    CountedWork.calls.clear()
    counted_items(work, [old, new], lookup, {}, [("earlier prompts", replace(work, baseline=1))])
    # Known or not: its first question. Fewest, most, and what remains: all. Earlier prompts: the first question.
    assert CountedWork.calls["new"] == 1 + (1 + 3 + 3) + 1


def judged(query_id: str, answer: str) -> tuple[CountedWork, Item]:
    judge, metrics = Model("judge", "lexical", Lexical()), (parse_judged("Faithfulness"),)
    work = CountedWork({}, (Judge(judge, built_in_templates()),), {0: metrics})
    return work, Item(query_id, "Who pays?", {}, PASSAGES, (System(0, (0, 1), supplied=SuppliedAnswer(answer)),))


def test_many_imagined_contexts_have_their_places() -> None:
    systems = tuple(System(place, (), failed=True) for place in range(3))
    item = Item("q1", "Who pays?", {}, PASSAGES, systems)
    imagined = with_imagined(item, MOST, {0: (7, 2), 1: (8, 2), 2: (7, 2)})
    assert [system.passages for system in imagined.systems] == [(2, 3), (4, 5), (2, 3)]
    assert len(imagined.passages) == 6
