"""Batch jobs of a service that is compatible with OpenAI's, beside its other calls.

POST /v1/files, GET /v1/files/ID/content
POST /v1/batches, GET /v1/batches, GET /v1/batches/ID, POST /v1/batches/ID/cancel
"""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.standins.batches import PAGE, BatchConnection, Job, serve_jobs, without_item
from support.standins.http_protocol import Request
from support.standins.models import Question
from support.standins.openai import OpenAi, refusal
from support.standins.reception import Reception


class OpenAiBatches(BatchConnection, OpenAi):
    """One connection of the service."""

    places = re.compile("^/v1/(files|batches)")

    def answer_jobs(self, request: Request) -> None:
        """Answer a request about files or jobs."""
        url = urlsplit(request.target)
        parts = url.path.split("/")[2:]
        if parts == ["files"]:
            self.say_object({"id": self.book.add_file(_uploaded(request)), "object": "file"})
        elif parts[0] == "files" and parts[1] not in self.book.files:
            self.say(404, self.error(404, f"No such File object: {parts[1]}"))
        elif parts[0] == "files" and self.book.faults.hidden:
            self.say(403, self.error(403, "missing scope: api.files.read"))
        elif parts[0] == "files":
            self.say_file(self.book.files[parts[1]])
        elif parts == ["batches"] and request.method == "POST":
            body = json.loads(request.body)
            self.create(lambda: self._added(body))
        elif parts == ["batches"]:
            self._list(parse_qs(url.query))
        elif parts[1] not in self.book.jobs:
            self.say(404, self.error(404, f"No batch found with id '{parts[1]}'."))
        else:
            self._job(self.book.jobs[parts[1]], cancels=parts[2:] == ["cancel"])

    def _added(self, body: dict[str, Any]) -> Job:
        assert body["completion_window"] == "24h"
        rows = [json.loads(line) for line in self.book.files[body["input_file_id"]].split(b"\n") if line]
        assert {row["url"] for row in rows} == {body["endpoint"]}
        assert len({row["body"]["model"] for row in rows}) == 1
        return self.book.add(body["metadata"]["rankbeam"], body["input_file_id"])

    def _list(self, query: dict[str, list[str]]) -> None:
        others = [{"id": f"other-{number}", "metadata": None} for number in range(self.book.faults.name_page)]
        shown = [*others, *self.newest()]
        after = query.get("after", [""])[0]
        start = next((place + 1 for place, one in enumerate(shown) if one["id"] == after), 0)
        page = shown[start : start + PAGE]
        self.say_object({"data": page, "has_more": start + PAGE < len(shown)})

    def _job(self, job: Job, *, cancels: bool) -> None:
        if cancels and job.has_ended:
            self.say(409, self.error(409, "Cannot cancel a batch that has ended."))
            return
        if cancels:
            job.cancelled = True
        else:
            self.book.poll(job)
        self.say_object(self.shown(job))

    def shown(self, job: Job) -> dict[str, Any]:
        """A job as the service describes it."""
        state = "in_progress"
        if job.has_ended:
            state = "cancelled" if job.cancelled else self.book.faults.state or "completed"
            state = "failed" if job.is_over_limit else state
            if "output" not in job.about:
                job.about["output"] = self._output(job) if state != "failed" else (None, None)
        output, errors = job.about.get("output", (None, None))
        message = "Enqueued token limit reached for m-001" if job.is_over_limit else "the input file is bad"
        errors_of_job = {"data": [{"message": message, "line": 1}]} if state == "failed" else None
        return {
            "id": job.id, "object": "batch", "status": state, "metadata": {"rankbeam": job.name},
            "output_file_id": output, "error_file_id": errors,
            "errors": self.book.faults.errors or errors_of_job,
            "request_counts": {"total": len(job.rows), "completed": job.about.get("answers", 0)},
        }  # fmt: skip

    def _output(self, job: Job) -> tuple[str | None, str | None]:
        refusals = [refusal(row["body"], self.book.faults.refuses) for row in job.rows]
        if all(refusals):
            rows = zip(job.rows, refusals, strict=True)
            return None, self.book.add_file(self.book.written([_failed(row, 400, body) for row, body in rows]))
        answers, failures = self.book.output(job, "custom_id", self._answered, _failed)
        for row in answers[: self.book.faults.wrong_shape]:
            message = row["response"]["body"]["choices"][0]["message"]
            message["content"] = re.sub(r'"(verdicts|claims|facts)": \[', r'"other": [', message["content"])
        for row in answers[: self.book.faults.without_usage]:
            del row["response"]["body"]["usage"]
        job.about["answers"] = len(answers)
        output = None if not answers else self.book.add_file(self.book.written(answers))
        errors = (
            self.book.add_file(b"".join(json.dumps(row).encode() + b"\n" for row in failures)) if failures else None
        )
        if len(self.book.jobs) <= self.book.faults.deleted and output is not None:
            del self.book.files[output]
        return output, errors

    def _answered(self, row: dict[str, Any]) -> dict[str, Any]:
        body = row["body"]
        question = None
        if "messages" in body:
            messages = {message["role"]: message["content"] for message in body["messages"]}
            user, item = without_item(messages["user"])
            question = Question(messages.get("system", ""), user, body["model"])
            reply = self._reply_body(body, question, None)
            if item is not None:
                message = reply["choices"][0]["message"]
                schema = body["response_format"]["json_schema"]["schema"]
                assert "item" in schema["required"]
                message["content"] = json.dumps({"item": item, **json.loads(message["content"])})
        else:
            reply = self._reply_body(body, None, None)
        return {
            "id": "r",
            "custom_id": row["custom_id"],
            "response": {"status_code": 200, "body": reply},
            "error": None,
        }


def _failed(row: dict[str, Any], status: int = 500, body: Any = None) -> dict[str, Any]:
    response = {"status_code": status, "body": body or {"error": {"message": "internal error"}}}
    return {"id": "r", "custom_id": row["custom_id"], "response": response, "error": None}


def _uploaded(request: Request) -> bytes:
    boundary = b"--" + request.headers["content-type"].partition("boundary=")[2].encode()
    part = next(part for part in request.body.split(boundary) if b'name="file"' in part)
    return part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    return await serve_jobs(OpenAiBatches, reception)
