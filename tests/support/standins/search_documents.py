"""Data stores of Vertex AI Search: `DocumentService.ListDocuments` and `ChunkService.ListChunks`.

A document whose first chunk has a "uri" is a file of Cloud Storage; else one with a "title" is structured; else the
service holds it as text.
"""

from collections.abc import Sequence
from typing import Any

from google.protobuf.struct_pb2 import Struct
from support.standins import grpc_server, messages, objects
from support.standins.reception import Reception

PAGE = 10
STABLE = messages.module("google.cloud.discoveryengine_v1", "document_service")
DOCUMENT = messages.module("google.cloud.discoveryengine_v1", "document").Document.pb()
CHUNK_LIST = messages.module("google.cloud.discoveryengine_v1alpha", "chunk_service")
CHUNK = messages.module("google.cloud.discoveryengine_v1alpha", "chunk").Chunk.pb()


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    answers = reception.settings.answers
    storage = objects.Objects(tuple(reception.settings.buckets))
    storage_port = objects.serve(storage)
    reception.extra = lambda: {"storage_port": storage_port}

    def documents(request: Any, _: str | None) -> Any:
        names, token = _page(sorted(answers), request)
        shown = [_document(request.parent, name, answers[name]) for name in names]
        return STABLE.ListDocumentsResponse.pb()(documents=shown, next_page_token=token)

    def chunks(request: Any, _: str | None) -> Any:
        name = request.parent.rpartition("/")[2]
        rows, token = _page(list(enumerate(answers[name], start=1)), request)
        shown = [
            CHUNK(
                name=f"{request.parent}/chunks/c{number}",
                id=f"c{number}",
                content=row["text"],
                document_metadata={"title": row.get("title", ""), "uri": row.get("uri", "")},
            )
            for number, row in rows
        ]
        return CHUNK_LIST.ListChunksResponse.pb()(chunks=shown, next_page_token=token)

    return await grpc_server.start(
        reception,
        grpc_server.Method(
            "google.cloud.discoveryengine.v1.DocumentService",
            "ListDocuments",
            STABLE.ListDocumentsRequest.pb(),
            lambda request: request.parent,
            documents,
        ),
        grpc_server.Method(
            "google.cloud.discoveryengine.v1alpha.ChunkService",
            "ListChunks",
            CHUNK_LIST.ListChunksRequest.pb(),
            lambda request: request.parent,
            chunks,
        ),
    )


def _page(rows: Sequence[Any], request: Any) -> tuple[Sequence[Any], str]:
    """A page that is smaller than the one that was asked for, as the service may do."""
    first = int(request.page_token or 0)
    end = first + min(request.page_size or PAGE, PAGE)
    return rows[first:end], f"{end}" if end < len(rows) else ""


def _document(branch: str, name: str, rows: Sequence[Any]) -> Any:
    first = rows[0] if rows else {}
    shown = DOCUMENT(name=f"{branch}/documents/{name}", id=name)
    if "uri" in first:
        shown.content.uri, shown.content.mime_type = first["uri"], "text/plain"
    elif "title" in first:
        struct = Struct()
        struct.update({"title": first["title"], "text": first["text"], "product": "desk"})
        shown.struct_data.CopyFrom(struct)
    elif first:
        shown.content.mime_type, shown.content.raw_bytes = "text/plain", first["text"].encode()
    return shown
