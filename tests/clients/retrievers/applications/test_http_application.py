"""Replies of applications: answer, contexts and tokens at their paths, or why a query has failed."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from support.odd_server import Behaviour, Seen, reset, saying, served, whole

from rankbeam.transforms.clients.models.base import ModelParameters
from rankbeam.transforms.clients.retrievers.applications.ask import AdkApplication, ChatApplication
from rankbeam.transforms.clients.retrievers.applications.callables import plain
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.answers import Answer, AnswerStatus
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.reply import Reply, Tokens
from rankbeam.transforms.records.trajectories import ApplicationAnswer

PLAIN = HttpApplication(
    url="http://h/ask", answer="result.text", results="result.sources", id="id", text="snippet", usage={"input": "in"}
)


def stored(reply: Any) -> str:
    return json.dumps({"seconds": 0.5, "reply": reply})


def test_answer_contexts_and_tokens() -> None:
    sources = [{"id": 7, "snippet": "a"}, {"id": "", "snippet": "b"}, "c", {"id": "d", "snippet": " "}]
    answer = PLAIN.read(stored({"result": {"text": "yes", "sources": sources}, "in": 9}))
    assert (answer.text, answer.contexts) == ("yes", (("7", "a"), (None, "b"), (None, "c"), ("d", None)))
    assert (answer.consumption.tokens, answer.consumption.seconds) == (Tokens(9), 0.5)
    assert PLAIN.read(stored({"result": {"text": "yes"}, "in": -1})).contexts == ()
    assert HttpApplication(url="http://h/", answer="a").read(stored({"a": "yes"})).contexts is None


@pytest.mark.parametrize(
    ("sources", "cited", "positions", "invented"),
    [
        ([{"id": "a"}, {"id": "b"}, {"snippet": "x"}], ["b", "a", "b", "z", "1"], (1, 0), 2),
        ([{"id": 7}, {"id": 1}], [1, 7], (1, 0), 0),  # ids, not numbers
        (["x", "y"], [2, "1", 3, 0], (1, 0), 2),
        ([], [1], (), 1),
        (["x"], None, (), 0),
    ],
)
def test_citations_are_ids_or_numbers_of_contexts(
    sources: list[Any], cited: list[Any] | None, positions: tuple[int, ...], invented: int
) -> None:
    application = PLAIN.model_copy(update={"citations": "result.cited"})
    read = application.read(stored({"result": {"text": "Not [1].", "sources": sources, "cited": cited}}))
    contexts = tuple(Passage(*context) for context in read.contexts or ())
    answer = Answer(AnswerStatus.OK, read.text, contexts, citations=read.citations)
    assert (answer.cited, answer.invented) == (positions, invented)
    plain_answer = Answer(AnswerStatus.OK, read.text, contexts)
    assert plain_answer.cited == ((0,) if sources else ())


def test_citations_that_are_no_list_are_refused_and_the_path_is_in_no_key() -> None:
    application = PLAIN.model_copy(update={"citations": "result.cited"})
    with pytest.raises(CallError, match=r"citations: result\.cited is not a list of ids or numbers, found"):
        application.read(stored({"result": {"text": "yes", "sources": [], "cited": [{"id": "a"}]}}))
    assert requests(application) == requests(PLAIN)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"result": {"sources": []}}, "answer: result.text is missing, found"),
        ([], "answer: result.text is missing, found []"),
        ({"id": "x" * 90, "refusal": "I can't."}, """xxx", "refusal": "I can't."}"""),  # as OpenAI's, after its ids
        ({"result": {"text": 3}}, "answer: result.text is not a text"),
        ({"result": {"text": " "}}, "answer: result.text is empty"),
        ({"result": {"text": "a", "sources": {"id": "x"}}}, "results: result.sources is not a list"),
        (
            {"result": {"text": "a", "sources": [{"id": 1.5, "snippet": "x"}]}},
            "results[0]: id: id is neither a text nor a",
        ),
        (
            {"result": {"text": "a", "sources": ["x", {"id": {"n": 1}, "snippet": "x"}]}},
            "results[1]: id: id is neither",
        ),
        ({"result": {"text": "a", "sources": [{"name": "x"}]}}, "results[0]: has neither text (snippet) nor id (id)"),
        ({"result": {"text": "a", "sources": ["x", " "]}}, "results[1]: has neither text (snippet) nor id (id)"),
    ],
)
def test_a_wrong_reply_names_the_path(reply: Any, problem: str) -> None:
    with pytest.raises(CallError) as caught:
        PLAIN.read(stored(reply))
    assert problem in caught.value.message


