"""Traces in the forms that instrumentations of LangChain, LangGraph and LlamaIndex, and LangSmith's export have."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.inputs import write
from support.traces import START, message, otlp, phoenix, span

from rankbeam.transforms.clients.formats.traces.spans import read_spans, spans_of
from rankbeam.transforms.clients.formats.traces.turns import Naming, SkipReason, Turn, turn_of
from rankbeam.transforms.records.errors import InputError

KIND = "openinference.span.kind"
TEXT = "Invoices are sent on the first day of each month."
DOCUMENTS = json.dumps([{"id": "billing", "page_content": TEXT, "type": "Document"}])


def turn(*rows: dict[str, Any], **naming: str) -> Turn:
    result = turn_of([one for row in rows for one in spans_of(row)], START, Naming(**naming))
    assert isinstance(result, Turn), result
    return result


def dialog(**messages: str) -> dict[str, Any]:
    """Messages of OpenInference, by role; the assistant's are output."""
    values: dict[str, Any] = {}
    for place, (role, text) in enumerate(messages.items()):
        name = f"llm.{'output' if role == 'assistant' else 'input'}_messages.{place}.message."
        values |= {f"{name}role": role, f"{name}content": text}
    return values


def test_the_question_is_below_the_span_of_a_web_server() -> None:
    server = span("t", 0, 0, {"http.request.method": "POST"})
    search = span("t", 1, 0, {KIND: "RETRIEVER", "input.value": "rewritten", "retrieval.documents": [{"id": "d"}]})
    chain = span("t", 2, 1, {KIND: "CHAIN", "input.value": "When?", "output.value": "On the first day."})
    chat = {KIND: "LLM", "input.value": '{"messages": []}', **dialog(user="When?", assistant="First.")}
    whole = turn(otlp(server, search, chain, span("t", 3, 2, chat) | {"parentSpanId": "t-2"}))
    assert (whole.question, whole.answer, whole.contexts) == ("When?", "On the first day.", (("d", None),))
    assert turn(otlp(server, search, span("t", 3, 2, chat))).question == "When?"
    failed = {**chain, "status": {"code": 2}}
    assert turn(otlp(server, failed, span("t", 3, 2, chat) | {"parentSpanId": "t-2"})).answer is None
    assert turn(otlp(server, failed, span("t", 3, 2, chat))).answer == "First."  # another attempt


@pytest.mark.parametrize("contents", [False, True])
def test_messages_of_openinference(contents: bool) -> None:
    request = dialog(user="When?")
    if contents:
        part = "llm.input_messages.0.message.contents.0.message_content."
        request = {"llm.input_messages.0.message.role": "user", f"{part}type": "text", f"{part}text": "When?"}
    root = span("t", 0, 0, {KIND: "CHAIN", "input.value": '{"messages": [["user", "When?"]]}', **request,
                            "output.value": '{"messages": []}'})  # fmt: skip
    calls = span("t", 1, 0, {KIND: "LLM", **dialog(user="When?", assistant="I search.")})
    last = span("t", 2, 1, {KIND: "LLM", **dialog(user="When?", assistant="On the first day.")})
    for rows in ([otlp(root, calls, last)], [phoenix(row) for row in (root, calls, last)]):
        assert (turn(*rows).question, turn(*rows).answer) == ("When?", "On the first day.")
    alone = span("t", 0, 0, {KIND: "LLM", "input.value": "{}", **request, **dialog(assistant="Yes.")})
    assert (turn(otlp(alone)).question, turn(otlp(alone)).answer) == ("When?", "Yes.")
    prompt = span("t", 0, 0, {KIND: "CHAIN", "input.value": '{"question": "When?"}'})
    spans = list(spans_of(otlp(prompt, last)))
    assert turn_of(spans, START, Naming()) is SkipReason.JSON_QUESTION  # a user's message can be a whole prompt


def test_a_path_to_the_question_precedes_the_messages() -> None:
    prompt = dialog(user=f"{TEXT} Question: When?", assistant="First.")
    root = span("t", 0, 0, {KIND: "LLM", "input.value": '{"question": "When?"}', **prompt})
    assert turn(otlp(root), question="question").question == "When?"


