"""Batch jobs of Gemini on Vertex AI, beside its other calls; their files are in an emulator of Cloud Storage.

POST, GET /v1beta1/projects/P/locations/L/batchPredictionJobs
GET …/batchPredictionJobs/ID, POST …/batchPredictionJobs/ID:cancel

The rows of answers have no key: each repeats its request.
"""

import hashlib
import json
import os
import re
import urllib.request
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from support.standins.batches import Job, page_of, serve_jobs
from support.standins.gemini_batches import STATES, GeminiBatches
from support.standins.http_protocol import Request
from support.standins.reception import Reception

BUCKET = "batches"
_JOBS = "/batchPredictionJobs"


class VertexBatches(GeminiBatches):
    """One connection of the service."""

    places = re.compile(_JOBS)

    def answer_jobs(self, request: Request) -> None:
        """Answer a request about jobs."""
        url = urlsplit(request.target)
        place, last = url.path.split(_JOBS)
        if not last and request.method == "POST":
            self._make(place, json.loads(request.body))
        elif not last:
            self._show_all(parse_qs(url.query))
        else:
            self._job(self.book.jobs[last.strip("/").partition(":")[0]], cancels=last.endswith(":cancel"))

    def _make(self, place: str, body: dict[str, Any]) -> None:
        assert body["model"].startswith("publishers/google/models/")
        assert body["inputConfig"]["instancesFormat"] == body["outputConfig"]["predictionsFormat"] == "jsonl"
        self.create(lambda: self._added(place, body))

    def _added(self, place: str, body: dict[str, Any]) -> Job:
        (source,) = body["inputConfig"]["gcsSource"]["uris"]
        lines = [json.loads(line) for line in _object(source).split(b"\n") if line]
        rows = [json.dumps({**line, "key": _key(line["request"])}).encode() for line in lines]
        self.book.files[source] = b"\n".join(rows)
        answers = body["outputConfig"]["gcsDestination"]["outputUriPrefix"]
        name = place.partition("/projects/")[2]
        return self.book.add(body["displayName"], source, answers=answers, place=f"projects/{name}")

    def _show_all(self, query: dict[str, list[str]]) -> None:
        named = re.fullmatch(r'display_name="(.+)"', query["filter"][0])
        assert named is not None
        token = query.get("pageToken", [""])[0]
        self.say_object(page_of(self.newest(named[1]), token, "batchPredictionJobs"))

    def shown(self, job: Job) -> dict[str, Any]:
        """A job as the service describes it."""
        state = "RUNNING"
        if job.has_ended:
            state = "CANCELLED" if job.cancelled else STATES.get(self.book.faults.state, "SUCCEEDED")
            if "written" not in job.about and state != "FAILED":
                job.about["written"] = True
                self._write(job)
        return {
            "name": f"{job.about['place']}{_JOBS}/{job.id}",
            "displayName": job.name,
            "state": f"JOB_STATE_{state}",
            "completionStats": {"successfulCount": str(job.about.get("successes", 0)), "incompleteCount": "-1"},
            "outputConfig": {"gcsDestination": {"outputUriPrefix": job.about["answers"]}, "predictionsFormat": "jsonl"},
        }

    def _write(self, job: Job) -> None:
        answers, failures = self.book.output(job, "key", self._answered, _failed)
        job.about["successes"] = len(answers)
        self.break_shape(answers)
        requests = {row["key"]: row["request"] for row in job.rows}
        other = {"contents": [{"role": "user", "parts": [{"text": "of another job"}]}]}
        rows = [{**row, "request": requests.get(row.pop("key"), other)} for row in [*answers, *failures]]
        folder = f"{job.about['answers']}/prediction-model-2026"
        content = self.book.written([{"status": "", "processed_time": "2026", **row} for row in rows])
        _put(f"{folder}/incremental_predictions.jsonl", b"half of an answer")
        _put(f"{folder}/predictions.jsonl", content)


def _key(request: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _failed(row: dict[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "status": "Internal error", "response": {}}


def _object(uri: str) -> bytes:
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    return _sent(f"storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media")


def _put(uri: str, content: bytes) -> None:
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    _sent(f"upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}", content)


def _sent(path: str, content: bytes | None = None) -> bytes:
    request = urllib.request.Request(f"{os.environ['STORAGE_EMULATOR_HOST']}/{path}", content)  # noqa: S310  ours
    request.add_header("Content-Type", "application/octet-stream")
    with urllib.request.urlopen(request) as response:  # noqa: S310  ours
        read: bytes = response.read()
        return read


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    return await serve_jobs(VertexBatches, reception)
