"""Rounds with batch jobs on a bad day of their service: calls are paid at half price, and once."""

import asyncio
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.standins import Standin, serve

from rankbeam.pipelines.run.batch import rounds
from rankbeam.transforms.clients.clock import SYSTEM_CLOCK
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.waiting import BatchFolder, BatchJobRecord, BatchRound, PendingCall
from rankbeam.transforms.clients.models.batches.jobs import JobRun
from rankbeam.transforms.clients.models.batches.make import BatchJobs
from rankbeam.transforms.clients.models.batches.service import BatchedService
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.quota import Prices, Quota
from rankbeam.transforms.records.errors import InputError

QUOTA = Quota(60_000, prices=Prices(1.0, 1.0, 4.0))
CALLS = 8


@dataclass(frozen=True)
class Experiment:
    """Calls to one model, which jobs make."""

    server: Standin
    folder: Path
    settings: Mapping[str, Any]

    @property
    def service(self) -> BatchedService:
        batch = {"min_calls": 2, "answers": True, **self.settings}
        model = OpenAi.model_validate({"base_url": f"{self.server.url}/v1", "model": "m-001", "batch": batch})
        return BatchedService("m", "openai", model, "m", "openai m", QUOTA)

    @property
    def calls(self) -> list[PendingCall]:
        prompts = [Prompt("answer", {"query": f"q{number}"}, user="{query}") for number in range(CALLS)]
        key = self.service.parameters.key
        return [PendingCall(key("openai", one), "m", "answer", "answer", (0,), one.payload()) for one in prompts]

    @property
    def records(self) -> list[BatchJobRecord]:
        return BatchFolder(str(self.folder)).records()

    def run(self) -> tuple[dict[str, str], list[str]]:
        """Run rounds until none leaves a call; returns decisions on calls that no job answered, and warnings."""
        ledger = Ledger(str(self.folder))

        def lane(batch: BatchRound) -> None:
            stored = {entry.key for entry in ledger.find({call.key: None for call in self.calls})}
            batch.write_pending(call for call in self.calls if call.key not in stored | batch.decided().keys())

        with VirtualClock() as clock:
            jobs = BatchJobs(ledger, [self.service], clock)
            with rounds(ledger, jobs, {"m": QUOTA}, None, lane) as last:
                return last.decided(), jobs.warnings

    def plan(self) -> BatchJobRecord:
        """Write the part of a job, as a run does that is killed before it creates the job."""
        batch = BatchRound(str(self.folder / "batches/round-1"))
        batch.write_pending(self.calls)
        with batch.pending() as pending:
            (record,), _ = BatchJobs(Ledger(str(self.folder)), [self.service]).planned(pending, math.inf)
        return record

    def create(self, *, is_recorded: bool = True) -> None:
        """Create a job, as a run does that is killed while the job runs, or before its record has the job."""
        record, folder = self.plan(), BatchFolder(str(self.folder))
        recorded = folder if is_recorded else BatchFolder(str(self.folder / "elsewhere"))

        async def create() -> None:
            connection = await self.service.connect()
            run = JobRun(self.service, connection, recorded, asyncio.sleep, SYSTEM_CLOCK)
            await run.create(record, lambda: folder.calls(record.hash), asyncio.Lock())
            await connection.connection.close()

        asyncio.run(create())

    def age(self) -> None:
        """Make the records so old that the deadlines of their jobs are over."""
        for record in self.records:
            BatchFolder(str(self.folder)).save(replace(record, created="2000-01-01T00:00:00+00:00"))


@contextmanager
def served(folder: Path, faults: Mapping[str, Any], **settings: Any) -> Iterator[Experiment]:
    with serve("openai_batches", batch=faults) as server:
        yield Experiment(server, folder, settings)


def answered(experiment: Experiment) -> dict[str, int]:
    """Number of paid answers of jobs by key."""
    return dict(experiment.server.stats().extra["answered"])


def once(experiment: Experiment) -> dict[str, int]:
    return {call.key: 1 for call in experiment.calls}


