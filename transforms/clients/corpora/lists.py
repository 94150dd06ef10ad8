"""Google's data APIs: answers as JSON, works made of their requests, and lists that are read page after page."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from rankbeam.transforms.clients.calls.answers import encode_answer, parse_answer
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.records.calls.steps import Call, Steps, results_or_raise
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply

Item = TypeVar("Item")


@dataclass(frozen=True)
class Page(Generic[Item]):
    """A page of a list; `next` is the token of the next one."""

    items: tuple[Item, ...]
    next: str = ""


@dataclass(frozen=True)
class AnswerForms:
    """The forms of an API's answers, as they are stored in the ledger."""

    api: str  # name of the API in messages
    forms: Mapping[str, TypeAdapter[Any]]  # form of the answer to each request

    def stored(self, request: str, values: Mapping[str, Any]) -> str:
        return json.dumps({"request": request, "answer": json.loads(encode_answer(self.forms[request], dict(values)))})

    def read(self, answer: str) -> Any:
        try:
            values = json.loads(answer)
            form, content = self.forms[values["request"]], json.dumps(values["answer"])
        except (ValueError, KeyError, TypeError) as error:
            raise CallError(FailureKind.MALFORMED, f"the answer is not of {self.api}") from error
        return parse_answer(form, content)


@dataclass(frozen=True)
class DataWork(Generic[Item]):
    """A work on an API: a function of one item, and a listener for the values of its answers."""

    api: Service
    name: str  # of the service
    stage: str
    steps: Callable[[Item], Steps[Any]]
    watch: Callable[[Any], None] | None = None

    @property
    def services(self) -> Sequence[str]:
        return (self.name,)

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  the Protocol's
        value = self.api.read(reply.answer)
        if self.watch is not None:
            self.watch(value)
        return value


def all_pages(request: Callable[[str], Call]) -> Steps[tuple[Any, ...]]:
    """The items of all pages of a list; `request` makes the call for the page with a token."""
    items: list[Any] = []
    token = ""
    while True:
        (page,) = results_or_raise((yield [request(token)]))
        items += page.items
        if not (token := page.next):
            return tuple(items)
