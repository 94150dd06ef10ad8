"""Experiment files over remote retrievers and models that are registered as those of other packages are."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import ConfigDict
from support.inputs import json_texts, trec_qrels, trec_run, write

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.transforms.clients.calls.services import Connection
from rankbeam.transforms.clients.models.base import ModelParameters
from rankbeam.transforms.clients.parameters import entry_points_of
from rankbeam.transforms.clients.retrievers.base import RemoteRetriever
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import InputError

ENTRY_POINTS = """
[rankbeam.retrievers]
near = support.experiments:Near
words = support.experiments:Words
[rankbeam.models]
remote_model = support.experiments:Model
offline_model = support.experiments:Offline
"""


class Near(RemoteRetriever):
    """A service with distances: one budget a region, and a reranker whose answers are not prefixes of each other."""

    region: str = "r1"
    model: str = "m"
    rerank: bool = False
    vector_similarity_threshold: float | None = None
    endpoint: str | None = None
    id: str = "name"

    default_quota: ClassVar[Quota] = Quota(requests_per_minute=1500, attempts=4)
    operational: ClassVar[frozenset[str]] = frozenset({"quota", "endpoint"})
    reading: ClassVar[frozenset[str]] = frozenset({"id"})
    has_distances: ClassVar[bool] = True
    most_results: ClassVar[int] = 200

    def scope(self) -> str:
        """The region."""
        return self.region

    def is_prefix(self) -> bool:
        """Without the reranker."""
        return not self.rerank


class Words(RemoteRetriever):
    """Another service, whose scores are not distances."""

    default_quota: ClassVar[Quota] = Quota(requests_per_minute=300)


class Model(ModelParameters):
    """A model behind a network, with a budget for each project and model."""

    model: str
    project: str = "p"
    api_key: str | None = None

    model_config = ConfigDict(hide_input_in_errors=True)
    default_quota: ClassVar[Quota] = Quota(requests_per_minute=60)
    operational: ClassVar[frozenset[str]] = frozenset({"project", "api_key"})

    async def connect(self) -> Connection:
        """Nothing is called."""
        raise InputError("there is no network")

    def scope(self) -> str:
        """The project and model."""
        return f"{self.project} {self.model}"

    def unset(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """The key, as long as it is a reference."""
        if self.api_key == "${env:UNSET}":
            yield ("api_key",), "the environment has no UNSET"


class Offline(ModelParameters):
    """A model in process."""

    default_quota: ClassVar[Quota] = Quota(requests_per_minute=1e6)

    async def connect(self) -> Connection:
        """No model answers."""
        raise InputError("there is no model")


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the types above until the test ends, and write the files that `experiment` names."""
    info = folder / "site" / "services-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: services\nVersion: 1.0\n")
    write(info / "entry_points.txt", ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(folder / "site"))
    entry_points_of.cache_clear()
    write(folder / "qrels", trec_qrels([("q1", "d1", 1.0)]))
    write(folder / "queries.jsonl", json_texts([("q1", "a text")]))
    write(folder / "old.run", trec_run([("q1", "d1", 1.0)]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for experiments with these retrievers; a test module imports this fixture."""
    install(tmp_path, monkeypatch)
    yield tmp_path
    entry_points_of.cache_clear()


def experiment(configurations: Mapping[str, str], more: str = "", output: str = "{path: out}") -> str:
    """The text of an experiment.

    Args:
        configurations: the content of each after its name, such as "retriever: {type: near}, top_k: 5".
        more: further lines.
        output: folder for results.
    """
    lines = [f"  - {{name: {name}, {content}}}\n" for name, content in configurations.items()]
    start = "name: e\ndataset: {qrels: qrels, queries: queries.jsonl}\nconfigurations:\n"
    return f"{start}{''.join(lines)}metrics: [AP]\noutput: {output}\n{more}"


def load(folder: Path, text: str) -> Experiment:
    """The experiment of a text, in a file of the folder."""
    return load_experiment(write(folder / "e.yaml", text))


def problems(folder: Path, text: str) -> list[str]:
    """The lines of the message about a bad experiment, each without the path in front."""
    with pytest.raises(InputError) as caught:
        load(folder, text)
    start = f"{folder}/e.yaml:"
    lines = str(caught.value).split("\n")
    assert all(line.startswith(start) for line in lines), lines
    return [line.removeprefix(start) for line in lines]
