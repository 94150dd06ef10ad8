"""Batch jobs of a service that is compatible with OpenAI's, beside its other calls.

POST /v1/files, GET /v1/files/ID/content
POST /v1/batches, GET /v1/batches, GET /v1/batches/ID, POST /v1/batches/ID/cancel
"""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.standins.batches import Job, JobBook, JobFaults
from support.standins.http_protocol import Request, listen
from support.standins.models import Question
from support.standins.openai import OpenAi
from support.standins.reception import Reception, Visit

_PAGE = 3
_ITEM = re.compile(r"\n\nitem: (\w+)$")


class OpenAiBatches(OpenAi):
    """One connection of the service."""

    def __init__(self, reception: Reception, book: JobBook) -> None:
        super().__init__(reception)
        self.book = book

    def parsed(self, request: Request) -> tuple[str, Any]:
        """The request itself where it is about files or jobs."""
        path = urlsplit(request.target).path
        if path.startswith(("/v1/files", "/v1/batches")):
            return f"{request.method} {path}", request
        return super().parsed(request)

    def answer(self, visit: Visit, parsed: Any) -> None:
        """Answer."""
        if not isinstance(parsed, Request):
            super().answer(visit, parsed)
            return
        self.reception.answered += 1
        url = urlsplit(parsed.target)
        parts = url.path.split("/")[2:]
        if parts == ["files"]:
            self.say_object({"id": self.book.add_file(_uploaded(parsed)), "object": "file"})
        elif parts[0] == "files":
            self.say(200, self.book.files[parts[1]], "Content-Type: application/octet-stream\r\n")
        elif parts == ["batches"] and parsed.method == "POST":
            self._create(json.loads(parsed.body))
        elif parts == ["batches"]:
            self._list(parse_qs(url.query))
        else:
            self._job(self.book.jobs[parts[1]], cancels=parts[2:] == ["cancel"])

    def say_object(self, value: Any) -> None:
        """Answer with JSON."""
        self.say(200, json.dumps(value).encode())

    def _create(self, body: dict[str, Any]) -> None:
        fault = self.book.fault_of_create()
        if fault == "quota":
            self.say(429, self.error(429, "Enqueued token limit reached"))
            return
        if fault == "unavailable":
            self.say(503, self.error(503, "overloaded"))
            return
        assert body["completion_window"] == "24h"
        rows = [json.loads(line) for line in self.book.files[body["input_file_id"]].split(b"\n") if line]
        assert {row["url"] for row in rows} == {body["endpoint"]}
        assert len({row["body"]["model"] for row in rows}) == 1
        job = self.book.add(body["metadata"]["rankbeam"], body["input_file_id"])
        if fault == "lost":
            self.reset()
        else:
            self.say_object(self._shown(job))

    def _list(self, query: dict[str, list[str]]) -> None:
        jobs = [*self.book.jobs.values()][::-1]
        others = [{"id": f"other-{number}", "metadata": None} for number in range(self.book.faults.name_page)]
        shown = [*others, *(self._shown(job) for job in jobs)]
        after = query.get("after", [""])[0]
        start = next((place + 1 for place, one in enumerate(shown) if one["id"] == after), 0)
        page = shown[start : start + _PAGE]
        self.say_object({"data": page, "has_more": start + _PAGE < len(shown)})

    def _job(self, job: Job, *, cancels: bool) -> None:
        if cancels:
            job.cancelled = True
        else:
            self.book.poll(job)
        self.say_object(self._shown(job))

    def _shown(self, job: Job) -> dict[str, Any]:
        state = "in_progress"
        if job.has_ended:
            state = "cancelled" if job.cancelled else self.book.faults.state or "completed"
            if "output" not in job.about:
                job.about["output"] = self._output(job) if state != "failed" else (None, None)
        output, errors = job.about.get("output", (None, None))
        problem = {"data": [{"message": "the input file is bad", "line": 1}]} if state == "failed" else None
        return {
            "id": job.id, "object": "batch", "status": state, "metadata": {"rankbeam": job.name},
            "output_file_id": output, "error_file_id": errors, "errors": problem,
        }  # fmt: skip

    def _output(self, job: Job) -> tuple[str | None, str | None]:
        answers, failures = self.book.output(job, "custom_id", self._answered, _failed)
        for row in answers[: self.book.faults.wrong_shape]:
            message = row["response"]["body"]["choices"][0]["message"]
            message["content"] = re.sub(r'"(verdicts|claims)": \[', r'"other": [', message["content"])
        output = None if not answers else self.book.add_file(self.book.written(answers))
        errors = (
            self.book.add_file(b"".join(json.dumps(row).encode() + b"\n" for row in failures)) if failures else None
        )
        return output, errors

    def _answered(self, row: dict[str, Any]) -> dict[str, Any]:
        body = row["body"]
        question = None
        if "messages" in body:
            messages = {message["role"]: message["content"] for message in body["messages"]}
            user, item = _ITEM.sub("", messages["user"]), _ITEM.search(messages["user"])
            question = Question(messages.get("system", ""), user, body["model"])
            reply = self._reply_body(body, question, None)
            if item is not None:
                message = reply["choices"][0]["message"]
                schema = body["response_format"]["json_schema"]["schema"]
                assert "item" in schema["required"]
                message["content"] = json.dumps({"item": item[1], **json.loads(message["content"])})
        else:
            reply = self._reply_body(body, None, None)
        return {
            "id": "r",
            "custom_id": row["custom_id"],
            "response": {"status_code": 200, "body": reply},
            "error": None,
        }


def _failed(row: dict[str, Any]) -> dict[str, Any]:
    error = {"error": {"message": "internal error"}}
    return {"id": "r", "custom_id": row["custom_id"], "response": {"status_code": 500, "body": error}, "error": None}


def _uploaded(request: Request) -> bytes:
    boundary = b"--" + request.headers["content-type"].partition("boundary=")[2].encode()
    part = next(part for part in request.body.split(boundary) if b'name="file"' in part)
    return part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    book = JobBook(JobFaults.of(reception.settings.batch))
    reception.extra = lambda: {
        "jobs": len(book.jobs), "answered": dict(book.answered),
        "rows": sum(len(job.rows) for job in book.jobs.values()),
    }  # fmt: skip
    return await listen(lambda: OpenAiBatches(reception, book), reception)
