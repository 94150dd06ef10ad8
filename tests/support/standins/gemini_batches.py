"""Batch jobs of the Gemini Developer API, beside its other calls.

POST /upload/v1beta/files (resumable), GET /v1beta/files/ID:download
POST /v1beta/models/M:batchGenerateContent, POST /v1beta/models/M:asyncBatchEmbedContent
GET /v1beta/batches, GET /v1beta/batches/ID, POST /v1beta/batches/ID:cancel
"""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.standins.batches import BatchConnection, Job, page_of, serve_jobs, without_item
from support.standins.gemini import Gemini, _text
from support.standins.http_protocol import Request
from support.standins.models import Question, embedding, tokens
from support.standins.reception import Reception

STATES = {"failed": "FAILED", "expired": "EXPIRED", "partial": "PARTIALLY_SUCCEEDED"}


class GeminiBatches(BatchConnection, Gemini):
    """One connection of the service."""

    places = re.compile(r"/(files|batches)\b|batchGenerateContent|asyncBatchEmbedContent")

    def answer_jobs(self, request: Request) -> None:
        """Answer a request about files or jobs."""
        url = urlsplit(request.target)
        last = url.path.rpartition("/")[2]
        if url.path.startswith("/upload/"):
            self._upload(request)
        elif last.endswith(":download"):
            self.say(200, self.book.files[last.partition(":")[0]], "Content-Type: application/octet-stream\r\n")
        elif last.endswith((":batchGenerateContent", ":asyncBatchEmbedContent")):
            self._create(json.loads(request.body)["batch"], last.rpartition(":")[2])
        elif last == "batches":
            self._list(parse_qs(url.query))
        else:
            self._job(self.book.jobs[last.partition(":")[0]], cancels=last.endswith(":cancel"))

    def _upload(self, request: Request) -> None:
        command = request.headers.get("x-goog-upload-command", "")
        if command == "start":
            place = f"http://{request.headers['host']}/upload/v1beta/files?upload_id=1"
            self.say_object({}, f"X-Goog-Upload-URL: {place}\r\nX-Goog-Upload-Status: active\r\n")
            return
        content = self.book.about_upload + request.body
        if "finalize" not in command:
            self.book.about_upload = content
            self.say_object({}, "X-Goog-Upload-Status: active\r\n")
            return
        self.book.about_upload = b""
        name = self.book.add_file(content)
        self.say_object({"file": {"name": f"files/{name}"}}, "X-Goog-Upload-Status: final\r\n")

    def _create(self, batch: dict[str, Any], method: str) -> None:
        source = batch["inputConfig"]
        file = source["fileName"] if method == "batchGenerateContent" else source["file_name"]
        self.create(lambda: self.book.add(batch["displayName"], file.removeprefix("files/"), method=method))

    def _list(self, query: dict[str, list[str]]) -> None:
        others = [
            {"name": f"batches/other-{number}", "metadata": {"displayName": "other", "state": "BATCH_STATE_SUCCEEDED"}}
            for number in range(self.book.faults.name_page)
        ]
        token = query.get("pageToken", [""])[0]
        self.say_object(page_of([*others, *self.newest()], token, "operations"))

    def _job(self, job: Job, *, cancels: bool) -> None:
        if cancels:
            job.cancelled = True
            self.say_object({})
            return
        self.book.poll(job)
        self.say_object(self.shown(job))

    def shown(self, job: Job) -> dict[str, Any]:
        """A job as the service describes it."""
        state, about = "RUNNING", {}
        if job.has_ended:
            state = "CANCELLED" if job.cancelled else STATES.get(self.book.faults.state, "SUCCEEDED")
            if "output" not in job.about:
                job.about["output"] = self._output(job) if state != "FAILED" else None
            if (output := job.about["output"]) is not None:
                about = {"output": {"responsesFile": f"files/{output}"}}
        metadata = {"displayName": job.name, "state": f"BATCH_STATE_{state}", **about}
        return {"name": f"batches/{job.id}", "metadata": metadata}

    def _output(self, job: Job) -> str | None:
        answers, failures = self.book.output(job, "key", self._answered, _failed)
        self.break_shape(answers)
        return self.book.add_file(self.book.written([*answers, *failures])) if answers or failures else None

    def break_shape(self, answers: list[dict[str, Any]]) -> None:
        """Break the form of some answers."""
        for row in answers[: self.book.faults.wrong_shape]:
            part = row["response"]["candidates"][0]["content"]["parts"][-1]
            part["text"] = re.sub(r'"(verdicts|claims|facts)": \[', r'"other": [', part["text"])

    def _answered(self, row: dict[str, Any]) -> dict[str, Any]:
        request = row["request"]
        if "content" in request:
            text = _text(request["content"])
            return {
                "key": row["key"],
                "response": {"embedding": {"values": embedding(text)}, "tokenCount": str(tokens(text))},
            }
        user, item = without_item(_text(request["contents"][0]))
        body = self._content("m-001", Question(_text(request.get("systemInstruction")), user, "m"), None)
        if item is not None:
            schema = request["generationConfig"]["responseSchema"]
            assert schema["type"] == "OBJECT"
            assert schema["propertyOrdering"][0] == "item" == schema["required"][0]
            part = body["candidates"][0]["content"]["parts"][-1]
            part["text"] = json.dumps({"item": item, **json.loads(part["text"])})
        return {"key": row["key"], "response": body}


def _failed(row: dict[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "error": {"code": 13, "message": "internal error"}}


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    return await serve_jobs(GeminiBatches, reception)
