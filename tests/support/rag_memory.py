"""RAG Engine in this process, for works on a virtual clock: the state of the stand-in, without gRPC."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.standins.rag_state import Behaviour, Operation, RagState, Refused

from rankbeam.transforms.clients.corpora.rag_engine.data_api import ANSWERS, DataApi
from rankbeam.transforms.clients.google.errors import kind_of
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply

_STATUS = {3: "INVALID_ARGUMENT", 5: "NOT_FOUND", 8: "RESOURCE_EXHAUSTED", 9: "FAILED_PRECONDITION", 13: "INTERNAL"}
PAGE = 100


@dataclass(frozen=True)
class MemoryApi(DataApi):
    """The data API over a state.

    Attributes:
        state: state of the service.
        fail: raises CallError for a request that is to fail, given its name and its number among those of that name.
        requests: names and times of the requests that came.
    """

    state: RagState | None = None
    fail: Callable[[str, int], None] = lambda *_: None
    requests: list[tuple[str, float]] = field(default_factory=list)

    async def connect(self) -> "MemoryApi":  # type: ignore[override]  # it is its own connection
        return self

    async def close(self) -> None:
        """Nothing was acquired."""

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the Protocol's
        name = json.loads(payload)["request"]
        self.requests.append((name, asyncio.get_running_loop().time()))
        self.fail(name, sum(request == name for request, _ in self.requests))
        return self.answer(payload)

    def answer(self, payload: str) -> Reply:
        """The answer to a request that comes now."""
        request = json.loads(payload)
        name = request.pop("request")
        try:
            values = getattr(self, f"_{name}")(**request)
        except Refused as error:
            raise CallError(kind_of(_STATUS[error.code]), str(error)) from error
        return Reply(ANSWERS.stored(name, values))

    @property
    def _there(self) -> RagState:
        assert self.state is not None
        return self.state

    def _list(self, page_token: str) -> Mapping[str, Any]:
        corpora, following = _page(self._there.corpora(), page_token)
        shown = [
            {"name": corpus.name, "display_name": corpus.display_name, "description": corpus.description,
             "created": f"{corpus.created:012.3f}"}
            for corpus in corpora
        ]  # fmt: skip
        return {"items": shown, "next": following}

    def _files(self, corpus: str, page_token: str) -> Mapping[str, Any]:
        files, following = _page(list(self._there.corpus(corpus).files.values()), page_token)
        return {"items": [{"uri": file.uri, "name": file.name} for file in files], "next": following}

    def _create(self, corpus: Mapping[str, Any]) -> Mapping[str, Any]:
        endpoint = corpus["vector_db_config"]["rag_embedding_model_config"]["vertex_prediction_endpoint"]["endpoint"]
        return _started(*self._there.create(self.location, corpus["display_name"], corpus["description"], endpoint))

    def _update(self, corpus: Mapping[str, Any]) -> Mapping[str, Any]:
        return _started(self._there.update(corpus["name"], corpus["description"]))

    def _delete(self, corpus: str) -> Mapping[str, Any]:
        return _started(self._there.delete(corpus))

    def _import(self, corpus: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
        chunking = config["rag_file_transformation_config"]["rag_file_chunking_config"]["fixed_length_chunking"]
        return _started(
            *self._there.import_files(
                corpus,
                config["gcs_source"]["uris"],
                (chunking["chunk_size"], chunking["chunk_overlap"]),
                config["max_embedding_requests_per_min"],
                config["import_result_gcs_sink"]["output_uri_prefix"],
            )
        )

    def _poll(self, operation: str) -> Mapping[str, Any]:
        return _operation(self._there.operation(operation))

    def _operations(self, corpus: str, page_token: str) -> Mapping[str, Any]:  # noqa: ARG002  all are on one page
        return {"items": [_operation(operation) for operation in self._there.operations(corpus)]}


def answered(api: MemoryApi, call: Call) -> Any:
    """The outcome of a call, as a work is sent it."""
    try:
        return api.read(api.answer(call.payload).answer)
    except CallError as error:
        return error


class Clocked:
    """A clock of a loop that is not there yet."""

    def __call__(self) -> float:
        """Seconds of the loop that runs."""
        return asyncio.get_running_loop().time()


def state(objects: Mapping[str, str], **behaviour: Any) -> RagState:
    """A state over objects of Cloud Storage, by URI."""

    def read(uri: str) -> dict[str, str]:
        return {name: text for name, text in objects.items() if name == uri or name.startswith(f"{uri}/")}

    return RagState(Behaviour(**behaviour), Clocked(), read, lambda *_: None)


def unavailable(*names: str, every: int) -> Callable[[str, int], None]:
    """Fails every so many requests of some names."""

    def fail(name: str, number: int) -> None:
        if name in names and number % every == 0:
            raise CallError(FailureKind.UNAVAILABLE, "UNAVAILABLE: as the test says")

    return fail


def _started(operation: Operation, is_lost: bool = False) -> Mapping[str, Any]:
    return {"operation": "", "unsure": "lost"} if is_lost else {"operation": operation.name}


def _operation(operation: Operation) -> Mapping[str, Any]:
    counts = {name: operation.counts[name] for name in ("imported", "failed", "skipped")}
    done = operation.is_done
    return {
        "name": operation.name,
        "done": done,
        "is_import": operation.kind == "import",
        "code": operation.code if done else 0,
        "message": operation.message,
        "resource": operation.corpus if done and operation.kind == "create" else "",
        **(counts if done else {}),
    }


def _page(items: list[Any], token: str) -> tuple[list[Any], str]:
    first = int(token or 0)
    return items[first : first + PAGE], f"{first + PAGE}" if first + PAGE < len(items) else ""