def test_a_flat_span_may_have_a_column_type() -> None:
    row = {"traceId": "t", "spanId": "s", "type": "internal", "startTime": START, "attributes.input.value": "When?"}
    assert turn(row).question == "When?"


def test_the_root_precedes_an_inference_of_another_convention() -> None:
    root = span("t", 0, 0, {"input.value": "When?", "output.value": "On the first day."})
    search = span("t", 1, 0, {KIND: "RETRIEVER", "retrieval.documents": [{"document.content": TEXT}]})
    prompt = message("user", f"Context: {TEXT} Question: When?")
    chat = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": prompt}
    chat |= {"gen_ai.output.messages": message("assistant", "And what else?")}
    whole = turn(otlp(root, search, span("t", 2, 1, chat)))
    assert (whole.question, whole.answer, whole.is_prompt) == ("When?", "On the first day.", False)
    bare = turn(otlp(span("t", 0, 0, {}), search, span("t", 2, 1, chat)))
    assert (bare.answer, bare.is_prompt) == ("And what else?", True)


def test_an_answer_that_streams_is_that_of_the_inference() -> None:
    root = span("t", 0, 0, {"input.value": "When?", "output.value": '{"response_gen": "<generator object>"}'})
    assert turn(otlp(root, span("t", 1, 0, {KIND: "LLM", "output.value": "Now."}))).answer == "Now."


def test_a_retriever_that_does_not_state_its_documents_is_not_one_without_results() -> None:
    root = span("t", 0, 0, {"input.value": "When?"})
    outer = span("t", 1, 0, {KIND: "RETRIEVER", "retrieval.documents": [{"document.id": "d"}]})
    inner = span("t", 2, 0, {KIND: "RETRIEVER", "output.value": '["<NodeWithScore>"]'})
    assert len(turn(otlp(root, outer, inner | {"parentSpanId": "t-1"})).steps or ()) == 1
    assert turn(otlp(root, inner)).contexts is None
    for output in (None, "[]", '{"documents": []}'):
        assert turn(otlp(root, span("t", 1, 0, {KIND: "RETRIEVER", "output.value": output}))).contexts == ()


def test_passages_of_one_document_are_all_contexts() -> None:
    documents = [{"id": "d", "content": "one"}, {"id": "d", "content": "two"}, {"id": "d"}]
    results = span("t", 1, 0, {"gen_ai.retrieval.documents": documents})
    assert turn(otlp(span("t", 0, 0, {"input.value": "When?"}), results)).contexts == (("d", "one"), ("d", "two"))


def test_texts_that_openinference_hides_are_unknown() -> None:
    hidden = "__REDACTED__"
    root = span("t", 0, 0, {KIND: "CHAIN", "input.value": "When?", "output.value": hidden})
    documents = {f"retrieval.documents.{place}.document.content": hidden for place in (0, 1)}
    search = span("t", 1, 0, {KIND: "RETRIEVER", **documents, "retrieval.documents.0.document.id": "d"})
    chat = span("t", 2, 1, {KIND: "LLM", **dialog(user=hidden, assistant=hidden)})
    whole = turn(otlp(root, search, chat))
    assert (whole.answer, whole.contexts) == (None, (("d", None), (None, None)))
    assert turn_of(list(spans_of(otlp(chat | {"parentSpanId": ""}))), START, Naming()) is SkipReason.NO_QUESTION


def test_spans_of_langfuse_as_opentelemetry() -> None:
    name = "langfuse.observation."
    root = span("t", 0, 0, {f"{name}type": "chain", f"{name}input": "When?", f"{name}output": "Now."})
    search = span("t", 1, 0, {f"{name}type": "retriever", f"{name}input": "When?", f"{name}output": DOCUMENTS})
    chat = span("t", 2, 1, {f"{name}type": "generation", f"{name}model.name": "m",
                            f"{name}usage_details": '{"input": 10, "output": 5}'})  # fmt: skip
    whole = turn(otlp(root, search, chat, **{"service.version": "v7"}))
    assert (whole.question, whole.answer, whole.contexts) == ("When?", "Now.", (("billing", TEXT),))
    assert (whole.model, whole.tokens, whole.configuration) == ("m", {"input": 10, "output": 5}, "v7")