def requests(application: HttpApplication) -> list[tuple[str, str]]:
    rows = [
        {"query_id": name, "text": "who?", "attributes": [{"name": "language", "value": language}]}
        for name, language in (("q1", "de"), ("q2", "de"), ("q3", "en"))
    ]
    return application.requests("http", pa.RecordBatch.from_pylist(rows, schema=columns.QUERIES))


def test_keys_are_made_from_what_is_sent() -> None:
    def distinct(**more: Any) -> int:
        return len({key for key, _ in requests(PLAIN.model_copy(update=more))})

    assert distinct() == 1
    assert distinct(body={"q": "{query}", "s": "{attempt}"}) == 1
    assert distinct(body={"q": "{query}", "l": "{language}"}) == 2
    assert distinct(body={"q": "{query}", "s": "{query_id}"}) == 3
    before = {key for key, _ in requests(PLAIN)}
    assert before == {key for key, _ in requests(PLAIN.model_copy(update={"answer": "other", "usage": {}}))}
    assert before.isdisjoint({key for key, _ in requests(PLAIN.model_copy(update={"version": "2"}))})


def test_a_chat_sends_the_query_as_a_message() -> None:
    chat = ChatApplication(url="http://h/v1/chat/completions", model="m", contexts="contexts")
    assert chat.template == {"model": "m", "messages": [{"role": "user", "content": "{query}"}]}
    reply = {"choices": [{"message": {"content": "yes"}}], "contexts": ["a", {"content": "b"}]}
    assert chat.read(stored(reply)).contexts == ((None, "a"), (None, "b"))


