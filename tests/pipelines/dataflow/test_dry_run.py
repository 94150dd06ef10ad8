"""The description of a job, for people and as JSON."""

import json

import pytest

from rankbeam.pipelines.dataflow.dry_run import DryRun, StagedFile
from rankbeam.pipelines.experiment.call_settings import CallSettings
from rankbeam.pipelines.plan.counting import CallCounts
from rankbeam.pipelines.plan.plan import Plan
from rankbeam.pipelines.plan.pools import PoolPlan, pool_plans
from rankbeam.pipelines.plan.totals import CallTotals, SizeTotal, Step
from rankbeam.transforms.records.calls.quota import Quota


def described(*pools: PoolPlan, seconds: float) -> DryRun:
    return DryRun(
        run_id="r1",
        job_name="rankbeam-e-r1",
        project="p",
        region="r",
        staging_location="gs://b/temp",
        options={"labels": ["a=b", "c=d"], "num_workers": 2},
        steps={"ReadDataset": 20, "FinishRun": 4},
        image="beam",
        staged=(StagedFile("own.whl", 1000), StagedFile("pipeline.pb", 500)),
        workers=(2, 4),
        seconds=seconds,
        plan=Plan(pools, ()),
    )


def test_workers_wait_for_the_quotas_of_calls() -> None:
    totals = CallTotals({(Step("s", "retrieve"), ""): SizeTotal(calls=7300, new=7200)})
    counted = CallCounts(totals=(totals, totals), pools={"s": "models"})
    (pool,) = pool_plans(counted, CallSettings(pools={"models": Quota(60, price_per_1000=2.0)}))
    description = described(pool, seconds=pool.seconds[0])
    lines = description.as_text().splitlines()
    time = "2 to 4, for at least 2 h 0 min by the quotas of calls: 0.24 dollars at 0.06 an hour of one CPU"
    assert lines[3] == f"workers  {time}, without their own work"
    assert (
        "models: 7,200 calls to make · 100 of 7,300 are in the ledger · 2 h 0 min at 60 a minute · cost 14.40" in lines
    )
    document = json.loads(description.as_json())
    assert (document["worker_cost"], document["plan"]["cost"]) == (pytest.approx(0.24), [14.4, 14.4])


def test_files_and_options_are_listed() -> None:
    text = described(seconds=0.0).as_text()
    assert "workers  2 to 4; no calls to wait for" in text
    rows = {tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()}
    assert {("own.whl", "1,000"), ("pipeline.pb", "500"), ("together", "1,500")} <= rows
    assert {("labels", "a=b, c=d"), ("num_workers", "2"), ("ReadDataset", "20"), ("FinishRun", "4")} <= rows
