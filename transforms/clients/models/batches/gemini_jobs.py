"""Batch jobs of Gemini, through google-genai: a file of requests, a job, a file of answers.

On Vertex AI, requests and answers are files in Cloud Storage:

STAGING/rankbeam-v1-HASH.jsonl                               the requests of a job
STAGING/rankbeam-v1-HASH-ID/prediction-model-…/….jsonl       its answers, each with its request

Rows have no key there. An answer belongs to the call that made the request in its row.
"""

import asyncio
import glob
import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from rankbeam.transforms.clients.models import gemini_connection
from rankbeam.transforms.clients.models.base import embedded_text
from rankbeam.transforms.clients.models.batches.service import BatchRow, KeyedLine, ServiceJob, object_in
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.gemini_connection import GeminiConnection
from rankbeam.transforms.clients.models.model_connection import ModelRequest
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply

Value = TypeVar("Value")

_ENDED = {"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"}
_TIMEOUT_S = 120.0
_NOT_SENT = ("http_options", "system_instruction")


async def connect(parameters: Gemini) -> "GeminiJobs":
    connection = await gemini_connection.connect(parameters)
    return VertexJobs(connection) if parameters.on_vertex else GeminiJobs(connection)


@dataclass(frozen=True)
class GeminiJobs:
    """Batch jobs on the Developer API; see `service.BatchService`."""

    connection: GeminiConnection

    def line(self, key: str, request: ModelRequest, prompt: Prompt) -> bytes:
        line = {"key": key, "request": self.request(request, prompt)}
        return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace")

    def request(self, request: ModelRequest, prompt: Prompt) -> dict[str, Any]:
        """A request as the REST API takes it."""
        if prompt.step == EMBED:
            return self._embedding_request(prompt)
        config = self.connection.config(request, prompt, _TIMEOUT_S)
        body: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": request.texts.user}]}]}
        if config.system_instruction:
            body["systemInstruction"] = {"parts": [{"text": config.system_instruction}]}
        body["generationConfig"] = config.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude=set(_NOT_SENT)
        )
        return body

    def reply(self, body: Mapping[str, Any], request: ModelRequest, prompt: Prompt) -> Reply:
        from google.genai import types

        form = types.SingleEmbedContentResponse if prompt.step == EMBED else types.GenerateContentResponse
        try:
            # As the library reads other answers: `model_validate` refuses keys that it does not know, such as `score`.
            response = form._from_response(response=dict(body), kwargs={})
        except ValueError as error:
            raise CallError(FailureKind.MALFORMED, f"the answer has another form: {type(error).__name__}") from None
        if isinstance(response, types.SingleEmbedContentResponse):
            vector = response.embedding.values if response.embedding else None
            return self.connection.embeddings([vector], [response.token_count], [embedded_text(prompt)])
        return self.connection.reply(response, request)

    async def create(self, name: str, lines: IO[bytes], step: str) -> str:
        files, batches = self.connection.client.aio.files, self.connection.client.aio.batches
        config = {"display_name": name, "mime_type": "application/jsonl"}
        uploaded = await self._result(files.upload(file=lines, config=config))
        model, named = self.connection.parameters.model, {"display_name": name}
        if step == EMBED:
            creation = batches.create_embeddings(model=model, src={"file_name": uploaded.name}, config=named)
        else:
            creation = batches.create(model=model, src=uploaded.name, config=named)
        return service_job(await self._result(creation)).id

    async def find(self, name: str) -> Sequence[ServiceJob]:
        listed = await self._result(self._list_jobs(**self.filters(name)))
        return [job for job in map(service_job, listed) if job.name == name][::-1]  # the service lists the newest first

    def filters(self, name: str) -> dict[str, str]:  # noqa: ARG002  the Developer API filters nothing
        """Filters for the list of jobs that select those with this name."""
        return {}

    async def job(self, job: str) -> ServiceJob:
        return service_job(await self._result(self.connection.client.aio.batches.get(name=job)))

    async def cancel(self, job: str) -> None:
        await self._result(self.connection.client.aio.batches.cancel(name=job))

    async def rows(self, job: ServiceJob, lines: Callable[[], Iterator[KeyedLine]]) -> AsyncIterator[BatchRow]:  # noqa: ARG002  see service.BatchService
        for file in job.outputs:
            content = await self._result(self.connection.client.aio.files.download(file=file))
            for line in filter(None, content.split(b"\n")):
                yield self._row(object_in(line))

    def _embedding_request(self, prompt: Prompt) -> dict[str, Any]:
        task, dimensions = prompt.values.get("task_type"), self.connection.parameters.dimensions
        return {
            "content": {"parts": [{"text": embedded_text(prompt)}]},
            **({} if task is None else {"taskType": task}),
            **({} if dimensions is None else {"outputDimensionality": dimensions}),
        }

    def _row(self, row: Mapping[str, Any] | None) -> BatchRow:
        if row is None or not isinstance(key := row.get("key"), str):
            return BatchRow(None, None)
        response = row.get("response")
        return BatchRow(key, response) if isinstance(response, dict) else self.failed(key, row.get("error"))

    def failed(self, key: str, error: Any) -> BatchRow:
        message = error.get("message") if isinstance(error, dict) else error
        return BatchRow(key, None, self.connection.secrets.hide(str(message or "")))

    async def _list_jobs(self, **filters: str) -> list[Any]:
        pages = await self.connection.client.aio.batches.list(config={"page_size": 100, **filters})
        return [job async for job in pages]

    async def _result(self, request: Coroutine[Any, Any, Value]) -> Value:
        """The result of a request made by the library; its exceptions become CallErrors."""
        try:
            return await request
        except gemini_connection.errors() as error:
            raise self.connection.translated(error) from None
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            message = f"the answer cannot be read: {type(error).__name__}"
            raise CallError(FailureKind.MALFORMED, message) from None


