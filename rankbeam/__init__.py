"""Batch evaluation of retrieval and RAG systems on Apache Beam.

`evaluate` and `score` do what the commands of these names do. What authors of plug-ins need is here, too: parameters of
retrievers and models, and what they are asked and answer. Names are imported where they are first used, so that
`rankbeam --help` waits for nothing.

    transforms   what a pipeline is made of, in floors: kernels, records, clients, stages
    pipelines    the experiment, the pipeline built from it, results, the command line
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankbeam.pipelines.api.result import Result
    from rankbeam.pipelines.api.run import evaluate, score
    from rankbeam.transforms.clients.calls.services import Connection
    from rankbeam.transforms.clients.models.base import ModelParameters, Stored
    from rankbeam.transforms.clients.retrievers.base import Retriever, RetrieverParameters
    from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
    from rankbeam.transforms.records.calls.prompt import Prompt
    from rankbeam.transforms.records.calls.quota import Quota
    from rankbeam.transforms.records.calls.reply import Reply, Tokens
    from rankbeam.transforms.records.errors import CallError, InputError, InputErrors, RankbeamError
    from rankbeam.transforms.records.failures import FailureKind
    from rankbeam.transforms.records.queries import Query, Ranking

__all__ = [
    "CallError",
    "Connection",
    "FailureKind",
    "InputError",
    "InputErrors",
    "ModelParameters",
    "Prompt",
    "Query",
    "Quota",
    "RankbeamError",
    "Ranking",
    "RemoteRetriever",
    "Reply",
    "Result",
    "Retriever",
    "RetrieverParameters",
    "Stored",
    "Tokens",
    "evaluate",
    "score",
]

_HOMES = {
    "CallError": "transforms.records.errors",
    "Connection": "transforms.clients.calls.services",
    "FailureKind": "transforms.records.failures",
    "InputError": "transforms.records.errors",
    "InputErrors": "transforms.records.errors",
    "ModelParameters": "transforms.clients.models.base",
    "Prompt": "transforms.records.calls.prompt",
    "Query": "transforms.records.queries",
    "Quota": "transforms.records.calls.quota",
    "Ranking": "transforms.records.queries",
    "RankbeamError": "transforms.records.errors",
    "RemoteRetriever": "transforms.clients.retrievers.remote",
    "Reply": "transforms.records.calls.reply",
    "Result": "pipelines.api.result",
    "Retriever": "transforms.clients.retrievers.base",
    "RetrieverParameters": "transforms.clients.retrievers.base",
    "Stored": "transforms.clients.models.base",
    "Tokens": "transforms.records.calls.reply",
    "evaluate": "pipelines.api.run",
    "score": "pipelines.api.run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
