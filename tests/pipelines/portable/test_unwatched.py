"""Runs that cannot be left to their job are refused before anything is started, each with its reason."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import batches, rag_corpora

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.portable.launch import refuse_unwatched
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.transforms.records.errors import InputError

LASTING = ["--runner=FlinkRunner", "--job_endpoint=localhost:8099", "--environment_type=EXTERNAL"]
SERVER: Any = SimpleNamespace(url="http://127.0.0.1:1")


def corpus(folder: Path, keep: str, **more: Any) -> str:
    configurations = [
        {"name": name, "retriever": {"type": "rag_engine", "corpus": "kb"}, "top_k": top_k}
        for name, top_k in (("a", 10), ("b", 20))
    ]
    files = rag_corpora.dataset(folder, 3)
    return rag_corpora.experiment(folder, SERVER, files, corpus={"keep": keep}, configurations=configurations, **more)


def refused(path: str, *options: str) -> list[str]:
    """The reasons of a refusal."""
    with pytest.raises(InputError) as refusal:
        refuse_unwatched(load_experiment(path), pipeline_options([*LASTING, *options]))
    first, *reasons = str(refusal.value).splitlines()
    assert first == "--no-wait: this run needs this process to its end:"
    return [reason.strip().partition(":")[0] for reason in reasons]


def test_every_reason_is_named(tmp_path: Path) -> None:
    path = corpus(tmp_path, "run", race={"metric": "nDCG@10"})
    assert refused(path, "--environment_type=LOOPBACK") == [
        "the workers would be in this process (LOOPBACK); name a pool of workers",
        "race",
        "corpora.kb.keep",
    ]


def test_batch_jobs_need_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    assert refused(batches.experiment(tmp_path, SERVER, {})) == ["services.m.batch"]


def test_a_run_that_needs_nothing_of_the_process_is_not_refused(tmp_path: Path) -> None:
    refuse_unwatched(load_experiment(corpus(tmp_path, "1d")), pipeline_options(LASTING))
