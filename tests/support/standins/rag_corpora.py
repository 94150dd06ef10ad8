"""Vertex AI RAG Engine as a whole: its data API with long-running operations, and retrieval from what was imported.

`rag_state` holds the corpora, `objects` the Cloud Storage that files are imported from. Quotas and faults of the
reception are those of the data API.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from google.cloud.location import locations_pb2
from google.longrunning import operations_pb2
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status
from support.standins import grpc_server, messages, objects
from support.standins.rag_state import Behaviour, Corpus, Operation, RagState, Refused
from support.standins.reception import Reception

PACKAGE = "google.cloud.aiplatform_v1"
SERVICE = "google.cloud.aiplatform.v1.VertexRagDataService"
OPERATIONS = "google.longrunning.Operations"
LOCATIONS = "google.cloud.location.Locations"
PAGE = 100
UNIMPLEMENTED = 12


def _messages() -> Any:
    return messages.module(PACKAGE, "vertex_rag_data_service")


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    behaviour = Behaviour(**reception.settings.rag)
    storage = objects.Objects(tuple(reception.settings.buckets), behaviour.uploads_granted)
    state = RagState(behaviour, time.monotonic, lambda uri: _parsed(storage.below(uri)), storage.put)
    storage_port = objects.serve(storage)
    reception.extra = lambda: {
        **state.shown(),
        "storage_port": storage_port,
        "databases": api.databases,
        "keys": api.keys,
        "rebuilds": api.rebuilds,
        "objects": storage.beginning("gs://"),
        "uploads": storage.uploads,
        "deleted_objects": storage.deleted,
    }
    api = _Api(state)
    own = _messages()
    methods = [
        *(
            _method(SERVICE, name, getattr(own, f"{name}Request").pb(), answer)
            for name, answer in api.methods().items()
        ),
        _method(OPERATIONS, "GetOperation", operations_pb2.GetOperationRequest, api.get_operation),
        _method(LOCATIONS, "ListLocations", locations_pb2.ListLocationsRequest, api.list_locations),
        _method(OPERATIONS, "ListOperations", operations_pb2.ListOperationsRequest, api.list_operations),
    ]
    retrieval = messages.module(PACKAGE, "vertex_rag_service")
    methods.append(
        grpc_server.Method(
            "google.cloud.aiplatform.v1.VertexRagService",
            "RetrieveContexts",
            retrieval.RetrieveContextsRequest.pb(),
            lambda request: request.query.text,
            lambda request, _: _refusing(lambda: _contexts(state, retrieval, request)),
            is_counted=False,
        )
    )
    return await grpc_server.start(reception, *methods)


def _parsed(objects: Mapping[str, str]) -> dict[str, str]:
    """The texts of objects, of which some are not text: answers hold what can be read."""
    content = {uri: text.encode(errors="surrogateescape") for uri, text in objects.items()}
    return {uri: text.decode(errors="replace") for uri, text in content.items()}


def _method(service: str, name: str, request: Any, answer: Callable[[Any], Any]) -> grpc_server.Method:
    return grpc_server.Method(
        service, name, request, lambda _: name, lambda message, _: _refusing(lambda: answer(message))
    )


def _refusing(answer: Callable[[], Any]) -> Any:
    try:
        return answer()
    except Refused as error:
        raise grpc_server.Aborted(error.code, str(error)) from error


class _Api:
    """Answers requests of the data API."""

    def __init__(self, state: RagState) -> None:
        self._state = state
        self.databases: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.rebuilds: list[bool] = []
        self._types = _messages()
        self._data = messages.module(PACKAGE, "vertex_rag_data")

    def methods(self) -> dict[str, Callable[[Any], Any]]:
        """Handlers by the name of the method."""
        return {
            "CreateRagCorpus": self.create,
            "ListRagCorpora": self.list_corpora,
            "UpdateRagCorpus": self.update,
            "DeleteRagCorpus": self.delete,
            "ImportRagFiles": self.import_files,
            "ListRagFiles": self.list_files,
        }

    def create(self, request: Any) -> Any:
        own = request.rag_corpus
        self.databases.append(MessageToDict(own.vector_db_config, preserving_proto_field_name=True))
        self.keys.append(own.encryption_spec.kms_key_name)
        endpoint = own.vector_db_config.rag_embedding_model_config.vertex_prediction_endpoint.endpoint
        operation, is_lost = self._state.create(request.parent, own.display_name, own.description, endpoint)
        return self._started(operation, is_lost)

    def update(self, request: Any) -> Any:
        return self._started(self._state.update(request.rag_corpus.name, request.rag_corpus.description))

    def delete(self, request: Any) -> Any:
        return self._started(self._state.delete(request.name))

    def import_files(self, request: Any) -> Any:
        config = request.import_rag_files_config
        chunking = config.rag_file_transformation_config.rag_file_chunking_config.fixed_length_chunking
        self.rebuilds.append(config.rebuild_ann_index)
        operation, is_lost = self._state.import_files(
            request.parent,
            list(config.gcs_source.uris),
            (chunking.chunk_size, chunking.chunk_overlap),
            config.max_embedding_requests_per_min,
            config.import_result_gcs_sink.output_uri_prefix,
        )
        return self._started(operation, is_lost)

    def list_locations(self, request: Any) -> Any:
        page, token = _page(
            [f"{request.name}/locations/{location}" for location in self._state.behaviour.locations],
            request.page_token,
            1,
        )
        return locations_pb2.ListLocationsResponse(
            locations=[{"name": location} for location in page], next_page_token=token
        )

    def list_corpora(self, request: Any) -> Any:
        if not self._state.behaviour.locations.get(request.parent.rpartition("/")[2], True):
            raise Refused(UNIMPLEMENTED, "RAG Engine is not available in this location")
        here = [corpus for corpus in self._state.corpora() if corpus.name.startswith(f"{request.parent}/")]
        page, token = _page(here, request.page_token)
        return self._types.ListRagCorporaResponse.pb()(
            rag_corpora=[self._corpus(corpus) for corpus in page], next_page_token=token
        )

    def list_files(self, request: Any) -> Any:
        page, token = _page(list(self._state.corpus(request.parent).files.values()), request.page_token)
        message = self._data.RagFile.pb()
        files = [message(display_name=file.name, gcs_source={"uris": [file.uri]}) for file in page]
        return self._types.ListRagFilesResponse.pb()(rag_files=files, next_page_token=token)

    def get_operation(self, request: Any) -> Any:
        return self._operation(self._state.operation(request.name))

    def list_operations(self, request: Any) -> Any:
        shown = [self._operation(operation) for operation in self._state.operations(request.name)]
        return operations_pb2.ListOperationsResponse(operations=shown)

    def _started(self, operation: Operation, is_lost: bool = False) -> Any:
        if is_lost:
            raise Refused(14, "Connection reset by peer")  # what was asked for is done all the same
        return self._operation(operation)

    def _operation(self, operation: Operation) -> Any:
        shown = operations_pb2.Operation(name=operation.name, done=operation.is_done)
        if operation.kind == "import":
            progress = self._state.progress(operation)
            _pack(shown.metadata, self._types.ImportRagFilesOperationMetadata.pb()(progress_percentage=progress))
        if not operation.is_done:
            return shown
        if operation.code:
            shown.error.CopyFrom(Status(code=operation.code, message=operation.message))
        else:
            _pack(shown.response, self._response(operation))
        return shown

    def _response(self, operation: Operation) -> Any:
        if operation.kind == "import":
            counts = {f"{name}_rag_files_count": operation.counts[name] for name in ("imported", "failed", "skipped")}
            return self._types.ImportRagFilesResponse.pb()(**counts)
        return self._data.RagCorpus.pb()(name=operation.corpus)

    def _corpus(self, corpus: Corpus) -> Any:
        shown = self._data.RagCorpus.pb()(
            name=corpus.name, display_name=corpus.display_name, description=corpus.description
        )
        shown.create_time.FromMilliseconds(int(corpus.created * 1000))
        shown.corpus_status.state = 2
        return shown


def _contexts(state: RagState, types: Any, request: Any) -> Any:
    corpus = request.vertex_rag_store.rag_resources[0].rag_corpus
    top_k = request.query.rag_retrieval_config.top_k or 10
    results = state.retrieve(corpus, request.query.text, top_k)
    contexts = [
        {"source_uri": file.uri, "source_display_name": file.name, "text": chunk, "score": distance}
        for distance, file, chunk in results
    ]
    return types.RetrieveContextsResponse.pb()(contexts={"contexts": contexts})


def _page(items: list[Any], token: str, size: int = PAGE) -> tuple[list[Any], str]:
    first = int(token or 0)
    end = first + size
    return items[first:end], f"{end}" if end < len(items) else ""


def _pack(place: Packed, message: Any) -> None:
    place.Pack(message)
