"""Batch jobs of the stand-ins of models: what a job does with the rows that it was given, and how it goes wrong."""

import gzip
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from support.standins.http_protocol import HttpConnection, Request, listen
from support.standins.reception import Reception, Visit

Row = dict[str, Any]

PAGE = 3
_ITEM = re.compile(r"\n\nitem: (\w+)$")
_REFUSALS = {
    "quota": (429, "the limit of enqueued tokens is reached"),
    "spent": (429, "insufficient_quota: check your plan and billing"),
    "unavailable": (503, "overloaded"),
}


@dataclass(frozen=True)
class JobFaults:
    """Faults of jobs.

    Attributes:
        polls: number of times that a job is asked for before it ends.
        state: final state, in the service's words; "" for success.
        answered: share of the rows that the job answers before it ends.
        failed: share of the rows that fail.
        swapped: pairs of rows whose keys are swapped.
        duplicated: rows that come twice.
        foreign: rows of another job.
        shuffled: whether the rows come in another order.
        half_line: whether the last row is cut.
        wrong_shape: rows whose answer breaks its form.
        without_usage: rows without token counts.
        no_file: whether there is no output file although the job succeeded.
        deleted: jobs whose output file is deleted.
        content: faults of requests for a file of answers, one after the other: "unavailable", "cut" (the connection
            breaks), "cut_gzip" (a compressed file ends early, and its length fits), "silent" (no answer comes), "".
        create: faults of requests that make a job, one after the other: "quota", "lost" (made, but the connection
            breaks), "spent", "unavailable", "over_limit" (made, but fails: too many tokens are enqueued), "".
        refuses: a fault of `openai.OpenAi` that refuses a part of every row, such as "gpt5".
        hidden: whether the files of answers may not be read.
        errors: the errors of every job, instead of those it has.
        name_page: jobs of other software that are listed before those of this one, several pages of them.
    """

    polls: int = 0
    state: str = ""
    answered: float = 1.0
    failed: float = 0.0
    swapped: int = 0
    duplicated: int = 0
    foreign: int = 0
    shuffled: bool = False
    half_line: bool = False
    wrong_shape: int = 0
    without_usage: int = 0
    no_file: bool = False
    deleted: int = 0
    content: tuple[str, ...] = ()
    create: tuple[str, ...] = ()
    refuses: str = ""
    hidden: bool = False
    errors: Any = None
    name_page: int = 0

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "JobFaults":
        """From the settings of a stand-in."""
        return cls(**{**values, **{name: tuple(values.get(name, ())) for name in ("content", "create")}})


@dataclass
class Job:
    """A job."""

    id: str
    name: str
    rows: list[Row]
    polls_left: int
    cancelled: bool = False
    is_over_limit: bool = False
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """True if its state is final."""
        return self.polls_left <= 0 or self.cancelled or self.is_over_limit