def test_jobs_over_the_limit_of_enqueued_tokens_are_made_later_and_smaller(tmp_path: Path) -> None:
    with served(tmp_path, {"create": ["over_limit"]}, deadline="1m") as experiment:
        decided, warnings = experiment.run()
        assert (decided, answered(experiment)) == ({}, once(experiment))
    assert sorted(record.calls for record in experiment.records) == [4, 4, 8]
    assert not any("no answer" in warning for warning in warnings)


@pytest.mark.long
def test_a_refusal_that_asks_to_wait_for_days_does_not_outlast_the_deadline(tmp_path: Path) -> None:
    with served(tmp_path, {"create": ["quota", "quota"]}, deadline="1h") as experiment:
        assert experiment.run()[0] == {}
        assert answered(experiment) == once(experiment)


def test_calls_are_left_to_jobs_over_the_limit_until_the_deadline(tmp_path: Path) -> None:
    with served(tmp_path, {"create": ["over_limit"] * 9}, deadline="1m", min_calls=8) as experiment:
        decided, _ = experiment.run()
    assert decided == dict.fromkeys(once(experiment), "")
    assert len(experiment.records[0].ended) == 2


def test_a_job_whose_requests_are_refused_is_made_again_without_the_refused_parts(tmp_path: Path) -> None:
    with served(tmp_path, {"refuses": "gpt5"}) as experiment:
        decided, warnings = experiment.run()
        assert (decided, answered(experiment)) == ({}, once(experiment))
    assert "refuses temperature" in " ".join(warnings)
    assert "the request failed" not in " ".join(warnings)


@pytest.mark.parametrize("otherwise", ["online", "fail"])
def test_failed_requests_have_the_services_message_and_fail_if_so_configured(otherwise: str, tmp_path: Path) -> None:
    with served(tmp_path, {"failed": 1.0}, otherwise=otherwise) as experiment:
        decided, warnings = experiment.run()
    reason = "no batch job answered it (otherwise: fail)" if otherwise == "fail" else ""
    assert decided == dict.fromkeys(once(experiment), reason)
    assert "8 × the request failed (internal error); calls without an answer" in " ".join(warnings)


