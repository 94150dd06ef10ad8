"""Batch jobs of the Gemini Developer API, through google-genai: a file of requests, a job, a file of answers."""

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from rankbeam.transforms.clients.models import gemini_connection
from rankbeam.transforms.clients.models.attempts import ModelRequest
from rankbeam.transforms.clients.models.base import embedded_text
from rankbeam.transforms.clients.models.batches.service import BatchRow, KeyedLine, ServiceJob, object_in
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.gemini_connection import GeminiConnection
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.reply import Reply

Value = TypeVar("Value")

_ENDED = {"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"}
_TIMEOUT_S = 120.0
_NOT_SENT = ("http_options", "system_instruction")


async def connect(parameters: Gemini) -> "GeminiJobs":
    """Find the key and make a client."""
    return GeminiJobs(await gemini_connection.connect(parameters))


@dataclass(frozen=True)
class GeminiJobs:
    """The batch jobs of the service; see `service.JobService`."""

    connection: GeminiConnection

    def line(self, key: str, request: ModelRequest, prompt: Prompt) -> bytes:
        line = {"key": key, "request": self.request(request, prompt)}
        return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace")

    def request(self, request: ModelRequest, prompt: Prompt) -> dict[str, Any]:
        """A request in the form of the REST API."""
        if prompt.step == EMBED:
            return self._embedding(prompt)
        config = self.connection.config(request, prompt, _TIMEOUT_S)
        sent: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": request.texts.user}]}]}
        if config.system_instruction:
            sent["systemInstruction"] = {"parts": [{"text": config.system_instruction}]}
        sent["generationConfig"] = config.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude=set(_NOT_SENT)
        )
        return sent

    def reply(self, body: Mapping[str, Any], request: ModelRequest, prompt: Prompt) -> Reply:
        from google.genai import types

        if prompt.step == EMBED:
            vector = (body.get("embedding") or {}).get("values")
            return self.connection.embeddings([vector], [body.get("tokenCount")], [embedded_text(prompt)])

        try:
            response = types.GenerateContentResponse.model_validate(dict(body))
        except ValueError as error:
            raise CallError(FailureKind.MALFORMED, f"the answer has another form: {type(error).__name__}") from None
        return self.connection.reply(response, request)

    async def create(self, name: str, lines: IO[bytes], step: str) -> str:
        """Upload the file, and make the job."""
        files, batches = self.connection.client.aio.files, self.connection.client.aio.batches
        config = {"display_name": name, "mime_type": "application/jsonl"}
        uploaded = await self._sent(files.upload(file=lines, config=config))
        model, named = self.connection.parameters.model, {"display_name": name}
        if step == EMBED:
            creation = batches.create_embeddings(model=model, src={"file_name": uploaded.name}, config=named)
        else:
            creation = batches.create(model=model, src=uploaded.name, config=named)
        return service_job(await self._sent(creation)).id

    async def find(self, name: str) -> Sequence[ServiceJob]:
        """All jobs of a name, on all pages of the list."""
        listed = await self._sent(self._listed())
        return [job for job in map(service_job, listed) if job.name == name][::-1]  # the service lists the newest first

    async def job(self, job: str) -> ServiceJob:
        return service_job(await self._sent(self.connection.client.aio.batches.get(name=job)))

    async def cancel(self, job: str) -> None:
        """Ask the service to end a job."""
        await self._sent(self.connection.client.aio.batches.cancel(name=job))

    async def rows(self, job: ServiceJob, lines: Callable[[], Iterator[KeyedLine]]) -> AsyncIterator[BatchRow]:  # noqa: ARG002  see service.JobService
        for file in job.outputs:
            content = await self._sent(self.connection.client.aio.files.download(file=file))
            for line in filter(None, content.split(b"\n")):
                yield _row(object_in(line))

    async def close(self) -> None:
        await self.connection.close()

    def _embedding(self, prompt: Prompt) -> dict[str, Any]:
        """A request for an embedding."""
        task, dimensions = prompt.values.get("task_type"), self.connection.parameters.dimensions
        return {
            "content": {"parts": [{"text": embedded_text(prompt)}]},
            **({} if task is None else {"taskType": task}),
            **({} if dimensions is None else {"outputDimensionality": dimensions}),
        }

    async def _listed(self, **filters: str) -> list[Any]:
        pages = await self.connection.client.aio.batches.list(config={"page_size": 100, **filters})
        return [job async for job in pages]

    async def _sent(self, request: Coroutine[Any, Any, Value]) -> Value:
        """The result of a request of the library; what it raises becomes a CallError."""
        try:
            return await request
        except gemini_connection.errors() as error:
            raise self.connection.translated(error) from None
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            message = f"the answer cannot be read: {type(error).__name__}"
            raise CallError(FailureKind.MALFORMED, message) from None


def service_job(job: Any) -> ServiceJob:
    """A job as the library describes it."""
    state = str(getattr(job.state, "value", job.state) or "").removeprefix("JOB_STATE_")
    output = getattr(job.dest, "file_name", None) or getattr(job.dest, "gcs_uri", None)
    message = str(getattr(job.error, "message", None) or "")
    outputs = () if output is None else (output,)
    return ServiceJob(job.name or "", job.display_name or "", state, state in _ENDED, outputs, message)


def _row(row: Mapping[str, Any] | None) -> BatchRow:
    if row is None or not isinstance(row.get("key"), str):
        return BatchRow(None, None, "a row that cannot be read")
    response = row.get("response")
    if not isinstance(response, dict):
        return BatchRow(row["key"], None, json.dumps(row.get("error") or row.get("status"), ensure_ascii=False)[:200])
    return BatchRow(row["key"], response)
