"""Judgements by batch jobs: equal tables at half the price; what goes wrong is neither used nor paid for twice."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import batches
from support.cli import rankbeam
from support.standins import Standin, serve

from rankbeam.transforms.clients.ledger import Ledger, store
from rankbeam.transforms.clients.ledger.waiting import BatchFolder
from rankbeam.transforms.clients.models.batches import openai_jobs
from rankbeam.transforms.clients.models.batches.jobs import JobRun
from rankbeam.transforms.clients.models.batches.make import BatchJobs
from rankbeam.transforms.records.errors import InputError

MIN = {"min_calls": 5}
QUERIES, CLAIMS, SUPPORTS = 12, 12, 36
UNREADABLE = ["unavailable", "cut", "unavailable", "cut_gzip"]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tables of a run without batch jobs."""
    with pytest.MonkeyPatch.context() as patch, serve("openai_batches") as server:
        patch.setenv("RANKBEAM_TEST_KEY", "k")
        path = batches.experiment(tmp_path_factory.mktemp("online"), server, None)
        results = batches.evaluated(path, "r", patch)
        port = int(server.address.rpartition(":")[2])  # the address is part of a model's identity
    return batches.rows(results), batches.usage(results), port


def jobs_of(folder: Path) -> list[Any]:
    return BatchFolder(str(folder / "out" / "ledger")).records()


def calls(server: Standin) -> list[int]:
    """Number of online answers to each question."""
    queries = server.stats().queries
    return [number for name, number in queries.items() if not name.startswith(("GET /v1", "POST /v1"))]


