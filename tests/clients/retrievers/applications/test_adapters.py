"""Objects of LangChain, LlamaIndex and Haystack as systems: the real ones where they are installed."""

import asyncio
import inspect
import json
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from rankbeam.transforms.clients.calls.unexpected_errors import UnexpectedError
from rankbeam.transforms.clients.retrievers.applications.callables import (
    CallableConnection,
    adapt_system,
    plain,
    register_systems,
)
from rankbeam.transforms.records.errors import InputError

Q, A, TEXT = "Who must pay?", "Owners pay.", "Owners pay the invoices."
EXPECTED = {"answer": A, "contexts": [{"doc_id": "owners", "text": TEXT}]}


def answer(system: Any) -> dict[str, Any]:
    result = adapt_system(system).function(Q, {})

    async def awaited() -> Any:
        return await result

    return plain(asyncio.run(awaited()) if inspect.isawaitable(result) else result)


class Document:
    """A document of Haystack."""

    def __init__(self) -> None:
        self.id, self.content = "owners", TEXT


class Chain:
    """A chain as LangChain's, with one named input."""

    def __init__(self, schema: dict[str, Any], expected: Any, result: Any) -> None:
        self.schema, self.expected, self.result = schema, expected, result

    def get_input_jsonschema(self) -> dict[str, Any]:
        return self.schema

    async def ainvoke(self, value: Any) -> Any:
        assert value == self.expected
        return self.result


class Message:
    """A message of LangChain."""

    def __init__(self, content: Any) -> None:
        self.content = content


@pytest.mark.parametrize(
    ("schema", "expected", "result"),
    [
        ({"title": "Lambda"}, Q, {"answer": A, "context": [Document()]}),
        ({"type": "object", "properties": {"root": {}}}, Q, {"answer": Message(A), "context": [Document()]}),
        ({"type": "object", "properties": {"frage": {}}}, {"frage": Q}, {"output": A, "documents": [Document()]}),
        (
            {"type": "object", "properties": {"chat_history": {}, "input": {}}},
            {"input": Q},
            {"input": Q, "answer": Message([{"type": "text", "text": A}]), "context": [Document()]},
        ),
    ],
)
def test_chains_get_the_query_at_their_input(schema: dict[str, Any], expected: Any, result: Any) -> None:
    assert answer(Chain(schema, expected, result)) == EXPECTED


def test_an_agent_gets_a_message_and_answers_with_its_last_one() -> None:
    schema, state = {"type": "object", "properties": {"messages": {}}}, {"messages": [Message(Q), Message(A)]}
    request = {"messages": [{"role": "user", "content": Q}]}
    assert answer(Chain(schema, request, state)) == {"answer": A, "contexts": None, "steps": []}
    # A graph of LangGraph may have the retrieved documents beside its messages.
    assert answer(Chain(schema, request, {**state, "context": [Document()]})) == {**EXPECTED, "steps": []}
    for context in ({}, {"user": "u"}, 5):  # such as the summaries of langmem
        assert answer(Chain(schema, request, {**state, "context": context})) == {
            "answer": A, "contexts": None, "steps": [],
        }  # fmt: skip


def test_documents_that_tools_of_an_agent_return_are_its_contexts() -> None:
    class Retrieved:
        def __init__(self, name: str | None, text: str) -> None:
            self.id, self.page_content = name, text

    def state(*artifacts: Any) -> dict[str, Any]:
        calls = [{"name": "find", "args": {"n": place}, "id": f"c{place}"} for place in range(len(artifacts))]
        asking, last = Message(""), Message(A)
        asking.__dict__["tool_calls"] = calls
        replies = [Message("texts of documents") for _ in artifacts]
        for place, (reply, artifact) in enumerate(zip(replies, artifacts, strict=True)):
            reply.__dict__.update(tool_call_id=f"c{place}", artifact=artifact)
        return {"messages": [Message(Q), asking, *replies, last]}

    def parts_of(*artifacts: Any) -> tuple[Any, list[Any]]:
        schema = {"type": "object", "properties": {"messages": {}}}
        result = answer(Chain(schema, {"messages": [{"role": "user", "content": Q}]}, state(*artifacts)))
        names = [context["doc_id"] for context in result["contexts"]] if result["contexts"] is not None else None
        return names, [step.get("doc_ids") for step in result["steps"]]

    owners, doors, unnamed = Retrieved("owners", TEXT), Retrieved("doors", "x"), Retrieved(None, "y")
    assert parts_of([owners], [doors, owners], {"rows": 3}) == (
        ["owners", "doors"],
        [["owners"], ["doors", "owners"], None],
    )
    assert parts_of([unnamed, owners]) == ([None, "owners"], [None])
    assert parts_of([]) == ([], [[]])
    assert parts_of(None, "text", ["no documents"]) == (None, [None, None, None])


