"""RAG Engine's data API as a service: one request for each attempt, and long-running operations by name.

A request that starts something is not retried if its answer is lost: a second one might create a second corpus, or
import files twice. Such an attempt has the answer "unsure", and its task looks up the result.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any

from pydantic import TypeAdapter

from rankbeam.transforms.clients.corpora.lists import AnswerForms, Page
from rankbeam.transforms.clients.google.channels import ChannelConnection, Endpoint, open_channels
from rankbeam.transforms.clients.google.errors import kind_of
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

SERVICE = "rag_engine_data"
_PAGE = 100
_LONGRUNNING = "google.longrunning.operations_pb2"
_UNSURE = {FailureKind.UNAVAILABLE, FailureKind.TIMEOUT, FailureKind.MALFORMED}


@dataclass(frozen=True)
class ListedCorpus:
    """A corpus as the service lists it."""

    name: str
    display_name: str
    description: str
    created: str  # when it was created, in ISO 8601
    state: str = "ACTIVE"
    error: str = ""


@dataclass(frozen=True)
class ListedFile:
    """A file in a corpus; `error` is the reason if it has no chunks."""

    uri: str
    name: str
    state: str = "ACTIVE"
    error: str = ""


@dataclass(frozen=True)
class StartedOperation:
    """The result of a request that starts an operation."""

    operation: str
    unsure: str = ""


@dataclass(frozen=True)
class Operation:
    """A long-running operation."""

    name: str
    done: bool
    progress: int = 0
    code: int = 0  # number of its final gRPC status; 0 if it did not fail
    message: str = ""
    resource: str = ""
    imported: int = 0
    is_import: bool = False

    @property
    def error(self) -> CallError | None:
        if not self.code:
            return None
        from google.rpc.code_pb2 import Code

        status = Code.Name(self.code) if self.code in Code.values() else "UNKNOWN"
        return CallError(kind_of(status), f"{status}: {self.message}")


ANSWERS = AnswerForms(
    "RAG Engine's data API",
    {
        "list": TypeAdapter(Page[ListedCorpus]),
        "files": TypeAdapter(Page[ListedFile]),
        "locations": TypeAdapter(Page[str]),  # projects/P/locations/L
        "create": TypeAdapter(StartedOperation),
        "update": TypeAdapter(StartedOperation),
        "import": TypeAdapter(StartedOperation),
        "delete": TypeAdapter(StartedOperation),
        "poll": TypeAdapter(Operation),
        "operations": TypeAdapter(Page[Operation]),
    },
)  # the answer to each request


@dataclass(frozen=True)
class DataApi:
    """The data API of one project and region."""

    location: str
    api_endpoint: Endpoint | None = None

    async def connect(self) -> "DataConnection":
        region = self.location.rpartition("/")[2]
        endpoint = self.api_endpoint or f"{region}-aiplatform.googleapis.com"
        channels = await open_channels(endpoint, "google.cloud.aiplatform_v1", "VertexRagDataService")
        return DataConnection(channels, self.location)

    def read(self, answer: str) -> Any:
        return ANSWERS.read(answer)

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  the data API is charged by the call
        return NO_TOKENS


@dataclass(frozen=True)
class DataConnection(ChannelConnection):
    """Open connections to the data API."""

    location: str

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  every attempt is the same
        request = json.loads(payload)
        name = request.pop("request")
        kind = _REQUESTS[name]
        try:
            answer = await self.channels.call(kind.method, lambda: kind.built(self.location, request), timeout_s)
        except CallError as error:
            if not kind.starts or error.kind not in _UNSURE:
                raise
            return Reply(ANSWERS.stored(name, {"operation": "", "unsure": error.message}))
        return Reply(ANSWERS.stored(name, kind.answer(answer)))


@dataclass(frozen=True)
class _Request:
    """A kind of request."""

    message: str  # the message's class, which is imported when it is needed
    fields: Callable[[str, Mapping[str, Any]], dict[str, Any]]  # the message's fields, from location and request
    method: str
    answer: Callable[[Any], dict[str, Any]]  # the parts of the answer that are stored
    starts: bool = False
    module: str = "google.cloud.aiplatform_v1.types"

    def built(self, location: str, request: Mapping[str, Any]) -> Any:
        return getattr(import_module(self.module), self.message)(**self.fields(location, request))


def _page(request: Mapping[str, Any], **fields: str) -> dict[str, Any]:
    return {"page_size": _PAGE, "page_token": request.get("page_token", ""), **fields}


def _page_reader(name: str, item_of: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    """A function for the parts of a page that are stored; `name` is the field with its items."""
    return lambda page: {"items": list(map(item_of, getattr(page, name))), "next": page.next_page_token}


def _corpus(corpus: Any) -> dict[str, Any]:
    status = corpus.corpus_status
    return {
        "name": corpus.name,
        "display_name": corpus.display_name,
        "description": corpus.description,
        "created": corpus.create_time.isoformat() if corpus.create_time else "",
        "state": status.state.name,
        "error": status.error_status,
    }


def _file(file: Any) -> dict[str, Any]:
    status = file.file_status
    return {
        "uri": next(iter(file.gcs_source.uris), ""),
        "name": file.display_name,
        "state": status.state.name,
        "error": status.error_status,
    }


def _started_operation(operation: Any) -> dict[str, Any]:
    return {"operation": operation.operation.name}


def _operation(operation: Any) -> dict[str, Any]:
    from google.cloud.aiplatform_v1.types import ImportRagFilesOperationMetadata, ImportRagFilesResponse, RagCorpus

    metadata, response, corpus = (
        message.pb(message()) for message in (ImportRagFilesOperationMetadata, ImportRagFilesResponse, RagCorpus)
    )
    is_import = bool(operation.metadata.Unpack(metadata))
    operation.response.Unpack(response)
    operation.response.Unpack(corpus)
    return {
        "name": operation.name,
        "done": operation.done,
        "progress": metadata.progress_percentage,
        "code": operation.error.code,
        "message": operation.error.message,
        "resource": corpus.name,
        "imported": response.imported_rag_files_count,
        "is_import": is_import,
    }


_REQUESTS = {
    "list": _Request(
        "ListRagCorporaRequest",
        lambda place, args: _page(args, parent=place),
        "list_rag_corpora",
        _page_reader("rag_corpora", _corpus),
    ),
    "files": _Request(
        "ListRagFilesRequest",
        lambda _, args: _page(args, parent=args["corpus"]),
        "list_rag_files",
        _page_reader("rag_files", _file),
    ),
    "locations": _Request(
        "ListLocationsRequest",
        lambda place, args: _page(args, name=place.partition("/locations/")[0]),
        "list_locations",
        _page_reader("locations", attrgetter("name")),
        module="google.cloud.location.locations_pb2",
    ),
    "create": _Request(
        "CreateRagCorpusRequest",
        lambda place, args: {"parent": place, "rag_corpus": args["corpus"]},
        "create_rag_corpus",
        _started_operation,
        starts=True,
    ),
    "update": _Request(
        "UpdateRagCorpusRequest",
        lambda _, args: {"rag_corpus": args["corpus"]},
        "update_rag_corpus",
        _started_operation,
    ),
    "import": _Request(
        "ImportRagFilesRequest",
        lambda _, args: {"parent": args["corpus"], "import_rag_files_config": args["config"]},
        "import_rag_files",
        _started_operation,
        starts=True,
    ),
    "delete": _Request(
        "DeleteRagCorpusRequest",
        lambda _, args: {"name": args["corpus"], "force": True},
        "delete_rag_corpus",
        _started_operation,
    ),
    "poll": _Request(
        "GetOperationRequest",
        lambda _, args: {"name": args["operation"]},
        "get_operation",
        _operation,
        module=_LONGRUNNING,
    ),
    "operations": _Request(
        "ListOperationsRequest",
        lambda _, args: {"name": args["corpus"], "page_token": args.get("page_token", "")},
        "list_operations",
        _page_reader("operations", _operation),
        module=_LONGRUNNING,
    ),
}
