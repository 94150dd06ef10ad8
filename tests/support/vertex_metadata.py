"""A stand-in for Vertex ML Metadata. Google's library takes seconds to import: import this only where it is used."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from google.cloud.aiplatform_v1 import types


class Metadata:
    """Vertex ML Metadata, as far as it is asked: contexts by name, and the children of each."""

    def __init__(self) -> None:
        self.contexts: dict[str, types.Context] = {}
        self.children: dict[str, list[str]] = {}
        self.stores: list[str] = []
        self.address = ""

    def get_metadata_store(self, request: Any, context: grpc.ServicerContext) -> Any:
        if request.name not in self.stores:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such store")
        return types.MetadataStore(name=request.name)

    def create_metadata_store(self, request: Any, _: grpc.ServicerContext) -> Any:
        from google.longrunning.operations_pb2 import Operation

        self.stores.append(f"{request.parent}/metadataStores/{request.metadata_store_id}")
        return Operation(name="operations/1")

    def get_context(self, request: Any, context: grpc.ServicerContext) -> Any:
        if request.name not in self.contexts:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such context")
        return self.contexts[request.name]

    def create_context(self, request: Any, context: grpc.ServicerContext) -> Any:
        name = f"{request.parent}/contexts/{request.context_id}"
        if name in self.contexts:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "there is such a context")
        self.contexts[name] = request.context
        return request.context

    def update_context(self, request: Any, _: grpc.ServicerContext) -> Any:
        assert request.update_mask.paths == ["metadata"]
        self.contexts[request.context.name].metadata = request.context.metadata
        return self.contexts[request.context.name]

    def add_context_children(self, request: Any, _: grpc.ServicerContext) -> Any:
        known = self.children.setdefault(request.context, [])
        known += [name for name in request.child_contexts if name not in known]
        return types.AddContextChildrenResponse()


METHODS = {
    "GetMetadataStore": types.GetMetadataStoreRequest,
    "CreateMetadataStore": types.CreateMetadataStoreRequest,
    "GetContext": types.GetContextRequest,
    "CreateContext": types.CreateContextRequest,
    "UpdateContext": types.UpdateContextRequest,
    "AddContextChildren": types.AddContextChildrenRequest,
}


@contextmanager
def serve() -> Iterator[Metadata]:
    """Serve it, for as long as the block lasts."""
    metadata = Metadata()
    handlers = {}
    for name, request in METHODS.items():
        own = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
        handlers[name] = grpc.unary_unary_rpc_method_handler(
            getattr(metadata, own),
            request_deserializer=request.deserialize,
            response_serializer=lambda answer: (
                type(answer).serialize(answer) if hasattr(type(answer), "serialize") else answer.SerializeToString()
            ),
        )
    server = grpc.server(ThreadPoolExecutor(2))
    service = "google.cloud.aiplatform.v1.MetadataService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    metadata.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield metadata
    server.stop(None).wait()
