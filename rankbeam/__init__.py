"""Batch evaluation of retrieval and RAG systems on Apache Beam.

`evaluate`, `judge` and `score` do what the commands of these names do. What authors of plug-ins need is here, too: base
classes of retrievers, models, corpora, metrics and steps of the judge, and what these are given and return. Names are
imported where they are first used, so that `rankbeam --help` waits for nothing.

    transforms   what a pipeline is made of, in floors: kernels, records, clients, stages
    pipelines    the experiment, the pipeline built from it, results, the command line
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankbeam.pipelines.api.judged import judge
    from rankbeam.pipelines.api.result import Result
    from rankbeam.pipelines.api.run import evaluate, score
    from rankbeam.transforms.clients.calls.services import Connection
    from rankbeam.transforms.clients.corpora.base import CorpusParameters
    from rankbeam.transforms.clients.models.base import ModelParameters, Stored
    from rankbeam.transforms.clients.retrievers.base import RemoteRetriever, Retriever, RetrieverParameters
    from rankbeam.transforms.clients.retrievers.rerankers import Reranker
    from rankbeam.transforms.judge.definitions import JudgedDefinition
    from rankbeam.transforms.kernels.judged import Undefined
    from rankbeam.transforms.kernels.ranking.rankings import Assessment
    from rankbeam.transforms.kernels.ranking.ties import Ties
    from rankbeam.transforms.records.calls.prompt import Prompt
    from rankbeam.transforms.records.calls.quota import Quota
    from rankbeam.transforms.records.chunking import Chunker
    from rankbeam.transforms.records.errors import CallError, FailureKind, InputError, InputErrors, RankbeamError
    from rankbeam.transforms.records.forms import Form
    from rankbeam.transforms.records.judging.steps import (
        Imagined,
        JudgedCase,
        JudgedInput,
        JudgeQuestion,
        JudgeStep,
        JudgeVerdict,
        Need,
    )
    from rankbeam.transforms.records.metrics.definitions import MetricDefinition
    from rankbeam.transforms.records.queries import Query, Ranking
    from rankbeam.transforms.records.reply import Reply, Tokens

__all__ = [
    "Assessment",
    "CallError",
    "Chunker",
    "Connection",
    "CorpusParameters",
    "FailureKind",
    "Form",
    "Imagined",
    "InputError",
    "InputErrors",
    "JudgeQuestion",
    "JudgeStep",
    "JudgeVerdict",
    "JudgedCase",
    "JudgedDefinition",
    "JudgedInput",
    "MetricDefinition",
    "ModelParameters",
    "Need",
    "Prompt",
    "Query",
    "Quota",
    "RankbeamError",
    "Ranking",
    "RemoteRetriever",
    "Reply",
    "Reranker",
    "Result",
    "Retriever",
    "RetrieverParameters",
    "Stored",
    "Ties",
    "Tokens",
    "Undefined",
    "evaluate",
    "judge",
    "score",
]

_HOMES = {
    "Assessment": "transforms.kernels.ranking.rankings",
    "CallError": "transforms.records.errors",
    "Chunker": "transforms.records.chunking",
    "Connection": "transforms.clients.calls.services",
    "CorpusParameters": "transforms.clients.corpora.base",
    "FailureKind": "transforms.records.errors",
    "Form": "transforms.records.forms",
    "Imagined": "transforms.records.judging.steps",
    "InputError": "transforms.records.errors",
    "InputErrors": "transforms.records.errors",
    "JudgeQuestion": "transforms.records.judging.steps",
    "JudgeStep": "transforms.records.judging.steps",
    "JudgeVerdict": "transforms.records.judging.steps",
    "JudgedCase": "transforms.records.judging.steps",
    "JudgedDefinition": "transforms.judge.definitions",
    "JudgedInput": "transforms.records.judging.steps",
    "MetricDefinition": "transforms.records.metrics.definitions",
    "ModelParameters": "transforms.clients.models.base",
    "Need": "transforms.records.judging.steps",
    "Prompt": "transforms.records.calls.prompt",
    "Query": "transforms.records.queries",
    "Quota": "transforms.records.calls.quota",
    "RankbeamError": "transforms.records.errors",
    "Ranking": "transforms.records.queries",
    "RemoteRetriever": "transforms.clients.retrievers.base",
    "Reranker": "transforms.clients.retrievers.rerankers",
    "Reply": "transforms.records.reply",
    "Result": "pipelines.api.result",
    "Retriever": "transforms.clients.retrievers.base",
    "RetrieverParameters": "transforms.clients.retrievers.base",
    "Stored": "transforms.clients.models.base",
    "Ties": "transforms.kernels.ranking.ties",
    "Tokens": "transforms.records.reply",
    "Undefined": "transforms.kernels.judged",
    "evaluate": "pipelines.api.run",
    "judge": "pipelines.api.judged",
    "score": "pipelines.api.run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
