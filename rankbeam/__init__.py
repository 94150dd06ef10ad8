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
    from rankbeam.pipelines.api.judged import judge as judge
    from rankbeam.pipelines.api.result import Result as Result
    from rankbeam.pipelines.api.run import evaluate as evaluate
    from rankbeam.pipelines.api.run import score as score
    from rankbeam.transforms.clients.calls.services import Connection as Connection
    from rankbeam.transforms.clients.corpora.base import CorpusParameters as CorpusParameters
    from rankbeam.transforms.clients.models.base import ModelParameters as ModelParameters
    from rankbeam.transforms.clients.models.base import Stored as Stored
    from rankbeam.transforms.clients.retrievers.base import RemoteRetriever as RemoteRetriever
    from rankbeam.transforms.clients.retrievers.base import Retriever as Retriever
    from rankbeam.transforms.clients.retrievers.base import RetrieverParameters as RetrieverParameters
    from rankbeam.transforms.clients.retrievers.rerankers import Reranker as Reranker
    from rankbeam.transforms.judge.definitions import JudgedDefinition as JudgedDefinition
    from rankbeam.transforms.kernels.judged import Undefined as Undefined
    from rankbeam.transforms.kernels.ranking.rankings import Assessment as Assessment
    from rankbeam.transforms.kernels.ranking.ties import Ties as Ties
    from rankbeam.transforms.records.calls.prompt import Prompt as Prompt
    from rankbeam.transforms.records.calls.quota import Quota as Quota
    from rankbeam.transforms.records.chunking import Chunker as Chunker
    from rankbeam.transforms.records.errors import CallError as CallError
    from rankbeam.transforms.records.errors import FailureKind as FailureKind
    from rankbeam.transforms.records.errors import InputError as InputError
    from rankbeam.transforms.records.errors import InputErrors as InputErrors
    from rankbeam.transforms.records.errors import RankbeamError as RankbeamError
    from rankbeam.transforms.records.forms import Form as Form
    from rankbeam.transforms.records.judging.steps import Imagined as Imagined
    from rankbeam.transforms.records.judging.steps import JudgedCase as JudgedCase
    from rankbeam.transforms.records.judging.steps import JudgedInput as JudgedInput
    from rankbeam.transforms.records.judging.steps import JudgeQuestion as JudgeQuestion
    from rankbeam.transforms.records.judging.steps import JudgeStep as JudgeStep
    from rankbeam.transforms.records.judging.steps import JudgeVerdict as JudgeVerdict
    from rankbeam.transforms.records.judging.steps import Need as Need
    from rankbeam.transforms.records.metrics.definitions import MetricDefinition as MetricDefinition
    from rankbeam.transforms.records.queries import Query as Query
    from rankbeam.transforms.records.queries import Ranking as Ranking
    from rankbeam.transforms.records.reply import Reply as Reply
    from rankbeam.transforms.records.reply import Tokens as Tokens

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
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
