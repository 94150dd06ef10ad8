"""Batch jobs of Gemini on Vertex AI: requests and answers are files in Cloud Storage.

STAGING/rankbeam-v1-HASH.jsonl                               the requests of a job
STAGING/rankbeam-v1-HASH-ID/prediction-model-…/….jsonl       its answers, beside the request of each

Rows have no key. An answer belongs to the call whose request is beside it.
"""

import asyncio
import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from rankbeam.transforms.clients.models import gemini_connection
from rankbeam.transforms.clients.models.attempts import ModelRequest
from rankbeam.transforms.clients.models.batches.gemini_jobs import GeminiJobs, service_job
from rankbeam.transforms.clients.models.batches.service import BatchRow, KeyedLine, ServiceJob, object_in
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.calls.prompt import Prompt

_WHOLE = "predictions"  # the name of a file with all answers; others repeat some of them while a job runs


async def connect(parameters: Gemini) -> "VertexJobs":
    """Find credentials and make a client."""
    return VertexJobs(await gemini_connection.connect(parameters))


@dataclass(frozen=True)
class VertexJobs(GeminiJobs):
    """The batch jobs of the service; see `service.JobService`."""

    def line(self, key: str, request: ModelRequest, prompt: Prompt) -> bytes:  # noqa: ARG002  see service.JobService
        return json.dumps({"request": self.request(request, prompt)}, ensure_ascii=False).encode("utf-8", "replace")

    async def create(self, name: str, lines: IO[bytes], step: str) -> str:  # noqa: ARG002  see service.JobService
        """Write the file, and make the job."""
        batch = self.connection.parameters.batch
        staging = (batch.staging if batch is not None else None) or ""
        source = files.join(staging, f"{name}.jsonl")
        await asyncio.to_thread(files.write, source, lines.read())
        answers = files.join(staging, f"{name}-{uuid.uuid4().hex[:8]}")  # a job of the same calls may have ended
        creation = self.connection.client.aio.batches.create(
            model=self.connection.parameters.model, src=source, config={"display_name": name, "dest": answers}
        )
        return service_job(await self._sent(creation)).id

    async def find(self, name: str) -> Sequence[ServiceJob]:
        """All jobs of a name, on all pages of the list."""
        listed = await self._sent(self._listed(filter=f'display_name="{name}"'))
        return [job for job in map(service_job, listed) if job.name == name][::-1]

    async def rows(self, job: ServiceJob, lines: Callable[[], Iterator[KeyedLine]]) -> AsyncIterator[BatchRow]:
        requests = AskedRequests(lines())
        for folder in job.outputs:
            for path in await asyncio.to_thread(_files_in, folder):
                blocks = files.read_blocks(path)
                while (block := await asyncio.to_thread(next, blocks, None)) is not None:
                    for line in filter(None, block.split(b"\n")):
                        yield _row(object_in(line), requests)


class AskedRequests:
    """The requests of a job, by which its answers find their calls."""

    def __init__(self, lines: Iterator[KeyedLine]) -> None:
        self._whole: defaultdict[bytes, list[str]] = defaultdict(list)
        self._texts: defaultdict[bytes, list[str]] = defaultdict(list)
        for key, line in lines:
            request = json.loads(line)["request"]
            self._whole[_digest(request)].append(key)
            self._texts[_digest(_texts(request))].append(key)

    def key(self, request: Any) -> str | None:
        """The key of the call that made a request, "" if no call did; None if it cannot be seen which one.

        Calls with the same request, such as samples of an answer, take the answers in turn: any of them answers any.
        If the service repeats a request in another form, its texts say which one it was.
        """
        if (same := self._whole.get(_digest(request))) is not None:
            return same.pop() if len(same) > 1 else same[0]
        alike = self._texts.get(_digest(_texts(request)), [])
        return None if len(alike) > 1 else next(iter(alike), "")


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()


def _texts(request: Any) -> list[str]:
    """The instructions and the question of a request."""
    if not isinstance(request, dict):
        return []
    contents = [request.get("systemInstruction"), *(request.get("contents") or ())]
    parts = [part for content in contents if isinstance(content, dict) for part in content.get("parts") or ()]
    return [str(part.get("text")) for part in parts if isinstance(part, dict)]


def _files_in(folder: str) -> list[str]:
    every = matching.matches(files.join(matching.escaped(folder), "**"))
    paths = [path for path in every if path.endswith(".jsonl")]
    whole = [path for path in paths if path.rpartition("/")[2].startswith(_WHOLE)]
    return whole or paths


def _row(row: Mapping[str, Any] | None, requests: AskedRequests) -> BatchRow:
    if row is None or (key := requests.key(row.get("request"))) is None:
        return BatchRow(None, None, "a row that cannot be read")
    status, response = row.get("status"), row.get("response")
    if status or not isinstance(response, dict) or not response:
        return BatchRow(key, None, str(status)[:200])
    return BatchRow(key, response)