def test_spans_of_traceloop() -> None:
    name = "traceloop.entity."
    wrapped = {"tags": [], "metadata": {}, "kwargs": {"name": "RunnableSequence"}}
    values = {"gen_ai.operation.name": "invoke_agent", f"{name}input": json.dumps({"inputs": "When?", **wrapped})}
    results = json.dumps({"documents": json.loads(DOCUMENTS), "count": 1})
    search = span("t", 1, 0, {"gen_ai.operation.name": "vector_db_retrieve", f"{name}output": results})
    whole = turn(otlp(span("t", 0, 0, {**values, f"{name}output": json.dumps({"outputs": "Now.", **wrapped})}), search))
    assert (whole.question, whole.answer, whole.contexts) == ("When?", "Now.", (("billing", TEXT),))
    failed = turn(otlp(span("t", 0, 0, values, status={"code": 2})))
    assert (failed.question, failed.answer) == ("When?", None)


def test_a_trace_of_mlflow() -> None:
    """Attributes are JSON, and ids base64, as `Trace.to_json` of MLflow 3.18 writes them."""
    values = [
        ("CHAIN", "When?", "Now.", {}),
        ("RETRIEVER", {"q": "When?"}, [{"page_content": TEXT, "metadata": {"doc_uri": "billing"}, "id": None}], {}),
        (
            "CHAT_MODEL",
            {"messages": []},
            None,
            {"chat.tokenUsage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": None}, "llm.model": "m"},
        ),
    ]
    spans = [
        {"trace_id": "dHQ=", "span_id": f"{name}A==", "parent_span_id": "aA==" if place else None, "name": kind,
         "start_time_unix_nano": START * 10**9 + place, "end_time_unix_nano": (START + 1) * 10**9 + place,
         "status": {"code": "STATUS_CODE_OK"},
         "attributes": {f"mlflow.{key}": json.dumps(value) for key, value in
                        {"spanType": kind, "spanInputs": inputs, "spanOutputs": output, **more}.items()}}
        for place, (name, (kind, inputs, output, more)) in enumerate(zip("abc", values, strict=True))
    ]  # fmt: skip
    row = {"info": {"trace_metadata": {"mlflow.trace.session": "s"}}, "data": {"spans": spans}}
    whole = turn(row)
    assert (whole.question, whole.answer, whole.contexts) == ("When?", "Now.", (("billing", TEXT),))
    assert (whole.trace_id, whole.span_id, whole.conversation) == ("7474", "68", "s")
    assert (whole.model, whole.tokens) == ("m", {"input": 10, "output": 5})
    spans[0]["status"]["code"] = "STATUS_CODE_ERROR"
    assert turn(row).answer is None


@pytest.mark.parametrize("value", ["Value", "_value"])
def test_otlp_with_every_type_of_a_value(value: str) -> None:
    """As `/v1/projects/P/spans/otlpv1` of Phoenix 20 writes spans, and the same in camelCase."""
    others = {f"{kind}{value}": None for kind in ("array", "bool", "int", "kvlist")}
    values = {"input.value": "When?", "output.value": "Now.", KIND: "LLM", "llm.token_count.prompt": 7}
    documents = {f"array{value}": {"values": [{f"string{value}": TEXT}]}}
    attributes = [
        {"key": key, "value": {**others, f"{'int' if inner == 7 else 'string'}{value}": inner}}
        for key, inner in values.items()
    ]
    attributes.append({"key": "retrieval.documents", "value": {**others, **documents}})
    row = {"trace_id": "t", "span_id": "a", "parent_span_id": None, "start_time_unix_nano": START * 10**9,
           "attributes": attributes}  # fmt: skip
    whole = turn(row)
    assert (whole.question, whole.answer, whole.tokens["input"]) == ("When?", "Now.", 7)
    assert whole.contexts == ((None, TEXT),)


