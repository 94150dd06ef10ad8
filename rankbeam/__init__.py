"""Batch evaluation of retrieval and RAG systems on Apache Beam.

What authors of plug-ins need is here: parameters of retrievers and models, and what they are asked and answer. Names
are imported where they are first used, so that `rankbeam --help` waits for nothing.

    transforms   what a pipeline is made of, in floors: kernels, records, clients, stages
    pipelines    the experiment, the pipeline built from it, results, the command line
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankbeam.transforms.clients.calls.services import Connection
    from rankbeam.transforms.clients.models.base import ModelParameters
    from rankbeam.transforms.clients.retrievers.base import Retriever, RetrieverParameters
    from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
    from rankbeam.transforms.records.calls.prompt import Prompt
    from rankbeam.transforms.records.calls.quota import Quota
    from rankbeam.transforms.records.calls.reply import Reply, Tokens
    from rankbeam.transforms.records.errors import CallError, InputError
    from rankbeam.transforms.records.failures import FailureKind
    from rankbeam.transforms.records.queries import Query, Ranking

__all__ = [
    "CallError",
    "Connection",
    "FailureKind",
    "InputError",
    "ModelParameters",
    "Prompt",
    "Query",
    "Quota",
    "Ranking",
    "RemoteRetriever",
    "Reply",
    "Retriever",
    "RetrieverParameters",
    "Tokens",
]

_HOMES = {
    "CallError": "records.errors",
    "Connection": "clients.calls.services",
    "FailureKind": "records.failures",
    "InputError": "records.errors",
    "ModelParameters": "clients.models.base",
    "Prompt": "records.calls.prompt",
    "Query": "records.queries",
    "Quota": "records.calls.quota",
    "Ranking": "records.queries",
    "RemoteRetriever": "clients.retrievers.remote",
    "Reply": "records.calls.reply",
    "Retriever": "clients.retrievers.base",
    "RetrieverParameters": "clients.retrievers.base",
    "Tokens": "records.calls.reply",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.transforms.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