class Pipeline:
    """A pipeline as Haystack's."""

    def __init__(self, outputs: dict[str, Any], *inputs: str) -> None:
        self.outputs, self.names = outputs, inputs
        self.graph = type("Graph", (), {"nodes": list(outputs)})()

    def inputs(self) -> dict[str, Any]:
        return {"first": {name: {} for name in self.names}}

    def run(self, values: dict[str, str], include_outputs_from: set[str]) -> dict[str, Any]:
        assert values == {"query": Q}
        assert include_outputs_from == set(self.outputs)
        return self.outputs


def test_pipelines_answer_with_their_last_documents() -> None:
    outputs = {"search": {"documents": []}, "rank": {"documents": [Document()]}, "model": {"replies": [A, "b"]}}
    assert answer(Pipeline(outputs, "query", "top_k")) == EXPECTED
    with pytest.raises(TypeError, match="has none of the inputs query, question"):
        adapt_system(Pipeline(outputs, "prompt"))


def test_a_second_parameter_with_a_setting_as_its_default_gets_no_attributes() -> None:
    def search(query: str, top_k: int = 5, *, rerank: bool = True) -> str:
        return f"{query} {top_k} {rerank}"

    def find(_query: str, options: Mapping[str, Any] = MappingProxyType({"k": 5})) -> Any:
        return options

    assert adapt_system(find).function(Q, {"k": "v"}) == {"k": 5}
    assert plain(adapt_system(search).function(Q, {"k": "v"}))["answer"] == f"{Q} 5 True"
    assert adapt_system(lambda _query, attributes=None: attributes).function(Q, {"k": "v"}) == {"k": "v"}
    assert adapt_system(lambda query, **_options: query).function(Q, {}) == Q
    assert adapt_system(str).function(Q, {}) == Q


@pytest.mark.parametrize("system", [lambda: A, lambda _1, _2, _3: A, lambda *, _query: A])
def test_a_function_that_no_query_can_call_is_refused_before_the_run(system: Any) -> None:
    with pytest.raises(TypeError, match="takes a query, and its attributes if it needs them"):
        adapt_system(system)


def test_two_evaluations_at_once_do_not_exchange_their_systems() -> None:
    with register_systems({"system": str.upper}):
        with (
            pytest.raises(InputError, match="system 'system' is being evaluated"),
            register_systems({"system": str.lower}),
        ):
            pass
        with register_systems({"other": str.lower}):
            pass
    with register_systems({"system": str.lower}):
        pass


def test_a_function_that_finds_nothing_with_next_fails_at_once() -> None:
    """No future can hold a StopIteration: the call waited for its timeout, and was repeated."""
    connection = CallableConnection(adapt_system(lambda query: next(iter(query[1:]))))
    with pytest.raises(UnexpectedError, match=r"^the function raised StopIteration at .*, line \d+$"):
        asyncio.run(connection.call('{"query": "a"}', 1.0, 1))


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("in_thread", [True, False])
def test_whatever_a_function_raises_fails_its_query_alone(error: type[BaseException], in_thread: bool) -> None:
    def fail(query: str) -> None:
        raise error(query)

    async def fail_later(query: str) -> None:
        fail(query)

    connection = CallableConnection(adapt_system(fail if in_thread else fail_later))
    with pytest.raises(UnexpectedError, match=rf"^the function raised {error.__name__} at .*, line \d+$"):
        asyncio.run(connection.call('{"query": "secret"}', 5.0, 1))


