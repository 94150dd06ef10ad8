"""Confidence sequences: the formula, how rarely they raise false alarms, and how fast they see a change."""

import math

import numpy as np
import pytest

from rankbeam.transforms.kernels.statistics.monitoring import QUARTER, half_width, running_sequences

NIGHTS, SAMPLES = 60, 4000
ERROR = 0.25 / math.sqrt(200)
"""Standard error of a night with 200 queries and a standard deviation of 0.25."""


def drawn(samples: int, nights: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, ERROR, (samples, nights))


def test_looking_every_night_raises_false_alarms_unless_the_interval_allows_for_it() -> None:
    """Nightly tests 79% in 30 nights; a fixed interval of a growing mean 35% in 60; two nights in a row 7%; this 2%."""
    nights = drawn(SAMPLES, NIGHTS)
    means = np.cumsum(nights, axis=1) / np.arange(1, NIGHTS + 1)
    count = np.arange(1, NIGHTS + 1)
    tested = np.abs(nights) > 1.96 * ERROR
    same = np.sign(nights[:, 1:]) == np.sign(nights[:, :-1])
    widths = [half_width(t, t * ERROR**2, 10 * ERROR**2, 0.05) for t in count]
    alarms = {
        "nightly": tested[:, :30].any(axis=1),
        "growing": (np.abs(means) > 1.96 * ERROR / np.sqrt(count)).any(axis=1),
        "in a row": (tested[:, 1:] & tested[:, :-1] & same).any(axis=1),
        "sequence": (np.abs(means) > widths).any(axis=1),
    }
    shares = {name: float(alarm.mean()) for name, alarm in alarms.items()}
    assert shares == {
        "nightly": pytest.approx(0.79, abs=0.025),
        "growing": pytest.approx(0.35, abs=0.025),
        "in a row": pytest.approx(0.075, abs=0.015),
        "sequence": pytest.approx(0.024, abs=0.01),
    }


def nights_until_seen(shift: float, samples: int) -> tuple[float, float, float]:
    """Median delays of the sequences and of one over all history, and the share of samples with a false alarm."""
    delays, single, false_alarms = [], [], 0
    for nights in drawn(samples, 100, seed=2):
        nights[NIGHTS:QUARTER] -= shift
        is_false = False
        seen, alone = QUARTER - NIGHTS, QUARTER - NIGHTS
        for count in range(1, QUARTER + 1):
            sequences = running_sequences(nights[:count].tolist(), [ERROR] * count, scale=ERROR)
            is_alarm = min(seq.high for seq in sequences) < 0.0 or max(seq.low for seq in sequences) > 0.0
            is_false |= is_alarm and count <= NIGHTS
            width = half_width(count, count * ERROR**2, 10 * ERROR**2, 0.05)
            if count > NIGHTS and nights[:count].mean() < -width:
                alone = min(alone, count - NIGHTS)
            if is_alarm and count > NIGHTS:
                seen = min(seen, count - NIGHTS)
        false_alarms += is_false
        delays.append(seen)
        single.append(alone)
    return float(np.median(delays)), float(np.median(single)), false_alarms / samples


@pytest.mark.long
@pytest.mark.parametrize(("shift", "new", "old"), [(0.02, 19, 28), (0.04, 6, 13)])
def test_new_sequences_see_a_change_sooner(shift: float, new: int, old: int) -> None:
    seen, alone, false_alarms = nights_until_seen(shift, 100)
    assert abs(seen - new) <= 2
    assert abs(alone - old) <= 2
    assert false_alarms <= 0.04


@pytest.mark.long
def test_a_baseline_of_as_many_queries_raises_few_false_alarms() -> None:
    """All nights share its error: taken as exact, it would raise false alarms in 70% of the samples."""
    nights = drawn(150, NIGHTS + 1, seed=3)
    alarms = {0.0: 0, 2.2414 * ERROR: 0}
    for baseline, *night in nights.tolist():
        changes = [value - baseline for value in night]
        for reference in alarms:
            alarms[reference] += any(
                seq.high < 0.0 or seq.low > 0.0
                for count in range(1, NIGHTS + 1)
                for seq in running_sequences(changes[:count], [ERROR] * count, scale=ERROR, reference=reference)
            )
    exact, widened = (count / len(nights) for count in alarms.values())
    assert exact > 0.5
    assert widened <= 0.07


def test_every_sequence_is_that_of_its_own_nights() -> None:
    means, errors = [0.1, -0.2, 0.3, 0.0], [0.1, 0.2, 0.1, 0.3]
    sequences = running_sequences(means, errors, 0.05)
    assert [(seq.first, seq.nights) for seq in sequences] == [(0, 4), (1, 3), (2, 2), (3, 1)]
    for number, seq in enumerate(sequences, start=1):
        own = means[seq.first :]
        variance = sum(error**2 for error in errors[seq.first :])
        alpha = 6 * 0.05 / (math.pi**2 * number**2)
        width = half_width(len(own), variance, 10 * errors[seq.first] ** 2, alpha)
        assert (seq.mean, seq.high - seq.mean) == pytest.approx((sum(own) / len(own), width))
        assert seq.low == pytest.approx(2 * seq.mean - seq.high)


def test_a_quarter_begins_again_with_a_fresh_alpha() -> None:
    nights = drawn(1, 2 * QUARTER)[0].tolist()
    errors = [ERROR] * len(nights)
    assert len(running_sequences(nights[:QUARTER], errors[:QUARTER])) == QUARTER
    (first,) = running_sequences(nights[: QUARTER + 1], errors[: QUARTER + 1])
    (alone,) = running_sequences(nights[QUARTER : QUARTER + 1], [ERROR])
    assert (first.first, first.low, first.high) == (QUARTER, alone.low, alone.high)
    assert running_sequences([], []) == []


def test_all_levels_together_are_at_most_alpha() -> None:
    assert sum(6 * 0.05 / (math.pi * number) ** 2 for number in range(1, QUARTER + 1)) <= 0.05
