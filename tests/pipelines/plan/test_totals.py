"""Distinct calls are counted in parts: equal calls and beginnings of different queries are one, and parts are small."""

import pickle
import random
from collections import defaultdict

from rankbeam.pipelines.plan.counting import CallCounts
from rankbeam.pipelines.plan.totals import CallSize, CallTotals, SizeTotal, Step, divided, totals_of
from rankbeam.transforms.kernels.grouping import grouped

CLAIMS, SUPPORT = Step("judge", "claims"), Step("judge", "support")
PARTS = 8


def counts_of(calls: dict[int, CallSize]) -> CallCounts:
    """Half of the calls are the fewest, in one step; all are the most, in two."""
    by_step = {
        step: {key: calls[key] for key in calls if key % 3 == place} for place, step in enumerate((CLAIMS, SUPPORT))
    }
    return CallCounts(defaultdict(dict, {CLAIMS: by_step[CLAIMS]}), defaultdict(dict, by_step))


def test_totals_of_parts_are_those_of_all_calls_together() -> None:
    draw = random.Random(1)
    calls = {
        draw.getrandbits(64): CallSize(
            draw.random() < 0.2,
            draw.randrange(9000),
            3.0,
            "p",
            tuple(draw.randrange(50) for _ in range(draw.randrange(4))),
        )
        for _ in range(3000)
    }
    buckets = [counts_of(dict(draw.sample(sorted(calls.items()), 1000))) for _ in range(10)]
    whole, total = CallCounts(), CallCounts()
    rows = []
    for counts in buckets:
        whole.join(counts)
        total.join(counts.without_sizes())
        rows += divided((counts.least, counts.most), PARTS)
    assert list(total.totals[1].sizes) == [(CLAIMS, "p"), (SUPPORT, "p")]  # in the order of the steps
    parts = grouped(rows)
    assert len(parts) == 2 * PARTS
    assert max(sum(reference.rows for reference in part) for part in parts.values()) < 2 * 20_000 / PARTS
    for part in parts.items():
        total.add_totals(totals_of(part))
    for totals, sizes in zip(total.totals, (whole.least, whole.most), strict=True):
        assert totals == expected(sizes)
    assert whole.with_totals().totals == total.totals
    assert len(pickle.dumps(total)) < 10_000 < len(pickle.dumps(whole)) / 5


def expected(sizes: dict[Step, dict[int, CallSize]]) -> CallTotals:
    totals, steps = CallTotals(), defaultdict(set)
    for step, own in sizes.items():
        new = [size for size in own.values() if not size.is_stored]
        with_prefix = tuple(sum(len(size.prefixes) > place for size in new) for place in range(3))
        characters, output = sum(size.characters for size in new), sum(size.output for size in new)
        totals.sizes[step, "p"] = SizeTotal(len(own), len(new), characters, output, with_prefix)
        for size in new:
            for place, prefix in enumerate(size.prefixes):
                steps[place, prefix].add(step)
    for (place, _), names in steps.items():
        totals.prefixes[place, frozenset(names)] += 1
    return totals