def test_functions_that_never_return_leave_threads_to_others() -> None:
    """They took all threads of asyncio's pool: the run and the process never ended."""
    ends, before = threading.Event(), {*threading.enumerate()}
    connection = CallableConnection(adapt_system(lambda query: ends.wait() and query))

    async def call_all() -> int:
        calls = (connection.call('{"query": "a"}', 0.01, 1) for _ in range(40))  # the pool has at most 32
        limited = (asyncio.wait_for(call, 0.01) for call in calls)
        outcomes = await asyncio.gather(*limited, return_exceptions=True)
        assert await asyncio.to_thread(int, "3") == 3
        return sum(isinstance(outcome, TimeoutError) for outcome in outcomes)

    try:
        assert asyncio.run(asyncio.wait_for(call_all(), 30)) == 40
        assert all(thread.daemon for thread in {*threading.enumerate()} - before)
    finally:
        ends.set()


def test_half_a_character_is_replaced() -> None:
    connection = CallableConnection(adapt_system(lambda query: {"answer": f"{query}\ud83d!", "contexts": ["\udc00"]}))
    reply = asyncio.run(connection.call('{"query": "q"}', 5.0, 1))
    assert json.loads(reply.answer)["reply"] == {"answer": "q\ufffd!", "contexts": [{"doc_id": None, "text": "\ufffd"}]}


def test_a_cancelled_call_of_a_function_is_cancelled() -> None:
    async def cancel() -> None:
        began = asyncio.Event()

        async def wait(_query: str) -> None:
            began.set()
            await asyncio.Event().wait()

        call = asyncio.create_task(CallableConnection(adapt_system(wait)).call('{"query": "q"}', 60.0, 1))
        await began.wait()
        call.cancel()
        await call

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


def test_langchain_itself() -> None:
    reason = "langchain-core is not installed"
    documents = pytest.importorskip("langchain_core.documents", reason=reason)
    runnables = pytest.importorskip("langchain_core.runnables", reason=reason)
    messages = pytest.importorskip("langchain_core.messages", reason=reason)
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models", reason=reason)
    prompts = pytest.importorskip("langchain_core.prompts", reason=reason)
    parsers = pytest.importorskip("langchain_core.output_parsers", reason=reason)
    model = models.GenericFakeChatModel(messages=iter([messages.AIMessage(A)] * 4))
    search = runnables.RunnableLambda(lambda _: [documents.Document(page_content=TEXT, id="owners")])
    question = runnables.RunnablePassthrough()
    generate = prompts.ChatPromptTemplate.from_template("{question} {context}") | model
    chain = runnables.RunnableParallel(context=search, question=question) | question.assign(answer=generate)
    assert answer(chain) == EXPECTED
    named = question.assign(context=search) | question.assign(
        answer=prompts.ChatPromptTemplate.from_template("{input} {context}") | model | parsers.StrOutputParser()
    )
    assert answer(named) == EXPECTED
    assert answer(model) == {"answer": A, "contexts": None}
    text = prompts.ChatPromptTemplate.from_template("{question}") | model | parsers.StrOutputParser()
    assert answer(text) == {"answer": A, "contexts": None}


def test_llamaindex_itself() -> None:
    core = pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    llms = pytest.importorskip("llama_index.core.llms")
    index = core.VectorStoreIndex.from_documents(
        [core.Document(text=TEXT, id_="owners")], embed_model=core.MockEmbedding(8)
    )
    result = answer(index.as_query_engine(llm=llms.MockLLM(max_tokens=2)))
    assert result["contexts"] == EXPECTED["contexts"]
    assert result["answer"]


def test_haystack_itself() -> None:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    builders = pytest.importorskip("haystack.components.builders")
    stores = pytest.importorskip("haystack.document_stores.in_memory")
    retrievers = pytest.importorskip("haystack.components.retrievers.in_memory")
    store = stores.InMemoryDocumentStore()
    others = [haystack.Document(id=name, content=f"Door {name} is green.") for name in map(str, range(9))]
    store.write_documents([haystack.Document(id="owners", content=TEXT), *others])

    class Writer:
        @haystack.component.output_types(replies=list[str])
        def run(self, prompt: str) -> dict[str, list[str]]:
            assert Q in prompt
            return {"replies": [A]}

    pipeline = haystack.Pipeline()
    pipeline.add_component("search", retrievers.InMemoryBM25Retriever(store, top_k=1))
    template = "{{question}} {% for document in documents %}{{document.content}}{% endfor %}"
    pipeline.add_component("prompt", builders.PromptBuilder(template, required_variables=["question", "documents"]))
    pipeline.add_component("writer", haystack.component(Writer)())
    pipeline.connect("search.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "writer.prompt")
    assert answer(pipeline) == EXPECTED
