"""Progress of a submitted job: rate, time left and cost, from counters and from the ledger's records."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apache_beam.io.filesystem import BeamIOError
from hypothesis import given
from hypothesis import strategies as st
from support.memory_filesystem import MemoryFileSystem

from rankbeam.pipelines.manage import jobs
from rankbeam.pipelines.manage.job_progress import JobSnapshot, Watch, as_document, outlook_of, progress
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.transforms.clients.ledger import LaneCounts, Ledger, LedgerUse, Owner
from rankbeam.transforms.records.calls.quota import Prices, Quota
from rankbeam.transforms.records.calls.steps import CallUsage
from rankbeam.transforms.records.corpora import TemporaryCorpora
from rankbeam.transforms.records.counters import Counter, Counts
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.reply import Tokens

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUN = RunRecord(START.isoformat(), "ledger", 0, 2, {"paid": Quota(60, price_per_1000=2.0), "free": Quota(60)})


def use(
    answered: int, planned: int, *, hits: int = 0, pool: str = "paid", at: int = 0, stage: str = "judge"
) -> LedgerUse:
    costs = (
        (stage, "m", CallUsage(None, answered, 0, Tokens(), {})),
        (stage, "m", CallUsage(0, answered, 0, Tokens(), {})),
    )
    moment = START + timedelta(seconds=at)
    usages = costs if answered else ()
    counts = LaneCounts(hits, answered, answered, usages, planned, stage)
    about = {"name": "use", "run_id": "r1", "run_started": START.isoformat(), "pool": pool, "lane": 0, "at": moment}
    return LedgerUse(**vars(counts), **about)


def running(**counts: int) -> JobSnapshot:
    return JobSnapshot("running", Counts({(Counter(name), ""): count for name, count in counts.items()}))


def test_calls_are_those_of_the_ledger_where_the_engine_reports_none_yet() -> None:
    outlook = outlook_of(RUN, [use(30, 100, hits=10), use(6, 6, pool="free")], running(), (0.0, 0), 12.0)
    assert outlook.parts() == {
        "progress": "36 of 96 calls",
        "rate": "3 calls/s",
        "left": "about 20 s",
        "cost": "0.06, without free: no price is given",
    }
    assert as_document(running(), outlook)["progress"]["unpriced"] == ["free"]


def test_calls_are_those_of_the_engine_where_it_knows_more() -> None:
    counts = running(calls_planned=100, ledger_hits=20, calls_done=40, calls_failed=3, failures=2)
    outlook = outlook_of(RUN, [use(30, 60)], counts, (10.0, 20), 20.0)
    assert (outlook.done, outlook.needed, outlook.per_second, outlook.left_s, outlook.failures) == (
        40,
        80,
        2.0,
        20.0,
        5,
    )


@pytest.mark.parametrize("state", ["done", "failed", "cancelled", "FINISHED".lower()])
def test_a_job_that_has_ended_has_no_rate(state: str) -> None:
    outlook = outlook_of(RUN, [use(30, 100)], JobSnapshot(state, Counts()), (0.0, 0), 12.0)
    assert (outlook.per_second, outlook.left_s) == (None, None)
    assert outlook.parts()["progress"] == "30 of 100 calls"


def test_nothing_is_known_at_first() -> None:
    outlook = outlook_of(RUN, [], running(), (0.0, 0), 0.0)
    assert (outlook.parts(), outlook.needed, outlook.cost) == ({}, None, None)


@given(st.lists(st.integers(0, 20), max_size=4), st.integers(0, 30))
def test_a_lane_that_is_repeated_makes_no_call_more(lost: list[int], rest: int) -> None:
    """Each attempt finds in the ledger what earlier ones paid for, and all see the same plan."""
    total, uses, paid = sum(lost) + rest, [], 0
    for place, answered in enumerate([*lost, rest]):
        uses.append(use(answered, total, hits=paid, at=place))
        paid += answered
    done, needed = progress(RUN, uses, Counts())[1:]
    assert (done, needed) == (total, total or None)


def test_stages_of_one_lane_add_up() -> None:
    uses = [use(10, 40, stage="retrieve"), use(5, 20, stage="judge", at=1)]
    assert progress(RUN, uses, Counts()) == ("calls", 15, 60)


def test_the_rate_of_a_job_that_is_followed_is_a_recent_one(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), Owner("r1", START.isoformat()))
    watch = Watch(RunRecord(START.isoformat(), str(tmp_path)), "r1")
    lines = []
    for seconds, calls in ((100, 100), (200, 400)):
        ledger.record("paid", 0, lambda calls=calls: LaneCounts(0, calls, calls, (), 1000)).write(at_once=True)
        for path in sorted(tmp_path.rglob("use-*.json"), key=lambda path: path.stat().st_mtime_ns)[:-1]:
            path.unlink()  # a lane rewrites its record
        lines.append(watch.line(running(), START + timedelta(seconds=seconds)))
    assert lines == [
        "running · 100 of 1,000 calls · rate 1 calls/s · left about 15 min 0 s",
        "running · 400 of 1,000 calls · rate 3 calls/s · left about 3 min 20 s",
    ]


def test_a_record_is_read_as_it_was_written() -> None:
    priced = Quota(60, prices=Prices(1.0, 0.5, 2.0))
    corpora = (TemporaryCorpora("projects/p/locations/l", None, ("a", "b")),)
    whole = RunRecord(START.isoformat(), "gs://b/ledger", 3, 4, {"m": priced}, "p.d", True, True, corpora)
    for run in (whole, RunRecord(START.isoformat())):
        assert jobs.run_of({"run": {**asdict(run), "of_tomorrow": 1}}, "out") == run
    assert jobs.run_of({}, "out") is None
    with pytest.raises(InputError, match="out: holds a record of a job that cannot be read"):
        jobs.run_of({"run": {"started": 1}}, "out")


def test_a_ledger_that_cannot_be_read_for_a_moment_keeps_its_last_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket refuses the second look."""
    folder = "mem://bucket/ledger"
    Ledger(folder, Owner("r1", START.isoformat())).record("paid", 0, lambda: LaneCounts(0, 30, 30, (), 40)).write()
    watch = Watch(RunRecord(START.isoformat(), folder), "r1")
    first = watch.look(running(), START + timedelta(seconds=10))

    def refuse(*_: object) -> None:
        raise BeamIOError("503 Service Unavailable")

    monkeypatch.setattr(MemoryFileSystem, "_list", refuse)
    second = watch.look(running(), START + timedelta(seconds=20))
    assert first is not None
    assert second is not None
    assert (first.done, first.needed) == (second.done, second.needed) == (30, 40)
