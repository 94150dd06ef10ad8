"""Applications behind HTTP: the request, and the places of answer, contexts and tokens in the reply."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import Field, JsonValue, StrictStr, field_validator, model_validator

from rankbeam.transforms.clients.calls.services import Connection, open_connection
from rankbeam.transforms.clients.http.answers import malformed, short_json
from rankbeam.transforms.clients.http.template import texts_in
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.clients.storage.json_paths import check_path, finder, value_of
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.columns import attributes_in
from rankbeam.transforms.records.content_keys import content_key, content_keys
from rankbeam.transforms.records.conversations import HISTORY, Message, history_of
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Tokens
from rankbeam.transforms.records.trajectories import INVENTED, AgentSteps, ApplicationAnswer, Consumption, steps_in

_PLACEHOLDER = re.compile(r"(?<!\$)\{(\w+)\}")
_OWN = frozenset({"query", "query_id", "attempt"})
_Path = Annotated[str, Field(min_length=1)]
NUMBERS = "numbers"
_USAGE = ("input", "output", "cached")


class HttpApplication(Http):
    """The request, and the places of the answer, its contexts and its tokens in the reply.

    In `url`, `params` and `body`, `{query}` and `{query_id}` are replaced by the query's text and id, `{attempt}` by
    the number of the attempt, `{history}` by the list of messages before the query, and `{NAME}` by the attribute NAME
    of the query. References such as `${env:NAME}` are
    replaced there and in `headers`.

    Attributes:
        body: JSON body. A string that consists of one placeholder is replaced by the value in its own type. By default
            POST and PUT send the query as "query", and GET sends no body.
        answer: JMESPath to the answer's text.
        results: JMESPath to the list of contexts, best first; without it, contexts are unknown.
        id: JMESPath to the document id in a context.
        text: JMESPath to the text in a context; contexts may also be texts themselves.
        citations: "numbers" for citations such as [2] in the answer's text; or JMESPath to the list of contexts that
            the answer cites: their ids or, if no context has an id, their numbers from 1.
        usage: JMESPaths to the tokens of `input`, `output` and `cached`.
        steps: JMESPath to the list of the agent's tool calls, each {tool, args, status?, doc_ids?} or as OpenAI,
            LangChain and ADK write them; without it, steps are unknown.
        stream: if true, the reply is a stream of server-sent events or lines, each of them JSON. The texts at `answer`
            are joined; other paths take the last event that has a value. The time to the first text is measured.
        end: with `stream`, JMESPath that has a value in the last event only, such as "done"; a stream without such an
            event and without "[DONE]" is incomplete, and the call is repeated.
        version: version of the deployed application. Answers of another version are not reused.
    """

    results: _Path | None = None  # type: ignore[assignment]
    id: _Path | None = None  # type: ignore[assignment]
    answer: _Path
    citations: _Path = NUMBERS
    usage: dict[str, StrictStr] = Field(default_factory=dict)
    steps: _Path | None = None
    stream: bool = False
    end: _Path | None = None

    # Models answer behind it: an attempt that is given up too early is paid for, and repeated.
    default_quota: ClassVar[Quota] = Quota(requests_per_minute=600, timeout_s=120)
    default_top_k: ClassVar[int | None] = None
    reading: ClassVar[frozenset[str]] = Http.reading | {"answer", "usage", "steps", "end", "citations"}
    added: ClassVar[frozenset[str]] = Http.added | {"steps", "end", "citations"}
    unused: ClassVar[frozenset[str]] = frozenset({"score", "lower_is_better", "derive", "embedding_model"})
    service: ClassVar[str | None] = None

    @model_validator(mode="before")
    @classmethod
    def _without_unused(cls, value: Any) -> Any:
        for name in sorted(cls.unused & value.keys()) if isinstance(value, dict) else ():
            raise ValueError(f"{name} has no effect on answers of this type; remove it")
        return value

    @field_validator("url")
    @classmethod
    def _usable_url(cls, value: str) -> str:
        super()._usable_url(_PLACEHOLDER.sub("{query}", value))
        return value

    @field_validator("answer", "steps", "end", "citations")
    @classmethod
    def _usable_answer(cls, value: str | None) -> str | None:
        check_path(value or "answer")
        return value

    @field_validator("usage")
    @classmethod
    def _usable_usage(cls, value: dict[str, str]) -> dict[str, str]:
        for name, path in value.items():
            if name not in _USAGE:
                raise ValueError(f"has {name!r}; it takes {', '.join(_USAGE)}")
            check_path(path)
        return value

    @property
    def template(self) -> JsonValue:
        return {"query": "{query}"} if self.body is None and self.method != "GET" else self.body

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of queries that the request holds, sorted."""
        return tuple(sorted(self._placeholders() - _OWN))

    @property
    def reports_tokens(self) -> bool:
        return bool(self.usage)

    @property
    def takes_history(self) -> bool:
        """True if the request holds the messages before the query."""
        return HISTORY in self.attributes

    def with_history(self, body: Any, history: Sequence[Message]) -> Any:  # noqa: ARG002  {history} has replaced it
        return body

    def _placeholders(self) -> set[str]:
        texts = (self.url, *map(str, self.params.values()), *(text for _, text in texts_in(self.template)))
        return {name for text in texts for name in _PLACEHOLDER.findall(text)}

    def warnings(self) -> Iterator[str]:
        if self.version is None:
            yield (
                f"{self.scope()}: without version:, answers in the ledger are used again, "
                "even if the application has changed since"
            )

    def is_prefix(self) -> bool:
        return True

    async def connect(self) -> Connection:
        return await open_connection("rankbeam.transforms.clients.retrievers.applications.connection", self)

    def requests(self, kind: str, queries: pa.RecordBatch) -> list[tuple[str, str]]:
        texts, ids = queries["text"].to_pylist(), queries["query_id"].to_pylist()
        names, identity = self.attributes, self.identity(kind)
        attributes = queries["attributes"].to_pylist() if names or self.takes_history else [None] * len(texts)
        known = list(map(attributes_in, attributes))
        values: list[dict[str, Any]] = [{name: of_query.get(name) for name in names} for of_query in known]
        if self.takes_history:
            for entry, of_query in zip(values, known, strict=True):
                if (history := history_of(of_query)) or HISTORY in names:
                    entry[HISTORY] = history
        has_id = "query_id" in self._placeholders()
        keyed = [
            {**entry, **({"query_id": query_id} if has_id else {})} for entry, query_id in zip(values, ids, strict=True)
        ]
        if any(keyed):
            keys = [
                content_key({**identity, "query": text, **({"values": entry} if entry else {})})
                for text, entry in zip(texts, keyed, strict=True)
            ]
        else:
            keys = content_keys(identity, "query", texts)
        payloads = [
            json.dumps({"query": text, "query_id": query_id, **entry}, ensure_ascii=False)
            for text, query_id, entry in zip(texts, ids, values, strict=True)
        ]
        return list(zip(keys, payloads, strict=True))

    def recall(self, answers: Sequence[bytes]) -> pa.Array:
        """Nulls: the ledger's answers are read one by one."""
        return pa.nulls(len(answers))

    def read(self, answer: str) -> ApplicationAnswer:  # type: ignore[override]
        try:
            stored = value_of(answer)
        except ValueError as error:
            raise malformed(f"the reply is not JSON: {error}") from error
        reply = stored["reply"]
        text = self._text(reply)
        if not isinstance(text, str):
            lacks = "is missing" if text is None else "is not a text"
            raise malformed(f"answer: {self.answer} {lacks}, found {short_json(reply, 300)}")
        if not text.strip():
            raise CallError(FailureKind.INVALID, f"answer: {self.answer} is empty")
        first = reply["first_token_s"] if self.stream else None
        consumption = Consumption(self._tokens(reply), stored["seconds"], first)
        contexts = self._contexts(reply)
        steps, citations = self._steps(reply), self._citations(reply, contexts)
        return ApplicationAnswer(text, contexts, consumption, steps, citations, self._cut(reply))

    def tokens_of(self, answer: str) -> Tokens:
        """The tokens that an application reports; none if it reports none, or impossible numbers."""
        try:
            return self._tokens(value_of(answer)["reply"])
        except (ValueError, CallError):
            return Tokens()  # reading says what is wrong

    @property
    def ending(self) -> str:
        """The mark of a stream's last event, for messages."""
        return f"a value at {self.end} (end)"

    def has_ended(self, events: Sequence[Any], is_done: bool) -> bool:
        if self.end is None or is_done:
            return bool(events)
        return any(_value_at(self.end, event) not in (None, False) for event in events)

    def has_text(self, event: Any) -> bool:
        return bool(_value_at(self.answer, event))

    def has_hidden_ids(self, answer: Any, original: Any) -> bool:
        ids = [[name for name, _ in self._contexts(entry) or ()] for entry in (answer, original)]
        return ids[0] != ids[1]

    def _text(self, reply: Any) -> Any:
        """The value at the answer's path; for a stream, all texts joined."""
        if not self.stream:
            return _value_at(self.answer, reply)
        parts = [_value_at(self.answer, event) for event in reply["events"]]
        texts = [part for part in parts if isinstance(part, str)]
        return _joined(texts) if texts else None

    def _value(self, path: str, reply: Any) -> Any:
        """The value at a path; for a stream, the last one."""
        events = reply["events"] if self.stream else [reply]
        values = (_value_at(path, event) for event in reversed(events))
        return next((value for value in values if value is not None), None)

    def _tokens(self, reply: Any) -> Tokens:
        counts = {name: self._value(path, reply) for name, path in self.usage.items()}
        tokens = Tokens(**{name: count for name, count in counts.items() if type(count) is int})
        return tokens if tokens.is_possible else Tokens()

    def _cut(self, reply: Any) -> str | None:  # noqa: ARG002
        """The finish reason of an answer that ended early; None if it is complete, or the reply does not say."""
        return None

    def _contexts(self, reply: Any) -> tuple[tuple[str | None, str | None], ...] | None:
        if self.results is None:
            return None
        listed = self._value(self.results, reply)
        if listed is None and not self.results_required:
            return ()
        if not isinstance(listed, list):
            raise malformed(f"results: {self.results} is not a list, found {short_json(listed)}")
        return tuple(self._context(place, entry) for place, entry in enumerate(listed))

    def _citations(
        self, reply: Any, contexts: Sequence[tuple[str | None, str | None]] | None
    ) -> tuple[int, ...] | None:
        if self.citations == NUMBERS:
            return None
        listed = self._value(self.citations, reply)
        if listed is None and not self.results_required:
            return ()
        if not isinstance(listed, list) or not all(type(entry) in (str, int) for entry in listed):
            problem = f"is not a list of ids or numbers, found {short_json(listed)}"
            raise malformed(f"citations: {self.citations} {problem}")
        places = {str(number): number - 1 for number in range(1, len(contexts or ()) + 1)}
        if any(name is not None for name, _ in contexts or ()):
            places = {name: place for place, (name, _) in reversed([*enumerate(contexts or ())]) if name is not None}
        return tuple(places.get(name, INVENTED) for name in dict.fromkeys(map(str, listed)))

    def _steps(self, reply: Any) -> AgentSteps | None:
        if self.steps is None:
            return None
        listed = self._value(self.steps, reply)
        if listed is None and not self.results_required:
            return ()
        try:
            return steps_in(listed)
        except ValueError as error:
            raise malformed(f"steps: {self.steps}: {error}, found {short_json(listed)}") from error

    def _context(self, place: int, value: Any) -> tuple[str | None, str | None]:
        if isinstance(value, str) and value.strip():
            return None, value
        text = None if self.text is None else _value_at(self.text, value)
        text = text if isinstance(text, str) and text.strip() else None  # which is never judged as an empty one
        name = None if self.id is None else _value_at(self.id, value)
        name = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
        if name is not None and not isinstance(name, str):
            problem = f"results[{place}]: id: {self.id} is neither a text nor a whole number, found {short_json(name)}"
            raise malformed(problem)
        if text is None and not name:
            problem = f"results[{place}]: has neither text ({self.text}) nor id ({self.id}), found {short_json(value)}"
            raise malformed(problem)
        return name or None, text


def _joined(texts: Sequence[str]) -> str:
    """The texts of a stream joined; only the last one if each repeats the one before, or the last repeats all others.

    >>> _joined(["The ", "owner."]), _joined(["The", "The ow", "The owner."]), _joined(["The ", "owner.", "The owner."])
    ('The owner.', 'The owner.', 'The owner.')
    """
    *parts, last = [text for text in texts if text] or [""]
    repeats_each = len(parts) > 1 and last != parts[0] and all(map(str.startswith, [*parts[1:], last], parts))
    repeats_all = "".join(parts).strip() == last.strip() and (len(parts) > 1 or " " in last.strip())
    return last if repeats_each or repeats_all else "".join([*parts, last])


def _value_at(path: str, value: Any) -> Any:
    try:
        return finder(path)(value)
    except ValueError as error:  # JMESPath's errors are
        raise malformed(f"{path} does not fit the reply: {str(error).splitlines()[0]}") from error
