"""Batch jobs of the Gemini Developer API, beside its other calls.

POST /upload/v1beta/files (resumable), GET /v1beta/files/ID:download
POST /v1beta/models/M:batchGenerateContent, GET /v1beta/batches, GET /v1beta/batches/ID, POST /v1beta/batches/ID:cancel
"""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.standins.batches import Job, JobBook, JobFaults
from support.standins.gemini import Gemini, _text
from support.standins.http_protocol import Request, listen
from support.standins.models import Question
from support.standins.reception import Reception, Visit

_PAGE = 3
_ITEM = re.compile(r"\n\nitem: (\w+)$")
_STATES = {"failed": "FAILED", "expired": "EXPIRED", "partial": "PARTIALLY_SUCCEEDED"}


class GeminiBatches(Gemini):
    """One connection of the service."""

    def __init__(self, reception: Reception, book: JobBook) -> None:
        super().__init__(reception)
        self.book = book

    def parsed(self, request: Request) -> tuple[str, Any]:
        """The request itself where it is about files or jobs."""
        path = urlsplit(request.target).path
        if re.search(r"/(files|batches)\b|batchGenerateContent", path):
            return f"{request.method} {path}", request
        return super().parsed(request)

    def answer(self, visit: Visit, parsed: Any) -> None:
        """Answer."""
        if not isinstance(parsed, Request):
            super().answer(visit, parsed)
            return
        self.reception.answered += 1
        url = urlsplit(parsed.target)
        last = url.path.rpartition("/")[2]
        if url.path.startswith("/upload/"):
            self._upload(parsed)
        elif last.endswith(":download"):
            name = f"files/{last.partition(':')[0]}"
            self.say(200, self.book.files[name.removeprefix("files/")], "Content-Type: application/octet-stream\r\n")
        elif last.endswith(":batchGenerateContent"):
            self._create(json.loads(parsed.body))
        elif last == "batches":
            self._list(parse_qs(url.query))
        else:
            self._job(self.book.jobs[last.partition(":")[0]], cancels=last.endswith(":cancel"))

    def say_object(self, value: Any, headers: str = "") -> None:
        """Answer with JSON."""
        self.say(200, json.dumps(value).encode(), headers)

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

    def _create(self, body: dict[str, Any]) -> None:
        fault = self.book.fault_of_create()
        if fault == "quota":
            self.say(429, self.error(429, "Resource exhausted"))
            return
        if fault == "unavailable":
            self.say(503, self.error(503, "overloaded"))
            return
        batch = body["batch"]
        job = self.book.add(batch["displayName"], batch["inputConfig"]["fileName"].removeprefix("files/"))
        if fault == "lost":
            self.reset()
        else:
            self.say_object(self._shown(job))

    def _list(self, query: dict[str, list[str]]) -> None:
        others = [
            {"name": f"batches/other-{number}", "metadata": {"displayName": "other", "state": "BATCH_STATE_SUCCEEDED"}}
            for number in range(self.book.faults.name_page)
        ]
        shown = [*others, *(self._shown(job) for job in [*self.book.jobs.values()][::-1])]
        start = int(query.get("pageToken", ["0"])[0])
        more = {"nextPageToken": str(start + _PAGE)} if start + _PAGE < len(shown) else {}
        self.say_object({"operations": shown[start : start + _PAGE], **more})

    def _job(self, job: Job, *, cancels: bool) -> None:
        if cancels:
            job.cancelled = True
            self.say_object({})
            return
        self.book.poll(job)
        self.say_object(self._shown(job))

    def _shown(self, job: Job) -> dict[str, Any]:
        state, about = "RUNNING", {}
        if job.has_ended:
            state = "CANCELLED" if job.cancelled else _STATES.get(self.book.faults.state, "SUCCEEDED")
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
            part["text"] = re.sub(r'"(verdicts|claims)": \[', r'"other": [', part["text"])

    def _answered(self, row: dict[str, Any]) -> dict[str, Any]:
        request = row["request"]
        user = _text(request["contents"][0])
        item = _ITEM.search(user)
        question = Question(_text(request.get("systemInstruction")), _ITEM.sub("", user), "m")
        body = self._content("m-001", question, None)
        if item is not None:
            schema = request["generationConfig"]["responseSchema"]
            assert schema["type"] == "OBJECT"
            assert schema["propertyOrdering"][0] == "item" == schema["required"][0]
            part = body["candidates"][0]["content"]["parts"][-1]
            part["text"] = json.dumps({"item": item[1], **json.loads(part["text"])})
        return {"key": row["key"], "response": body}


def _failed(row: dict[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "error": {"code": 13, "message": "internal error"}}


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    book = JobBook(JobFaults.of(reception.settings.batch))
    reception.extra = lambda: {
        "jobs": len(book.jobs), "answered": dict(book.answered),
        "rows": sum(len(job.rows) for job in book.jobs.values()),
    }  # fmt: skip
    return await listen(lambda: GeminiBatches(reception, book), reception)