@dataclass
class JobBook:
    """The files and jobs of a service.

    Attributes:
        faults: faults of jobs.
        files: contents by id.
        jobs: in the order in which they were made.
        answered: number of answers of jobs by key.
        creations: number of requests that make a job.
        downloads: number of requests for a file of answers.
        about_upload: content of a file so far.
    """

    faults: JobFaults
    files: dict[str, bytes] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    creations: int = 0
    downloads: int = 0
    about_upload: bytes = b""
    _numbers: int = 0

    def add_file(self, content: bytes) -> str:
        """Keep a file; returns its id."""
        self._numbers += 1
        name = f"file-{self._numbers}"
        self.files[name] = content
        return name

    def fault_of_create(self) -> str:
        """The fault of the request that now makes a job."""
        self.creations += 1
        return self.faults.create[self.creations - 1] if self.creations <= len(self.faults.create) else ""

    def fault_of_content(self) -> str:
        """The fault of the request that now asks for a file of answers."""
        self.downloads += 1
        return self.faults.content[self.downloads - 1] if self.downloads <= len(self.faults.content) else ""

    def add(self, name: str, file: str, **about: Any) -> Job:
        """Make a job."""
        rows = [json.loads(line) for line in self.files[file].split(b"\n") if line]
        self._numbers += 1
        job = Job(f"job-{self._numbers}", name, rows, self.faults.polls, about=about)
        self.jobs[job.id] = job
        return job

    def poll(self, job: Job) -> None:
        """Note that a job was asked for."""
        job.polls_left -= 1

    def output(
        self, job: Job, key: str, answer: Callable[[Row], Row], failure: Callable[[Row], Row]
    ) -> tuple[list[Row], list[Row]]:
        """The rows of a job: answers, and failures.

        Args:
            job: a job that has ended.
            key: name of the key in a row.
            answer: makes the answer to a row.
            failure: makes the failure of a row.
        """
        faults, rows = self.faults, job.rows
        rows = rows[: round(len(rows) * faults.answered)]
        failing = rows[: round(len(rows) * faults.failed)]
        answered = [answer(row) for row in rows[len(failing) :]]
        for row in rows[len(failing) :]:
            self.answered[row[key]] = self.answered.get(row[key], 0) + 1
        for place in range(0, 2 * faults.swapped, 2):
            one, other = answered[place], answered[place + 1]
            one[key], other[key] = other[key], one[key]
        answered += [dict(row) for row in answered[: faults.duplicated]]
        answered += [{**row, key: f"foreign-{place}"} for place, row in enumerate(answered[: faults.foreign])]
        if faults.shuffled:
            random.Random(7).shuffle(answered)
        return answered, [failure(row) for row in failing]

    def written(self, rows: list[Row]) -> bytes:
        """Rows as a file."""
        content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        return content[: -len(content.split(b"\n")[-2]) // 2] if self.faults.half_line and rows else content


class BatchConnection(HttpConnection):
    """One connection of a service with batch jobs, beside that of its other calls, which is the next base class."""

    places: re.Pattern[str]
    """The paths of requests about files or jobs."""

    def __init__(self, reception: Reception, book: JobBook) -> None:
        super().__init__(reception)
        self.book = book

    def parsed(self, request: Request) -> tuple[str, Any]:
        """The request itself where it is about files or jobs."""
        path = urlsplit(request.target).path
        return (f"{request.method} {path}", request) if self.places.search(path) else super().parsed(request)

    def answer(self, visit: Visit, parsed: Any) -> None:
        """Answer."""
        if not isinstance(parsed, Request):
            super().answer(visit, parsed)
            return
        self.reception.answered += 1
        self.answer_jobs(parsed)

    def answer_jobs(self, request: Request) -> None:
        """Answer a request about files or jobs."""
        raise NotImplementedError

    def shown(self, job: Job) -> Row:
        """A job as the service describes it."""
        raise NotImplementedError

    def say_object(self, value: Any, headers: str = "") -> None:
        """Answer with JSON."""
        self.say(200, json.dumps(value).encode(), headers)

    def create(self, added: Callable[[], Job]) -> None:
        """Make a job, unless that goes wrong."""
        fault = self.book.fault_of_create()
        if fault in _REFUSALS:
            status, message = _REFUSALS[fault]
            self.say(status, self.error(status, message), "Retry-After: 172800\r\n" if fault == "quota" else "")
            return
        job = added()
        job.is_over_limit = fault == "over_limit"
        if fault == "lost":
            self.reset()
        else:
            self.say_object(self.shown(job))

    def say_file(self, content: bytes) -> None:
        """Send a file of answers, unless that goes wrong."""
        fault = self.book.fault_of_content()
        if fault in _REFUSALS:
            status, message = _REFUSALS[fault]
            self.say(status, self.error(status, message))
        elif fault == "cut":
            self.cut(content)
        elif fault == "cut_gzip":
            self.say(200, gzip.compress(content)[: -len(content) // 8], "Content-Encoding: gzip\r\n")
        elif fault != "silent":
            self.say(200, content, "Content-Type: application/octet-stream\r\n")

    def newest(self, name: str | None = None) -> list[Row]:
        """The jobs, of one name or of all, the newest first."""
        return [self.shown(job) for job in [*self.book.jobs.values()][::-1] if name in (None, job.name)]


def page_of(shown: Sequence[Row], token: str, key: str) -> Row:
    """A page of rows as Google's services list them."""
    start = int(token or 0)
    more = {"nextPageToken": str(start + PAGE)} if start + PAGE < len(shown) else {}
    return {key: shown[start : start + PAGE], **more}


def without_item(text: str) -> tuple[str, str | None]:
    """The text of a request, and the item that its answer has to repeat."""
    match = _ITEM.search(text)
    return _ITEM.sub("", text), None if match is None else match[1]


async def serve_jobs(connection: Callable[[Reception, JobBook], BatchConnection], reception: Reception) -> int:
    """Serve on a free port, and return it."""
    book = JobBook(JobFaults.of(reception.settings.batch))
    reception.extra = lambda: {
        "jobs": len(book.jobs), "answered": dict(book.answered),
        "rows": sum(len(job.rows) for job in book.jobs.values()),
    }  # fmt: skip
    return await listen(lambda: connection(reception, book), reception)
