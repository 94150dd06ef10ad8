"""`rankbeam log`: every configuration of a run is once in MLflow's local store, and in Vertex AI Experiments."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write
from support.runs import evaluated

from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.show.trials import trials_of
from rankbeam.transforms.clients.tracking import IDENTITY, resource_id

EXPERIMENT = """\
name: Fruit
dataset: {qrels: qrels}
configurations:
  - {name: wrong, retriever: {type: run_file, path: wrong.run}}
  - {name: right, retriever: {type: run_file, path: right.run}}
metrics: [RR, "P(rel=2)@5"]
output: {path: out}
"""
METRICS = ("RR", "P_rel_2_at_5")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("run")
    write(folder / "qrels", trec_qrels([(f"q{n}", f"d{n}", 2.0) for n in range(20)]))
    write(folder / "right.run", trec_run([(f"q{n}", f"d{n}", 1.0) for n in range(20)]))
    write(folder / "wrong.run", trec_run([(f"q{n}", f"d{n % 2}", 1.0) for n in range(20)]))
    return evaluated(write(folder / "e.yaml", EXPERIMENT), "first").output


def expected(out: str, name: str) -> dict[str, float]:
    results = find_run(out)
    config_id = next(row["config_id"] for row in results.configurations if row["name"] == name)
    values: dict[str, float | None] = {}
    for metric, tracked in zip(results.metrics, METRICS, strict=True):
        row = results.means[config_id, "all", metric]
        values |= {tracked: row.mean, f"{tracked}_ci_low": row.ci_low, f"{tracked}_ci_high": row.ci_high}
    return {key: value for key, value in values.items() if value is not None}


@pytest.mark.long
def test_mlflow_has_each_configuration_once(out: str, tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    store = f"sqlite:///{tmp_path}/mlflow.db"
    first = rankbeam("log", out, "--mlflow", store)
    assert (first.status, first.stdout.rpartition(": ")[2]) == (
        0,
        "2 of 2 configurations written to the experiment 'fruit'\n",
    )
    assert ": 0 of 2 configurations" in rankbeam("log", out, "--mlflow", store).stdout
    client = MlflowClient(store)
    runs = client.search_runs([client.get_experiment_by_name("fruit").experiment_id])
    assert {run.info.run_name for run in runs} == {"wrong", "right"}
    for run in runs:
        assert run.data.metrics == pytest.approx(expected(out, run.info.run_name))
        assert run.data.params["retriever.path"].endswith(f"{run.info.run_name}.run")
        assert run.data.tags["rankbeam.run_id"] == "first"
        assert run.info.status == "FINISHED"


@pytest.mark.campaign
def test_what_an_interrupted_copy_left_is_replaced(out: str, tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    store = f"sqlite:///{tmp_path}/mlflow.db"
    client, identity = MlflowClient(store), trials_of(find_run(out))[0].identity
    left = client.create_run(client.create_experiment("fruit"), tags={IDENTITY: identity}).info.run_id
    assert ": 2 of 2 configurations" in rankbeam("log", out, "--mlflow", store).stdout
    assert client.get_run(left).info.lifecycle_stage == "deleted"
    assert ": 0 of 2 configurations" in rankbeam("log", out, "--mlflow", store).stdout


def test_run_ids_that_vertex_ai_does_not_take_stay_apart(out: str) -> None:
    trial = trials_of(find_run(out))[0]
    run_ids = ["nightly-1", "Nightly_1", "nightly_1", "nightly.1"]
    ids = [resource_id("fruit", replace(trial, run_id=run_id)) for run_id in run_ids]
    assert ids[0] == f"fruit-nightly-1-{trial.config_id}"
    assert len(set(ids)) == len(ids)
    assert all(name == name.lower() and "_" not in name and "." not in name for name in ids)


@pytest.fixture
def vertex() -> Iterator[Any]:
    from support import vertex_metadata

    with vertex_metadata.serve() as metadata:
        yield metadata


@pytest.mark.long
def test_vertex_ai_has_each_configuration_as_googles_library_writes_it(out: str, vertex: Any) -> None:
    from google.cloud.aiplatform.metadata import constants  # takes seconds

    location = "projects/p/locations/us-central1"
    for _ in range(2):
        outcome = rankbeam("log", out, "--vertex", location, "--api-endpoint", vertex.address)
        assert outcome.status == 0, outcome.stderr
    store = f"{location}/metadataStores/default"
    assert vertex.stores == [store]
    parent = vertex.contexts.pop(f"{store}/contexts/fruit")
    assert parent.schema_title == constants.SYSTEM_EXPERIMENT
    assert MessageToDict(type(parent).pb(parent))["metadata"] == constants.EXPERIMENT_METADATA
    assert sorted(vertex.children[f"{store}/contexts/fruit"]) == sorted(vertex.contexts)
    for name, context in vertex.contexts.items():
        assert name.startswith(f"{store}/contexts/fruit-first-")
        assert (context.schema_title, context.schema_version) == (
            constants.SYSTEM_EXPERIMENT_RUN,
            constants.SCHEMA_VERSIONS[constants.SYSTEM_EXPERIMENT_RUN],
        )
        metadata = MessageToDict(type(context).pb(context))["metadata"]
        assert metadata[constants._METRIC_KEY] == pytest.approx(expected(out, context.display_name))
        assert metadata[constants._PARAM_KEY]["retriever.path"].endswith(f"{context.display_name}.run")
        assert metadata[constants._STATE_KEY] == "COMPLETE"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "name one tracker"),
        (("--mlflow", "a", "--vertex", "b"), "name one tracker"),
        (("--vertex", "my-project"), "is not a location; write projects/PROJECT/locations/REGION"),
        (("--vertex", "projects/p/locations/l", "--name", "Über"), "takes no name 'Über'"),
    ],
)
def test_what_is_refused(out: str, arguments: tuple[str, ...], problem: str) -> None:
    outcome = rankbeam("log", out, *arguments)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert problem in outcome.stderr