@pytest.mark.parametrize("is_created", [False, True])
def test_a_run_that_continues_after_the_deadline_uses_and_does_not_abandon_the_job(
    is_created: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rankbeam")
    with served(tmp_path, {"polls": 2}) as experiment:
        experiment.create() if is_created else experiment.plan()
        experiment.age()
        decided, _ = experiment.run()
        assert (decided, answered(experiment)) == ({}, once(experiment))
        assert experiment.server.stats().extra["jobs"] == 1
    assert "waiting for 1 job of earlier runs, with 8 calls; `rankbeam batch cancel` ends the wait" in caplog.text


@pytest.mark.parametrize("fault", [{"create": ["over_limit"]}, {"deleted": 1}], ids=str)
def test_a_job_of_another_ledger_that_has_no_answers_is_not_taken_over(fault: Any, tmp_path: Path) -> None:
    with served(tmp_path / "other", fault) as experiment:
        experiment.create()
        decided, _ = replace(experiment, folder=tmp_path / "own").run()
        assert (decided, experiment.server.stats().extra["jobs"]) == ({}, 2)


def test_answers_that_may_not_be_read_end_the_run_which_did_not_wait_without_end(tmp_path: Path) -> None:
    with (
        served(tmp_path, {"hidden": True}) as experiment,
        pytest.raises(InputError, match=r"cannot be read: HTTP 403 for the file .*; correct the service or its key"),
    ):
        experiment.run()
    assert experiment.records[0].is_open


def test_an_account_without_money_ends_the_run_at_once_as_it_does_online(tmp_path: Path) -> None:
    with (
        served(tmp_path, {"create": ["spent"]}) as experiment,
        pytest.raises(InputError, match=r"refuses batch job .*insufficient_quota.*correct the service or its account"),
    ):
        experiment.run()
    with served(tmp_path, {}) as experiment:
        assert experiment.run()[0] == {}


@pytest.mark.parametrize("errors", [[{"message": "a note"}], ["a note"], "a note", {"data": "a note"}], ids=str)
def test_errors_of_a_job_may_have_any_form(errors: Any, tmp_path: Path) -> None:
    with served(tmp_path, {"errors": errors}) as experiment:
        assert experiment.run()[0] == {}


def test_cancel_finds_a_job_that_a_killed_run_created(tmp_path: Path) -> None:
    with served(tmp_path / "ledger", {"polls": 9}) as experiment:
        experiment.create(is_recorded=False)
        (record,) = experiment.records
        assert record.job is None
        assert rankbeam("batch", "cancel", str(tmp_path)).stdout == f"cancelled {record.name}\n"
        assert rankbeam("batch", "collect", str(tmp_path)).stdout == "no batch job is open\n"
        assert answered(experiment) == once(experiment)


def test_cancel_forgets_a_job_that_was_never_created(tmp_path: Path) -> None:
    with served(tmp_path / "ledger", {}) as experiment:
        record = experiment.plan()
        assert rankbeam("batch", "cancel", str(tmp_path)).stdout == f"forgot {record.name}\n"
    assert not experiment.records[0].is_open


def test_a_job_that_another_run_collected_meanwhile_is_not_collected_again(tmp_path: Path) -> None:
    with served(tmp_path, {}) as experiment:
        experiment.create()
        waiting = BatchJobs(Ledger(str(tmp_path)), [experiment.service])
        records = waiting.open()
        assert experiment.run()[0] == {}
        assert waiting.run(records) == {}
        BatchFolder(str(tmp_path)).save(records[0])  # as a run of an earlier version left it
        assert waiting.run(waiting.open()) == {}
    assert not experiment.records[0].is_open


def test_jobs_do_not_wait_for_another_whose_answers_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rankbeam")
    with served(tmp_path, {"create": ["over_limit"], "content": ["unavailable"]}, deadline="1m") as experiment:
        decided, _ = experiment.run()
        assert (decided, answered(experiment)) == ({}, once(experiment))
    lines = [record.getMessage() for record in caplog.records]
    (place,) = [place for place, line in enumerate(lines) if "cannot be read so far" in line]
    unread = lines[place].split()[4]
    assert [unread in line for line in lines[place + 1 :] if "calls are answered" in line] == [False, True]


def test_collect_takes_files_that_lack_answers_as_they_are_ten_minutes_later(tmp_path: Path) -> None:
    """The time begins when files lack answers, not when the service is unavailable."""
    with served(tmp_path / "ledger", {"half_line": True, "content": ["unavailable"]}) as experiment:
        experiment.create()
        assert rankbeam("batch", "collect", str(tmp_path)).stdout == "1 batch job left open\n"
        assert [record.unread_since for record in experiment.records] == [""]
        for _ in range(2):
            done = rankbeam("batch", "collect", str(tmp_path))
            assert "its files have 7 of the 8 answers that the service counts; after 10 minutes" in done.stderr
            assert done.stdout == "1 batch job left open\n"
            (record,) = experiment.records
            assert record.state == "completed"
        BatchFolder(str(tmp_path / "ledger")).save(replace(record, unread_since="2026-01-01T00:00:00+00:00"))
        assert rankbeam("batch", "collect", str(tmp_path)).stdout == "no batch job is open\n"
    assert experiment.records[0].answered == CALLS - 1


@pytest.mark.parametrize("ends", [False, True])
def test_calls_that_two_runs_leave_to_jobs_are_paid_once(ends: bool, tmp_path: Path) -> None:
    """The first job has ended, or still runs, when the second run plans its own from what the ledger lacked before."""
    with served(tmp_path, {"answered": 0.5, "polls": 0 if ends else 9}) as experiment:
        experiment.run() if ends else experiment.create()
        first = experiment.records
        second = experiment.plan()
        if ends:
            decided = BatchJobs(Ledger(str(tmp_path)), [experiment.service]).run([second])
            assert decided == dict.fromkeys(answered(experiment), "")  # calls only if no step can read their answers
            assert not experiment.records[0].is_open
        else:
            assert [second] == experiment.records == first
        assert experiment.server.stats().extra["jobs"] == 1