def service_job(job: Any) -> ServiceJob:
    state = str(getattr(job.state, "value", job.state) or "").removeprefix("JOB_STATE_")
    output = getattr(job.dest, "file_name", None) or getattr(job.dest, "gcs_uri", None)
    message = str(getattr(job.error, "message", None) or "")
    outputs = () if output is None else (output,)
    answers = getattr(job.completion_stats, "successful_count", None) or 0  # only Vertex AI counts them
    return ServiceJob(job.name or "", job.display_name or "", state, state in _ENDED, outputs, message, answers)


_WHOLE = "predictions"  # prefix of the file with all answers; while a job runs, other files repeat some of them


@dataclass(frozen=True)
class VertexJobs(GeminiJobs):
    """Batch jobs on Vertex AI; see `service.BatchService`."""

    def line(self, key: str, request: ModelRequest, prompt: Prompt) -> bytes:  # noqa: ARG002  see service.BatchService
        return json.dumps({"request": self.request(request, prompt)}, ensure_ascii=False).encode("utf-8", "replace")

    async def create(self, name: str, lines: IO[bytes], step: str) -> str:  # noqa: ARG002  see service.BatchService
        batch = self.connection.parameters.batch
        staging = (batch.staging if batch is not None else None) or ""
        source = files.join(staging, f"{name}.jsonl")
        await asyncio.to_thread(files.write, source, lines.read())
        answers = files.join(staging, f"{name}-{uuid.uuid4().hex[:8]}")  # an earlier job may have answers there
        creation = self.connection.client.aio.batches.create(
            model=self.connection.parameters.model, src=source, config={"display_name": name, "dest": answers}
        )
        return service_job(await self._result(creation)).id

    def filters(self, name: str) -> dict[str, str]:
        return {"filter": f'display_name="{name}"'}

    async def rows(self, job: ServiceJob, lines: Callable[[], Iterator[KeyedLine]]) -> AsyncIterator[BatchRow]:
        requests = SentRequests(lines())
        for folder in job.outputs:
            for path in await asyncio.to_thread(_files_in, folder):
                blocks = files.read_blocks(path)
                while (block := await asyncio.to_thread(next, blocks, None)) is not None:
                    for line in filter(None, block.split(b"\n")):
                        yield self._keyless_row(object_in(line), requests)

    def _keyless_row(self, row: Mapping[str, Any] | None, requests: "SentRequests") -> BatchRow:
        if row is None or (key := requests.key(row.get("request"))) is None:
            return BatchRow(None, None)
        response, status = row.get("response"), row.get("status")
        is_answer = not status and isinstance(response, dict) and bool(response)
        return BatchRow(key, response) if is_answer else self.failed(key, status)


class SentRequests:
    """The requests of a job, which match its answers to calls."""

    def __init__(self, lines: Iterator[KeyedLine]) -> None:
        self._whole: defaultdict[bytes, list[str]] = defaultdict(list)
        self._texts: defaultdict[bytes, list[str]] = defaultdict(list)
        for key, line in lines:
            request = json.loads(line)["request"]
            self._whole[_digest(request)].append(key)
            self._texts[_digest(_texts(request))].append(key)

    def key(self, request: Any) -> str | None:
        """The key of the call that made a request, "" if no call did; None if several calls may have.

        Calls with the same request, such as samples of an answer, take the answers in turn: any answer fits any call.
        If the service repeats a request in another form, its texts identify it.
        """
        if (keys := self._whole.get(_digest(request))) is not None:
            return keys.pop() if len(keys) > 1 else keys[0]
        similar_keys = self._texts.get(_digest(_texts(request)), [])
        return None if len(similar_keys) > 1 else next(iter(similar_keys), "")


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()


def _texts(request: Any) -> list[str]:
    if not isinstance(request, dict):
        return []
    contents = [request.get("systemInstruction"), *(request.get("contents") or ())]
    parts = [part for content in contents if isinstance(content, dict) for part in content.get("parts") or ()]
    return [str(part.get("text")) for part in parts if isinstance(part, dict)]


def _files_in(folder: str) -> list[str]:
    names = matching.matches(files.join(glob.escape(folder), "**"))
    paths = [path for path in names if path.endswith(".jsonl")]
    whole = [path for path in paths if path.rpartition("/")[2].startswith(_WHOLE)]
    return whole or paths