def streamed(*events: Any) -> str:
    """The reply of a chat with a stream of these events, as the ledger has it."""
    return read("".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n")


def read(stream: str) -> str:
    content = stream.encode()

    async def run() -> str:
        async with served(saying(content)) as server:
            chat = ChatApplication(url=f"{server.url}/v1/chat/completions", model="m", stream=True)
            _, payload = requests(chat)[0]
            connection = await chat.connect()
            try:
                return (await connection.call(payload, 20.0, 1)).answer
            finally:
                await connection.close()

    return asyncio.run(run())


def test_the_tokens_of_a_call_are_those_that_the_application_reports() -> None:
    async def run() -> Reply:
        async with served(saying(b'{"result": {"text": "yes"}, "in": 9}')) as server:
            application = PLAIN.model_copy(update={"url": f"{server.url}/ask"})
            connection = await application.connect()
            try:
                return await connection.call(requests(application)[0][1], 20.0, 1)
            finally:
                await connection.close()

    assert asyncio.run(run()).tokens == Tokens(9)
    assert PLAIN.tokens_of(stored({"in": -1})) == Tokens()
    assert PLAIN.tokens_of("no JSON") == Tokens()


def test_every_attempt_has_its_own_number_with_or_without_a_reply() -> None:
    replies = iter([whole(b"", "503 Busy"), whole(b"<html>"), whole(b'{"result": {}}'), whole(b'{"result": {}}')])

    async def behave(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(next(replies))

    async def run() -> list[Any]:
        async with served(behave) as server:
            body = {"question": "{query}", "session": "{attempt}"}
            application = PLAIN.model_copy(update={"url": f"{server.url}/ask", "body": body})
            connection = await application.connect()
            try:
                for number in (1, 1, 1, 2):  # it rises after a reply that could not be used
                    with suppress(CallError):
                        await connection.call(requests(application)[0][1], 20.0, number)
            finally:
                await connection.close()
            return [json.loads(seen.body)["session"] for seen in server.seen]

    assert asyncio.run(run()) == [1, 2, 3, 4]


async def silent(_: Seen, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(2.0)


@pytest.mark.parametrize("deleted", [reset, silent])
def test_an_answer_of_an_agent_is_kept_if_its_session_cannot_be_deleted(deleted: Behaviour) -> None:
    event = {"content": {"parts": [{"text": "yes"}]}}

    async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await (deleted if seen.method == "DELETE" else saying([event]))(seen, writer)

    async def run() -> ApplicationAnswer:
        async with served(behave) as server:
            agent = AdkApplication(url=server.url, app="a", version="1")
            connection = await agent.connect()
            try:
                return agent.read((await connection.call(requests(agent)[0][1], 1.0, 1)).answer)
            finally:
                await connection.close()

    assert asyncio.run(run()).text == "yes"


def test_an_error_in_a_stream_is_no_end_of_the_answer() -> None:
    text = {"choices": [{"delta": {"content": "Owners"}}]}
    assert json.loads(streamed(text))["reply"]["events"] == [text]
    with pytest.raises(CallError, match=r"the stream holds an error: .*overloaded"):
        streamed(text, {"error": {"message": "overloaded"}})  # vLLM then sends [DONE]
    with pytest.raises(CallError, match=r"the stream holds an error: .*Server Error"):  # as LangServe writes it
        read(f'data: {json.dumps(text)}\n\nevent: error\ndata: {{"message": "Server Error"}}\n\ndata: [DONE]\n\n')
    for event in (
        "event: error\n\n",
        "event: error",
        "event: error\ndata: not JSON\n\n",
        "event: error\n\ndata: [DONE]\n\n",
    ):
        with pytest.raises(CallError, match="the stream holds an error") as failed:
            read(f"data: {json.dumps(text)}\n\n{event}")
        assert failed.value.kind is FailureKind.UNAVAILABLE


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (["Ow", "ners", " pay."], "Owners pay."),
        (["Ow", "Owners", "Owners", "Owners pay."], "Owners pay."),
        (["Ow", "ners", " pay.", "Owners pay."], "Owners pay."),
        (["Owners pay.", "", "Owners pay."], "Owners pay."),
        (["東京", "です", "東京です"], "東京です"),
        (["ha", "ha", "ha"], "hahaha"),
        (["no", "no"], "nono"),
    ],
)
def test_texts_of_a_stream_that_repeat_earlier_ones_count_once(texts: list[str], answer: str) -> None:
    stream = HttpApplication(url="http://h/ask", answer="text", stream=True)
    assert stream.read(stored({"first_token_s": 0.1, "events": [{"text": text} for text in texts]})).text == answer


@pytest.mark.parametrize(("mark", "kind"), [(b"", "x-ndjson"), (b"data: ", "x-ndjson"), (b"\x1e", "json-seq")])
def test_a_stream_may_be_json_lines(mark: bytes, kind: str) -> None:
    lines = mark + b'{"text": "Owners "}\n\n' + mark + b'{"text": "pay."}\n{"done": true, "sources": ["a"]}\n'

    async def run() -> ApplicationAnswer:
        async with served(saying(lines, "200 OK", f"Content-Type: application/{kind}")) as server:
            stream = HttpApplication(url=f"{server.url}/ask", answer="text", results="sources", stream=True, end="done")
            connection = await stream.connect()
            try:
                return stream.read((await connection.call(requests(stream)[0][1], 20.0, 1)).answer)
            finally:
                await connection.close()

    answer = asyncio.run(run())
    assert (answer.text, answer.contexts) == ("Owners pay.", ((None, "a"),))


LINES = "a\u2028b\u0085c\r\n\x1dé\n\nd"  # JSON leaves the first two as they are


@pytest.mark.parametrize(
    ("content", "end"),
    [
        ("data: {}\n\ndata: [DONE]\n\n", {}),
        (": alive\n\nevent: message\nid: 1\ndata:{}\n\n: alive\ndata:[DONE]", {}),
        ("\ufeffdata: {}\r\n\r\ndata: [DONE]\r\n\r\n", {}),
        ("data: {}\r\rdata: [DONE]\r\r", {}),
        ("data: {}\ndata: [DONE]\n", {}),  # without the empty line between events
        ("data: {}\n\ndata: [DONE]\n\n", {"indent": 2}),
    ],
)
def test_events_are_those_of_the_stream_however_it_is_written(content: str, end: dict[str, int]) -> None:
    event = {"choices": [{"delta": {"content": LINES}}]}
    text = json.dumps(event, ensure_ascii=False, **end).replace("\n", "\ndata: ")
    assert json.loads(read(content.replace("{}", text)))["reply"]["events"] == [event]


def test_an_event_that_is_not_whole_is_malformed_and_cut_at_the_end_of_the_stream() -> None:
    with pytest.raises(CallError, match="not JSON") as malformed:
        read('data: {"choices": \n\ndata: [DONE]\n\n')
    with pytest.raises(CallError, match="ended in the middle of an event") as cut:
        read('data: {"choices": []}\n\ndata: {"choices"')
    assert (malformed.value.kind, cut.value.kind) == (FailureKind.MALFORMED, FailureKind.UNAVAILABLE)


def test_a_stream_of_whole_events_without_its_end_is_malformed_and_shows_the_last_event() -> None:
    with pytest.raises(CallError, match=r'after 1 event: none has a finish reason, and the last is \{"choices"') as cut:
        read('data: {"choices": []}\n\n')
    assert cut.value.kind is FailureKind.MALFORMED  # with a wrong path, hours of attempts would not help


@pytest.mark.parametrize("page", ['{"choices": [{"message": {"content": "yes"}}]}', "<html>\nLog in"])
def test_a_reply_that_is_no_stream_is_malformed_and_shown(page: str) -> None:
    with pytest.raises(CallError, match="is not a stream of server-sent events") as refused:
        read(page)
    assert refused.value.kind is FailureKind.MALFORMED
    assert repr(page.partition("\n")[0])[1:-1] in refused.value.message


def test_a_stream_without_an_end_of_line_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankbeam.transforms.clients.retrievers.applications.connection.MOST_BYTES", 1 << 20)
    with pytest.raises(CallError, match="the stream has more than 1 MB"):
        read("data: " + "x" * (1 << 20))


@pytest.mark.parametrize(
    "calls", [[{"index": {}}], [{"index": 0, "function": {}}, {"index": 0, "function": {"arguments": 1}}]]
)
def test_pieces_of_calls_of_other_types_are_malformed(calls: list[Any]) -> None:
    chat = ChatApplication(url="http://h/v1/chat/completions", model="m", stream=True)
    events = [{"choices": [{"delta": {"content": "yes", "tool_calls": calls}}]}]
    with pytest.raises(CallError, match="tool_calls: "):
        chat.read(stored({"first_token_s": 0.1, "events": events}))


async def _session(seen: Seen, writer: asyncio.StreamWriter) -> None:
    run = [{"content": {"parts": [{"text": "yes"}]}}]
    writer.write(whole(json.dumps(run if seen.target.startswith("/api/run?") else {}).encode()))


def test_parameters_follow_the_path_in_requests_for_sessions_of_adk() -> None:
    async def run() -> list[str]:
        async with served(_session) as server:
            url = f"{server.url}/api/?tenant=k"
            agent = AdkApplication.model_validate({"url": url, "app": "a", "params": {"p": "{query}"}})
            connection = await agent.connect()
            reply = await connection.call(json.dumps({"query": "why?"}), 20.0, 1)
            await connection.close()
            assert agent.read(reply.answer).text == "yes"
            return [seen.target for seen in server.seen]

    created, ran, deleted = asyncio.run(run())
    assert ran == "/api/run?tenant=k&p=why%3F"
    assert created == deleted
    assert created.startswith("/api/apps/a/users/rankbeam/sessions/rankbeam-")
    assert created.endswith("?tenant=k&p=why%3F")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (HttpApplication, {"answer": "a", "derive": False}),
        (ChatApplication, {"stream": True, "end": "done"}),
        (AdkApplication, {"app": "a", "stream": True}),
        (AdkApplication, {"app": "a", "body": {"q": "{query}"}}),
    ],
)
def test_keys_without_an_effect_are_refused(kind: type[HttpApplication], values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{list(values)[-1]} has no effect on answers of this type; remove it"):
        kind.model_validate({"url": "http://h/", **values})


class Document:
    """A document of LangChain, with the node of LlamaIndex that holds it."""

    def __init__(self, text: str) -> None:
        self.page_content, self.id, self.node = text, None, self


class Response:
    """The response of a query engine of LlamaIndex."""

    source_nodes = (Document("a"),)

    def __str__(self) -> str:
        return "yes"


@pytest.mark.parametrize(
    "result",
    [
        {"answer": "yes", "contexts": ["a"]},
        {"result": "yes", "source_documents": [Document("a")]},
        {"output": "yes", "context": [{"content": "a"}]},
        {"answer": "yes", "context": "a"},
        {"answer": "yes", "contexts": {"text": "a"}},
        Response(),
    ],
)
def test_what_frameworks_return(result: Any) -> None:
    assert plain(result) == {"answer": "yes", "contexts": [{"doc_id": None, "text": "a"}]}


def test_what_is_no_answer_is_refused() -> None:
    with pytest.raises(CallError, match="the system returned int; return a text"):
        plain(3)
    with pytest.raises(CallError, match="the system returned int as contexts; return a list"):
        plain({"answer": "yes", "contexts": 3})


@pytest.mark.parametrize("kind", [HttpApplication, ChatApplication, AdkApplication])
def test_an_answer_may_take_as_long_as_that_of_a_model(kind: type[HttpApplication]) -> None:
    assert kind.default_quota.timeout_s == ModelParameters.default_quota.timeout_s