@pytest.mark.long
def test_tables_are_equal_to_those_of_calls_and_judgements_cost_half(
    tmp_path: Path, online: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"polls": 3, "shuffled": True, "name_page": 7, "create": ["quota", "lost"], "content": UNREADABLE}
    with serve("openai_batches", port=online[2], batch=job) as server:
        path = batches.experiment(tmp_path, server, MIN)
        results = batches.evaluated(path, "r", monkeypatch)
        stats = server.stats()
        again = batches.evaluated(path, "r2", monkeypatch)
        assert server.stats().calls == stats.calls
    tables, used, _ = online
    assert batches.rows(results) == batches.rows(again) == tables
    assert (stats.extra["jobs"], stats.extra["rows"]) == (2, CLAIMS + SUPPORTS)
    assert sum(record.answered for record in jobs_of(tmp_path)) == CLAIMS + SUPPORTS
    assert calls(server) == [1] * QUERIES  # answers have no schema
    assert "batch job" not in " ".join(results.run["warnings"])
    now = batches.usage(results)
    assert (now["calls"], now["ledger_hits"], now["from_ledger"]) == (used["calls"], 0, 0)
    judged = sum(row["cost"] for row in results.table("judge_quality").to_pylist())
    entries = {
        entry.key: entry for entry in Ledger(str(tmp_path / "out/ledger")).find(dict.fromkeys(stats.extra["answered"]))
    }
    assert {entry.via for entry in entries.values()} == {"batch"}
    of_jobs = sum(entry.tokens.input * 100 + entry.tokens.output * 4 for entry in entries.values()) / 1e6
    assert judged == pytest.approx(of_jobs / 2)
    of_answers = sum(row["cost"] for row in results.table("answers").to_pylist())
    assert now["cost"] == pytest.approx(of_answers + judged)
    assert all(record.state == "collected" for record in jobs_of(tmp_path))
    assert not list((tmp_path / "out/ledger/batches").glob("round-*"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("faults", "answered", "words"),
    [
        ({"state": "expired", "answered": 0.5, "swapped": 1}, 0, "too many of its answers belong to other requests"),
        pytest.param({"foreign": 1}, 0, "too many of its answers belong to other requests", marks=pytest.mark.campaign),
        pytest.param(
            {"duplicated": 2}, CLAIMS + SUPPORTS - 4, "several answers to one request", marks=pytest.mark.campaign
        ),
        pytest.param({"answered": 0.5}, (CLAIMS + SUPPORTS) // 2, "no answer", marks=pytest.mark.campaign),
        pytest.param({"failed": 1.0}, 0, "the request failed", marks=pytest.mark.campaign),
        pytest.param({"state": "failed"}, 0, "no answer", marks=pytest.mark.campaign),
        pytest.param(
            {"state": "expired", "answered": 0.25}, (CLAIMS + SUPPORTS) // 4, "no answer", marks=pytest.mark.campaign
        ),
        pytest.param(
            {"half_line": True}, CLAIMS + SUPPORTS - 2, "a row that cannot be read", marks=pytest.mark.campaign
        ),
        pytest.param(
            {"wrong_shape": 3}, CLAIMS + SUPPORTS - 6, "the answer cannot be used", marks=pytest.mark.campaign
        ),
        pytest.param({"content": UNREADABLE}, CLAIMS + SUPPORTS, "", marks=pytest.mark.campaign),
        pytest.param({"create": ["unavailable"]}, CLAIMS + SUPPORTS, "", marks=pytest.mark.campaign),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_whatever_goes_wrong_no_value_is_wrong_and_nothing_is_paid_twice(
    faults: dict[str, Any], answered: int, words: str, tmp_path: Path, online: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("openai_batches", port=online[2], batch={"polls": 2, **faults}) as server:
        results = batches.evaluated(batches.experiment(tmp_path, server, MIN), "r", monkeypatch)
        stats = server.stats()
    assert batches.rows(results) == online[0]
    assert sum(record.answered for record in jobs_of(tmp_path)) == answered
    assert stats.extra["jobs"] == 2
    assert len(calls(server)) == QUERIES + CLAIMS + SUPPORTS - answered
    assert set(calls(server)) == {1}
    warnings = " ".join(results.run["warnings"])
    assert words in warnings
    assert ("batch job" in warnings) == bool(words)


@pytest.mark.campaign
def test_a_job_that_outlives_its_deadline_is_cancelled_and_its_calls_fail_if_so_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("openai_batches", batch={"polls": 10_000, "answered": 0.5}) as server:
        path = batches.experiment(
            tmp_path, server, {**MIN, "deadline": "20m", "otherwise": "fail"}, max_failure_rate=1.0
        )
        results = batches.evaluated(path, "r", monkeypatch)
    failures = results.table("failures").to_pylist()
    assert {(row["kind"], row["message"]) for row in failures} == {
        ("timeout", "no batch job answered it (otherwise: fail)")
    }
    assert len(failures) >= CLAIMS // 2
    assert len(calls(server)) == QUERIES
    assert next(record.refused for record in jobs_of(tmp_path))["no answer"] > 0


@pytest.mark.campaign
def test_steps_with_few_calls_are_called_online(tmp_path: Path, online: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve("openai_batches", port=online[2]) as server:
        results = batches.evaluated(batches.experiment(tmp_path, server, {"min_calls": CLAIMS + 1}), "r", monkeypatch)
        assert (server.stats().extra["jobs"], server.stats().extra["rows"]) == (1, SUPPORTS)
    assert batches.rows(results) == online[0]


@pytest.mark.campaign
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_answers_without_a_schema_go_through_jobs_only_if_configured(
    share: float, tmp_path: Path, online: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("openai_batches", port=online[2], batch={"answered": share}) as server:
        results = batches.evaluated(batches.experiment(tmp_path, server, {**MIN, "answers": True}), "r", monkeypatch)
        assert server.stats().extra["jobs"] == 3
    assert batches.rows(results) == online[0]
    assert f"{12 * share:.0f} answers were matched by the service's key alone" in " ".join(results.run["warnings"])
    assert batches.usage(results)["from_ledger"] == 0
    assert batches.usage(results)["cost"] == pytest.approx(
        sum(row["cost"] for name in ("answers", "judge_quality") for row in results.table(name).to_pylist())
    )
    (configured,) = [c for row in results.table("usage").to_pylist() for c in row["configurations"]]
    assert configured["cost"] == pytest.approx(sum(row["cost"] for row in results.table("answers").to_pylist()))


class Killed(BaseException):
    """A kill: only handlers that always run see it."""


@contextmanager
def killed_in(owner: type, name: str) -> Iterator[None]:
    """The run in the block is killed when it first awaits a method."""

    async def interrupted(*_: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        with pytest.raises(Killed):
            yield


@pytest.mark.campaign
@pytest.mark.parametrize("step", range(1, 13))
def test_killed_at_any_write_the_next_run_makes_no_second_job(
    step: int, tmp_path: Path, online: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file that jobs write is a step: after a kill there, the next run ends with equal tables."""
    with serve("openai_batches", port=online[2], batch={"polls": 2}) as server:
        path = batches.experiment(tmp_path, server, MIN)
        written = 0
        save, save_part = BatchFolder.save, BatchFolder.save_part

        def counted(self: BatchFolder, *parts: Any) -> None:
            nonlocal written
            written += 1
            if written == step:
                raise Killed
            (save if len(parts) == 1 else save_part)(self, *parts)

        with monkeypatch.context() as patch:
            patch.setattr(BatchFolder, "save", counted)
            patch.setattr(BatchFolder, "save_part", counted)
            was_killed = False
            try:
                batches.evaluated(path, "k", monkeypatch)
            except Killed:
                was_killed = True
        results = batches.evaluated(path, "r", monkeypatch)
        stats = server.stats()
    assert was_killed == (written >= step)
    assert batches.rows(results) == online[0]
    assert (stats.extra["jobs"], stats.extra["rows"]) == (2, CLAIMS + SUPPORTS)
    assert set(stats.extra["answered"].values()) == {1}
    assert set(calls(server)) == {1}
    assert len(calls(server)) == QUERIES


@pytest.mark.campaign
def test_a_budget_reserves_half_the_price_and_leaves_the_rest_to_calls(
    tmp_path: Path, online: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("openai_batches") as server:
        path = batches.experiment(tmp_path, server, MIN, max_cost=0.4 * online[1]["cost"])
        results = batches.evaluated(path, "r", monkeypatch)
        rows = server.stats().extra["rows"]
    assert 0 < rows < CLAIMS + SUPPORTS  # the most that the others may cost was not left
    assert batches.usage(results)["cost"] <= 0.4 * online[1]["cost"]


def refusal(path: str, change: dict[str, Any]) -> str:
    content = yaml.safe_load(Path(path).read_text("utf-8"))
    Path(path).write_text(yaml.safe_dump({**content, **change}, sort_keys=False), "utf-8")
    outcome = rankbeam("validate", path)
    assert outcome.status == 2
    return outcome.stderr


def test_what_cannot_be_left_to_jobs_is_refused_with_its_line(tmp_path: Path) -> None:
    with serve("openai_batches") as server:
        path = batches.experiment(tmp_path, server, MIN)
        assert "services.m.batch: a race adds" in refusal(path, {"race": {"metric": "nDCG@5"}})
        path = batches.experiment(tmp_path, server, MIN)
        assert "services.m.batch: needs the price of tokens" in refusal(path, {"quotas": {}})
        for wrong, words in (
            ({"deadline": "soon"}, "write a number of minutes, hours or days"),
            ({"min_cals": 3}, "min_calls"),
            ({"otherwise": "later"}, "online"),
        ):
            assert words in refusal(batches.experiment(tmp_path, server, wrong), {})


def test_a_service_without_batch_jobs_ends_the_run_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        serve("openai") as server,
        pytest.raises(InputError, match=r"m: the service refuses batch job .* take its batch: out"),
    ):
        batches.evaluated(batches.experiment(tmp_path, server, {**MIN, "answers": True}), "r", monkeypatch)
    assert not calls(server)
    assert not store.parts_in(str(tmp_path / "out/ledger"))


@pytest.mark.campaign
def test_the_ledger_names_the_transport_of_each_answer(tmp_path: Path) -> None:
    with serve("openai_batches") as server:
        path = batches.experiment(tmp_path, server, MIN)
        assert rankbeam("evaluate", path, "--run-id", "r").status == 0
        keys = server.stats().extra["answered"]
    stored = {entry.key: entry for entry in Ledger(str(tmp_path / "out/ledger")).find(dict.fromkeys(keys))}
    assert set(stored) == set(keys)
    assert {json.loads(entry.answer)["model_version"] for entry in stored.values()} == {"m-001-v7"}
    assert not any("item" in json.loads(json.loads(entry.answer)["text"]) for entry in stored.values())


@pytest.mark.long
def test_the_plan_has_both_prices_and_the_steps_that_wait(tmp_path: Path) -> None:
    with serve("openai_batches") as server:
        for settings in (None, MIN):
            path = batches.experiment(tmp_path / str(settings is None), server, settings, queries=6)
            outcome = rankbeam("plan", path, "--format", "json")
            (pool,) = json.loads(outcome.stdout)["models"]
            if settings is None:
                full = pool["cost"]
                assert pool["batch_cost"] is None
        assert server.stats().calls == 0
        assert pool["cost"] == full
        assert pool["batch_steps"] == 2
        assert full[1] / 2 < pool["batch_cost"][1] < full[1]  # answers are not left to jobs
        everything = batches.experiment(tmp_path / "all", server, {**MIN, "answers": True}, queries=6)
        (pool,) = json.loads(rankbeam("plan", everything, "--format", "json").stdout)["models"]
        assert pool["batch_cost"] == pytest.approx([cost / 2 for cost in full])
        text = rankbeam("plan", path).stdout
    rewritten = {"name": "hyde", "retriever": {"type": "bm25"}, "rewrite": {"service": "m", "kind": "hyde"}}
    online = batches.experiment(tmp_path / "hyde", server, MIN, queries=6, configurations=[rewritten], metrics=["RR"])
    (pool,) = json.loads(rankbeam("plan", online, "--format", "json").stdout)["models"]
    assert (pool["calls"], pool["batch_cost"], pool["batch_steps"]) == ([6, 6], None, 0)
    assert "with batch jobs in up to 2 steps, one after another" in text


@pytest.mark.campaign
def test_jobs_are_listed_collected_and_cancelled_by_the_command(
    tmp_path: Path, online: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("openai_batches", port=online[2], batch={"polls": 2}) as server:
        path = batches.experiment(tmp_path, server, MIN)
        assert "has no batch jobs" in rankbeam("batch", "list", path).stdout
        with killed_in(BatchJobs, "_pause"):
            batches.evaluated(path, "r", monkeypatch)
        out = str(tmp_path / "out")
        (job,) = json.loads(rankbeam("batch", "list", out, "--format", "json").stdout)["jobs"]
        assert (job["calls"], job["state"], job["step"]) == (CLAIMS, "in_progress", "claims")
        other = rankbeam("batch", "collect", out, "rankbeam-v1-0000")
        assert (other.status, "is not a batch job of this ledger" in other.stderr) == (2, True)
        assert rankbeam("batch", "cancel", out).stdout == f"cancelled {job['name']}\n"
        collected = rankbeam("batch", "collect", out)
        assert collected.stdout == "no batch job is open\n", collected.stderr
        usage = "12 of 12 calls are answered, with 7,416 input and 564 output tokens"
        assert usage in collected.stderr
        results = batches.evaluated(path, "r", monkeypatch)
        assert server.stats().extra["jobs"] == 2
    assert batches.rows(results) == online[0]
    assert "collected" in rankbeam("batch", "list", out).stdout


@pytest.mark.long
def test_a_run_without_batch_names_open_jobs_and_collecting_does_not_wait_for_answers_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(openai_jobs, "_SILENT_S", 0.2)
    faults = ["unavailable", "cut_gzip", "silent"]
    with serve("openai_batches", batch={"content": faults}) as server:
        with killed_in(JobRun, "ended"):
            batches.evaluated(batches.experiment(tmp_path, server, MIN, queries=6), "r", monkeypatch)
        batches.evaluated(batches.experiment(tmp_path, server, None, queries=6), "r", monkeypatch)
        assert "1 batch jobs of this ledger with 6 calls are open" in " ".join(capsys.readouterr().err.split())
        out = str(tmp_path / "out")
        for _ in faults:
            assert rankbeam("batch", "collect", out).stdout == "1 batch job left open\n"
        assert rankbeam("batch", "collect", out).stdout == "no batch job is open\n"
        listed = rankbeam("batch", "list", out).stdout.split()
        assert listed[-5:] == ["6", "6", "3,708", "282", "collected"]


def test_a_job_that_is_gone_is_named_and_forgotten_by_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve("openai_batches") as server:
        port = int(server.address.rpartition(":")[2])
        path = batches.experiment(tmp_path, server, MIN, queries=6)
        with killed_in(JobRun, "ended"):
            batches.evaluated(path, "r", monkeypatch)
    (record,) = jobs_of(tmp_path)
    with serve("openai_batches", port=port):  # it knows no job
        with pytest.raises(InputError, match=f"{record.name} .* is gone at the service: .*batch cancel OUT") as gone:
            batches.evaluated(path, "r2", monkeypatch)
        assert "take its batch: out" not in str(gone.value)
        assert jobs_of(tmp_path) == [record]
        assert rankbeam("batch", "cancel", str(tmp_path / "out")).stdout == f"forgot {record.name}\n"
    assert not any(one.is_open for one in jobs_of(tmp_path))


@pytest.mark.long
def test_answers_that_are_gone_are_named_and_their_job_is_forgotten_by_cancel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("openai_batches", batch={"deleted": 1, "without_usage": 1}) as server:
        path = batches.experiment(tmp_path, server, MIN, queries=6)
        with pytest.raises(InputError, match=r"cannot be read: HTTP 404 for the file .*batch cancel OUT"):
            batches.evaluated(path, "r", monkeypatch)
        (record,) = jobs_of(tmp_path)
        assert record.is_open
        assert rankbeam("batch", "cancel", str(tmp_path / "out")).stdout == f"forgot {record.name}\n"
        results = batches.evaluated(path, "r2", monkeypatch)
        assert server.stats().extra["rows"] == 2 * 6 + 18
    estimated = [warning for warning in results.run["warnings"] if "tokens and cost are estimated" in warning]
    assert len(estimated) == 1
    assert not results.table("failures").num_rows


def test_a_job_that_has_ended_is_not_forgotten_while_its_answers_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("openai_batches") as server:
        path = batches.experiment(tmp_path, server, MIN, queries=6)
        with killed_in(BatchJobs, "_match_answers"):
            batches.evaluated(path, "r", monkeypatch)
        refused = rankbeam("batch", "cancel", str(tmp_path / "out"))
        assert (refused.status, "Cannot cancel a batch that has ended" in refused.stderr) == (2, True)
        assert rankbeam("batch", "collect", str(tmp_path / "out")).stdout == "no batch job is open\n"
    (record,) = jobs_of(tmp_path)
    assert (record.state, record.answered) == ("collected", 6)