@pytest.mark.parametrize("as_text", [False, True])
def test_runs_of_langsmith(as_text: bool) -> None:
    """`Run` of its SDK as JSON, and rows of its bulk export, whose objects are texts."""
    runs = [
        {"id": "a", "run_type": "chain", "inputs": {"input": "When?"}, "outputs": {"output": "Now."},
         "extra": {"metadata": {"thread_id": "c"}}},
        {"id": "b", "parent_run_id": "a", "run_type": "retriever", "inputs": {"query": "When?"},
         "outputs": {"documents": json.loads(DOCUMENTS)}},
        {"id": "c", "parent_run_id": "a", "run_type": "llm", "inputs": {"messages": []}, "error": None,
         "prompt_tokens": 10, "completion_tokens": 5, "extra": {"metadata": {"ls_model_name": "m"}}},
    ]  # fmt: skip
    times = {"trace_id": "t", "start_time": "2025-11-24T16:00:00.1", "end_time": "2025-11-24T16:00:01"}
    rows = [{**times, **run} for run in runs]
    if as_text:
        rows = [{key: json.dumps(value) if isinstance(value, dict) else value for key, value in row.items()}
                for row in rows]  # fmt: skip
    whole = turn(*rows)
    assert (whole.question, whole.answer, whole.contexts) == ("When?", "Now.", (("billing", TEXT),))
    assert (whole.model, whole.tokens, whole.conversation) == ("m", {"input": 10, "output": 5}, "c")
    assert turn(rows[0], {**rows[1], "outputs": {}, "error": "503"}).contexts == ()
    request = {**rows[0], "inputs": {"question": "Who?", "k": 3}, "error": "ValueError"}
    whole = turn(request, question="message || question")
    assert (whole.question, whole.answer) == ("Who?", None)
    spans = list(spans_of(request))  # the path does not fit: `join` needs a list
    assert turn_of(spans, START, Naming("join('', history)")) is SkipReason.NO_QUESTION


def test_a_trace_of_langfuse_without_an_input_has_that_of_its_first_observation() -> None:
    observation = {"id": "o", "type": "SPAN", "startTime": "2025-11-24T16:00:01Z", "input": "When?", "output": "Now."}
    trace = {"id": "t", "timestamp": "2025-11-24T16:00:00Z", "input": None, "output": None}
    whole = turn({**trace, "observations": [observation]})
    assert (whole.question, whole.answer) == ("When?", "Now.")
    row = turn({"traceId": "t", **observation, "release": "v7"})
    assert (row.question, row.configuration) == ("When?", "v7")


def test_a_trace_of_langfuse_fails_with_its_last_observation_unless_it_has_an_output() -> None:
    chain = {"id": "a", "type": "CHAIN", "startTime": "2025-11-24T16:00:01Z", "level": "ERROR"}
    chat = {
        "id": "b",
        "type": "GENERATION",
        "startTime": "2025-11-24T16:00:02Z",
        "parentObservationId": "a",
        "output": "N",
    }
    trace = {"id": "t", "timestamp": "2025-11-24T16:00:00Z", "input": "When?", "observations": [chain, chat]}
    assert turn(trace).answer is None
    assert turn({**trace, "output": "Sorry."}).answer == "Sorry."
    again = {"id": "c", "type": "CHAIN", "startTime": "2025-11-24T16:00:03Z"}
    assert turn({**trace, "observations": [again, chain, chat]}).answer == "N"


def test_ids_that_the_sdk_for_python_prints_are_those_of_otlp() -> None:
    row = {"context": {"trace_id": "0x4bf92f", "span_id": "0x00f0"}, "parent_id": None, "attributes": {}}
    (read,) = spans_of({**row, "start_time": "2025-11-24T16:00:00.123456Z", "end_time": "2025-11-24T16:00:01Z"})
    assert (read.trace_id, read.span_id, read.parent_id) == ("4bf92f", "00f0", "")


