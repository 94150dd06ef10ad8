"""Batch jobs of services that are compatible with OpenAI's: POST /files, POST /batches, GET /files/ID/content."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import httpx

from rankbeam.transforms.clients.http.transport import error_of, kind_of_status
from rankbeam.transforms.clients.models import openai_connection
from rankbeam.transforms.clients.models.base import embedded_text
from rankbeam.transforms.clients.models.batches.service import BatchRow, KeyedLine, ServiceJob, lines_of, object_in
from rankbeam.transforms.clients.models.model_connection import ModelRequest
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.clients.models.openai_connection import OpenAiConnection, message_of, value_at
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply

_ENDED = {"completed", "failed", "expired", "cancelled"}
_UPLOAD_S = 900.0
_SILENT_S = 120.0  # most time between two pieces of a file
_NAME = "rankbeam"
_NOT_BEGUN = {"batch_expired", "batch_cancelled"}
_OVER_LIMIT = re.compile("token_limit_exceeded|enqueued", re.IGNORECASE)
_WINDOW = "24h"  # the only window that services accept


async def connect(parameters: OpenAi) -> "OpenAiJobs":
    return OpenAiJobs(await openai_connection.connect(parameters))


@dataclass(frozen=True)
class OpenAiJobs:
    """The batch jobs of a service; see `service.BatchService`."""

    connection: OpenAiConnection

    def line(self, key: str, request: ModelRequest, prompt: Prompt) -> bytes:
        embeds = prompt.step == EMBED
        connection = self.connection
        body = connection.embedding_body([embedded_text(prompt)]) if embeds else connection.body(request, prompt)
        row = {"custom_id": key, "method": "POST", "url": _url(prompt.step), "body": body}
        return json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")

    def reply(self, body: Mapping[str, Any], request: ModelRequest, prompt: Prompt) -> Reply:
        if prompt.step == EMBED:
            return self.connection.embeddings(body, [embedded_text(prompt)])
        return self.connection.reply(body, request, prompt)

    async def create(self, name: str, lines: IO[bytes], step: str) -> str:
        form = {"data": {"purpose": "batch"}, "files": {"file": (f"{name}.jsonl", lines, "application/jsonl")}}
        uploaded = await self.connection.object("POST", "/files", timeout_s=_UPLOAD_S, **form)
        job = {
            "input_file_id": uploaded.get("id"),
            "endpoint": _url(step),
            "completion_window": _WINDOW,
            "metadata": {_NAME: name},
        }
        return _job(await self.connection.object("POST", "/batches", content=json.dumps(job).encode())).id

    async def find(self, name: str) -> Sequence[ServiceJob]:
        jobs: list[ServiceJob] = []
        after = ""
        while True:
            page = await self.connection.object("GET", f"/batches?limit=100{after}")
            rows = page.get("data")
            listed = [_job(row) for row in rows] if isinstance(rows, list) else []
            jobs += [job for job in listed if job.name == name]
            if not listed or not page.get("has_more"):
                return jobs[::-1]  # services list the newest first
            after = f"&after={listed[-1].id}"

    async def job(self, job: str) -> ServiceJob:
        return _job(await self.connection.object("GET", f"/batches/{job}"))

    async def cancel(self, job: str) -> None:
        await self.connection.object("POST", f"/batches/{job}/cancel", content=b"{}")

    async def rows(self, job: ServiceJob, lines: Callable[[], Iterator[KeyedLine]]) -> AsyncIterator[BatchRow]:  # noqa: ARG002  see service.BatchService
        for file in job.outputs:
            async for line in lines_of(self._content(file)):
                if (row := _row(object_in(line), self.connection.secrets.hide)) is not None:
                    yield row

    async def _content(self, file: str) -> AsyncIterator[bytes]:
        connection = self.connection
        url = f"{connection.parameters.base_url}/files/{file}/content"
        try:
            with connection.clients.one() as client:
                async with client.stream("GET", url, timeout=_SILENT_S) as response:
                    if not response.is_success:
                        status = response.status_code
                        raise CallError(kind_of_status(status), f"HTTP {status} for the file {file}")
                    async for piece in response.aiter_bytes():
                        yield piece
        except httpx.HTTPError as error:
            raise error_of(error, connection.secrets.hide) from None


def _url(step: str) -> str:
    return "/v1/embeddings" if step == EMBED else "/v1/chat/completions"


def _job(body: Any) -> ServiceJob:
    if not isinstance(body, dict) or not isinstance(body.get("id"), str):
        raise CallError(FailureKind.MALFORMED, "the service describes a batch job without an id")
    state, errors = str(body.get("status", "")), value_at(body, "errors", "data") or body.get("errors")
    problems = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    message = "; ".join(str(error.get("message", "")) for error in problems[:3])
    is_over_limit = state == "failed" and any(_OVER_LIMIT.search(json.dumps(error)) for error in problems)
    files = (body.get("output_file_id"), body.get("error_file_id"))
    outputs = tuple(file for file in files if isinstance(file, str) and file)
    name = str(value_at(body, "metadata", _NAME) or "")
    answers = value_at(body, "request_counts", "completed")
    count = answers if type(answers) is int else 0
    return ServiceJob(body["id"], name, state, state in _ENDED, outputs, message, count, is_over_limit)


def _row(row: Mapping[str, Any] | None, hide: Callable[[str], str]) -> BatchRow | None:
    """Parse a row of the output; None for a request that was never begun."""
    if row is None or not isinstance(row.get("custom_id"), str):
        return BatchRow(None, None)
    response, error = row.get("response"), row.get("error")
    if value_at(error, "code") in _NOT_BEGUN:
        return None
    body, status = value_at(response, "body"), value_at(response, "status_code")
    if error or status != 200:
        return BatchRow(row["custom_id"], None, hide(message_of(value_at(body, "error") or error or body)))
    return BatchRow(row["custom_id"], body if isinstance(body, dict) else None)
