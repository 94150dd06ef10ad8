"""The first screen of a report: the best configuration, its gain, its cost, and the data behind them."""

from dataclasses import dataclass

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.report.verdict import states_difference
from rankbeam.pipelines.results.leaderboard import doubt
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.scores.rows import Comparison

_COMMIT_LETTERS = 8
_FINGERPRINT_LETTERS = 8
_DAY_S = 86_400


@dataclass(frozen=True)
class CardFact:
    """One field of the card."""

    label: str
    value: str
    note: str = ""
    tone: str = ""


def card(study: Study) -> list[CardFact]:
    return [*_best(study), *_gain(study), *_cost(study), *_gates(study), _dataset(study), _origin(study)]


def _best(study: Study) -> list[CardFact]:
    metric = study.metrics[0]
    order = study.order(metric)
    best = study.mean(order[0], metric)
    if best.mean is None:
        return [CardFact(f"Best by {metric}", "none", "no configuration has a value", "bad")]
    rivals = sum(bool(study.mean(name, metric).may_be_best) for name in order[1:])
    different = f"no significant difference from {pluralize(rivals, 'other')}"
    bounds = words.interval(best.ci_low, best.ci_high)
    interval = f", {study.confidence} interval {bounds}{doubt(best)}" if best.interval else ""
    note = words.value(best.mean) + interval
    return [CardFact(f"Best by {metric}", study.titles[order[0]], f"{note}; {different}" if rivals else note)]


def _gain(study: Study) -> list[CardFact]:
    """The difference between the best configuration and the baseline, or the next best one if the baseline is best."""
    if len(study.titles) < 2:
        return []
    one, other = study.pair
    metric = study.metrics[0]
    row, sign = study.compared(one, other, metric)
    is_best = study.order(metric)[0] == one
    label = "Gain" if is_best else f"Next best, {study.titles.get(one, study.names[one])}"
    against = f"{'over' if is_best else 'against'} the baseline, {study.names[other]}"
    if row is None or row.difference is None:
        return [CardFact(label, words.value(None), f"{against}: not compared")]
    stated = [] if states_difference(study) else [_difference(study, row, sign, label, against)]
    order = (one, other) if is_best else (other, one)
    return [*stated, _queries(study, row, order, sign if is_best else -sign)]


def _difference(study: Study, row: Comparison, sign: int, label: str, against: str) -> CardFact:
    ends = sorted(sign * end for end in (row.ci_low, row.ci_high) if end is not None)
    bounds = words.interval(ends[0], ends[1], sign=True) if len(ends) == 2 else ""
    interval = f", {study.confidence} interval {bounds}{doubt(row)}" if bounds else ""
    difference = sign * (row.difference or 0.0)
    is_clear = study.is_significant(row)
    tone = "" if not is_clear else "good" if sign * row.gain > 0 else "bad"
    verdict = {True: "significant", False: "not significant", None: "not tested"}[is_clear]
    return CardFact(label, words.signed(difference), f"{against}{interval}; {verdict}", tone)


def _queries(study: Study, row: Comparison, order: tuple[int, int], sign: int) -> CardFact:
    """Wins of a pair's better configuration, in the direction in which the decision states the difference."""
    won, lost = (row.wins, row.losses) if sign > 0 else (row.losses, row.wins)
    better, worse = (study.titles.get(name, study.names[name]) for name in order)
    return CardFact("Won : lost", f"{won:,} : {lost:,}", f"queries, {better} against {worse}; {row.ties:,} tied")


def _cost(study: Study) -> list[CardFact]:
    usage = study.usage
    costs = [row["cost"] for row in usage if row["cost"] is not None]
    calls = sum(row["calls"] or 0 for row in usage)
    if costs:
        return [CardFact("Cost", f"{sum(costs):,.4g}", pluralize(calls, "call"))]
    return [CardFact("Calls", f"{calls:,}", "no price given")] if calls else []


def _gates(study: Study) -> list[CardFact]:
    missed = [row for row in study.gates if not row["met"]]
    if not study.gates:
        return []
    if not missed:
        return [CardFact("Gates", "met", pluralize(len(study.gates), "check"), "good")]
    return [CardFact("Gates", "missed", f"{len(missed):,} of {pluralize(len(study.gates), 'check')}", "bad")]


def _dataset(study: Study) -> CardFact:
    fingerprint = study.results.run["dataset_fingerprint"][:_FINGERPRINT_LETTERS]
    note = f"fingerprint {fingerprint}…" if fingerprint.strip("0") else ""
    return CardFact("Dataset", pluralize(len(study.values), "query", "queries"), note)


def _origin(study: Study) -> CardFact:
    run = study.results.run
    commit = run["versions"].get("commit", "")
    finished = f"{run['finished_at']:%Y-%m-%d %H:%M} UTC"
    if not commit:
        return CardFact("Finished", finished, f"took {duration(study)}")
    value = commit[:_COMMIT_LETTERS] + ("-dirty" if commit.endswith("-dirty") else "")
    return CardFact("Commit", value, f"{finished}, took {duration(study)}")


def duration(study: Study) -> str:
    seconds = max(0, round((study.results.run["finished_at"] - study.results.run["started_at"]).total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < _DAY_S:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min" if seconds >= 3600 else f"{seconds // 60} min"
    return f"{seconds // _DAY_S} d {seconds % _DAY_S // 3600} h"