def test_spans_over_several_lines_need_one_line_each(tmp_path: Path) -> None:
    """The console exporter of OpenTelemetry's SDK for Python prints spans like this."""
    rows = [phoenix(span("t", number, 0, {"input.value": "When?"})) for number in (0, 1)]
    path = write(tmp_path / "spans.json", "\n".join(json.dumps(row, indent=4) for row in rows))
    with pytest.raises(InputError, match=r"spans\.json:\d+: is not valid JSON: Extra data .* as jq -c \. does"):
        list(read_spans(path))


OI = {"input": "input.value", "output": "output.value", "kind": KIND, "documents": "retrieval.documents"}
KINDS = {"chain": "CHAIN", "llm": "LLM", "retriever": "RETRIEVER"}


def genai(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    operation = {"chain": "invoke_agent", "llm": "chat", "retriever": "retrieval"}[kind]
    texts = {"input": ("user", values.get("input")), "output": ("assistant", values.get("output"))}
    messages = {f"gen_ai.{part}.messages": message(*pair) for part, pair in texts.items() if pair[1] is not None}
    documents = values.get("documents")
    stated = {} if documents is None else {"gen_ai.retrieval.documents": documents}
    return {"gen_ai.operation.name": operation, **({} if kind == "retriever" else messages), **stated}


def openinference(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    if kind == "llm":
        return {KIND: "LLM", **dialog(**({"assistant": values["output"]} if "output" in values else {}))}
    return {KIND: KINDS[kind], **{OI[part]: value for part, value in values.items() if part in OI}}


def langfuse(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    name = "langfuse.observation."
    output = json.dumps(values["documents"]) if "documents" in values else values.get("output")
    return {f"{name}type": "generation" if kind == "llm" else kind, f"{name}input": values.get("input"),
            f"{name}output": output}  # fmt: skip


def traceloop(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    if kind == "llm":
        return genai(kind, values)
    wrapped = {
        part: json.dumps({f"{part}s": values[part], "kwargs": {}}) for part in ("input", "output") if part in values
    }
    if kind == "retriever":
        wrapped = {"input": "{}", "output": json.dumps({"documents": values["documents"], "count": 1})}
    operation = {"chain": "invoke_agent", "retriever": "vector_db_retrieve"}[kind]
    return {"gen_ai.operation.name": operation, **{f"traceloop.entity.{part}": text for part, text in wrapped.items()}}


@pytest.mark.long
@settings(max_examples=examples(1000))
@given(st.data())
def test_every_convention_gives_the_same_turn_whatever_is_absent(data: st.DataObject) -> None:
    text = st.sampled_from([None, "When?", "On the first day."])
    question, answer, reply = data.draw(text), data.draw(text), data.draw(text)
    documents = data.draw(st.none() | st.lists(st.sampled_from([{"id": "a", "content": "x"}, {"id": "b"}]), max_size=2))
    is_served, has_failed, has_llm = data.draw(st.tuples(*[st.booleans()] * 3))
    write_ = data.draw(st.sampled_from([genai, openinference, langfuse, traceloop]))
    chain = {part: value for part, value in (("input", question), ("output", answer)) if value is not None}
    top = int(is_served)
    rows = [span("t", 0, 0, {"http.request.method": "POST"})] * is_served
    rows.append(span("t", top, 0, write_("chain", chain), status={"code": 1 + has_failed}))
    below = {"parentSpanId": f"t-{top}"}
    if documents is not None:
        rows.append(span("t", 2, 1, write_("retriever", {"input": "q", "documents": documents})) | below)
    if has_llm:
        rows.append(span("t", 3, 2, write_("llm", {} if reply is None else {"output": reply})) | below)
    order = data.draw(st.permutations(rows))
    result = turn_of([one for row in order for one in spans_of(json.loads(json.dumps(otlp(row))))], START, Naming())
    if question is None:
        assert result is SkipReason.NO_QUESTION
        return
    assert isinstance(result, Turn)
    expected = None if has_failed else answer or (reply if has_llm else None)
    assert (result.question, result.answer) == (question, expected)
    distinct = dict.fromkeys((entry["id"], entry.get("content")) for entry in documents or ())
    assert result.contexts == (None if documents is None else tuple(distinct))
