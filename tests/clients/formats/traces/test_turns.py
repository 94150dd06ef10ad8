"""Turns of traces: every format, any order, and whatever is absent, against plain Python."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inputs import write
from support.traces import START, attributes, message, otlp, phoenix, span, typed

from rankbeam.transforms.clients.formats.traces.spans import DETAILS, Span, read_spans, spans_of
from rankbeam.transforms.clients.formats.traces.turns import Naming, SkipReason, Turn, turn_of
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.trajectories import AgentStep
from rankbeam.transforms.traces import proposals

NEWEST = START + 10


def turn(*rows: dict[str, Any], newest_s: float = NEWEST, naming: Naming | None = None) -> Turn | SkipReason:
    return turn_of([one for row in rows for one in spans_of(row)], newest_s, naming or Naming())


def known(*rows: dict[str, Any], **more: Any) -> Turn:
    result = turn(*rows, **more)
    assert isinstance(result, Turn)
    return result


def test_messages_of_the_genai_conventions() -> None:
    root = span("t", 0, 0, {"gen_ai.input.messages": message("user", "Who?"), "gen_ai.conversation.id": "c"})
    documents = [{"id": "d1", "content": "one"}, {"id": "d2"}]
    search = span("t", 1, 0, {"gen_ai.retrieval.documents": documents})
    chat = span("t", 2, 1, {
        "gen_ai.operation.name": "chat", "gen_ai.output.messages": message("assistant", "Ann."),
        "gen_ai.response.model": "m", "gen_ai.usage.input_tokens": 7,
    })  # fmt: skip
    whole = known(otlp(root, search, chat, **{"service.version": "v1"}))
    assert (whole.question, whole.answer, whole.conversation, whole.configuration) == ("Who?", "Ann.", "c", "v1")
    assert whole.contexts == (("d1", "one"), ("d2", None))
    assert (whole.model, whole.tokens, whole.seconds) == ("m", {"input": 7, "output": 0}, 1.0)


def test_messages_in_log_events_and_under_older_names() -> None:
    root = span("t", 0, 0, {})
    chat = span("t", 1, 0, {"gen_ai.operation.name": "chat", "gen_ai.completion.0.content": "Old.",
                            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "How?"})  # fmt: skip
    whole = known(otlp(root, chat))
    assert (whole.question, whole.answer) == ("How?", "Old.")
    record = {
        "traceId": "t", "spanId": "t-2", "eventName": DETAILS, "timeUnixNano": str(START * 10**9),
        "attributes": attributes({"gen_ai.output.messages": message("assistant", "New.")}),
    }  # fmt: skip
    last = span("t", 2, 5, {"gen_ai.operation.name": "chat"})
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, {"eventName": "other"}]}]}]}
    assert known(logs, otlp(root, chat, last)).answer == "New."


OLD: list[tuple[str, dict[str, Any]]] = [
    ("gen_ai.system.message", {"content": "Be brief."}),
    ("gen_ai.user.message", {"content": "Who pays?"}),
    ("gen_ai.assistant.message", {"tool_calls": [{"id": "1"}]}),
    ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Owners."}}),
]


@pytest.mark.parametrize("form", ["logs", "strands", "azure", "content"])
def test_messages_in_events_of_older_conventions(form: str) -> None:
    """As OpenTelemetry's instrumentation of OpenAI 2.1b0, Strands, Azure's SDK and conventions 1.27 write them."""
    inference = span("t", 1, 1, {"gen_ai.operation.name": "chat"})
    records = [
        {"traceId": "t", "spanId": "t-1", "timeUnixNano": "5", "attributes": attributes({"event.name": name}),
         "body": typed(body)}
        for name, body in OLD
    ]  # fmt: skip
    values: list[tuple[str, dict[str, Any]]] = {
        "logs": [],
        "strands": [("gen_ai.user.message", {"content": '[{"text": "Who pays?"}]'}),
                    ("gen_ai.choice", {"finish_reason": "end_turn", "message": '[{"text": "Owners."}]'})],
        "azure": [(name, {"gen_ai.event.content": json.dumps(body)}) for name, body in OLD],
        "content": [("gen_ai.content.prompt", {"gen_ai.prompt": '[{"role": "user", "content": "Who pays?"}]'}),
                    ("gen_ai.content.completion", {"gen_ai.completion": '[{"content": "Owners."}]'})],
    }[form]  # fmt: skip
    events = [{"name": name, "attributes": attributes(event)} for name, event in values]
    logs = [{"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}] if form == "logs" else []
    whole = turn_of(
        [one for row in (*logs, otlp(span("t", 0, 0, {}), {**inference, "events": events})) for one in spans_of(row)],
        START,
        Naming(),
    )
    assert isinstance(whole, Turn), whole
    assert (whole.question, whole.answer) == ("Who pays?", "Owners.")


def test_messages_in_attributes_come_before_those_in_events() -> None:
    stated = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "How?", "gen_ai.completion.0.content": "So."}
    events = [{"name": name, "attributes": attributes(event)} for name, event in OLD]
    inference = span("t", 1, 1, {"gen_ai.operation.name": "chat", **stated})
    whole = known(otlp(span("t", 0, 0, {}), {**inference, "events": [*events, "lost"]}))
    assert (whole.question, whole.answer) == ("How?", "So.")
    assert known(otlp(span("t", 0, 0, {"input.value": "How?"}), {**inference, "events": ["lost"]})).answer == "So."


def test_what_people_and_programs_write_by_accident() -> None:
    deep = "[" * 100_000
    root = span("t", 0, 0, {"input.value": deep, "output.value": "a"})
    chat = span("t", 1, 0, {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "9" * 5_000,
                            "gen_ai.usage.output_tokens": float("inf")})  # fmt: skip
    whole = known(otlp(root, chat))
    assert (whole.question, whole.tokens) == (deep, {})
    empty = {"parent_id": float("nan"), "attributes.output.value": float("nan")}  # of a DataFrame
    from_table = known(phoenix(span("t", 0, 0, {"input.value": "Who?"})) | empty)
    assert (from_table.question, from_table.answer) == ("Who?", None)


@pytest.mark.parametrize(
    "wrong", [{"spanId": 1}, {"traceId": ["t"]}, {"parentSpanId": {"id": "x"}}, {"startTimeUnixNano": 10**400}]
)
def test_spans_with_values_of_other_types_are_refused_with_their_line(wrong: dict[str, Any], tmp_path: Path) -> None:
    rows = [otlp(span("t", 0, 0, {})), otlp(span("t", 1, 0, {}) | wrong)]
    path = write(tmp_path / "spans.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(InputError, match=r"spans\.jsonl:2: is not a span: (Type|Overflow)Error"):
        list(read_spans(path))


def test_tokens_of_nested_inferences_count_once() -> None:
    tokens = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2}
    root = span("t", 0, 0, {"input.value": "Who?"})
    outer = span("t", 1, 0, tokens)
    step = span("t", 2, 0, {}) | {"parentSpanId": "t-1"}
    inner = span("t", 3, 0, tokens) | {"parentSpanId": "t-2"}
    second = span("t", 4, 0, tokens)
    assert known(otlp(root, outer, step, inner, second)).tokens == {"input": 10, "output": 4}
    without = span("t", 1, 0, {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 2})
    assert known(otlp(root, without, step, inner, second)).tokens == {"input": 10, "output": 4}
    agent = span("t", 1, 0, {**tokens, "gen_ai.operation.name": "invoke_agent"})
    assert known(otlp(root, agent)).tokens == {"input": 5, "output": 2}
    assert known(otlp(root, agent, inner, second)).tokens == {"input": 10, "output": 4}
    circle = span("t", 1, 0, {}) | {"parentSpanId": "t-3"}
    assert known(otlp(root, circle, step, inner)).tokens == {"input": 5, "output": 2}


def test_a_trace_of_langfuse() -> None:
    trace = {
        "id": "t", "timestamp": "2025-11-24T16:00:00.000Z", "input": "Who?", "output": "Ann.", "sessionId": "s",
        "observations": [
            {"id": "o1", "type": "RETRIEVER", "startTime": "2025-11-24T16:00:00.100Z", "input": "who",
             "endTime": "2025-11-24T16:00:01Z", "output": [{"id": "d1", "pageContent": "one"}, "two"]},
            {"id": "o2", "type": "GENERATION", "startTime": "2025-11-24T16:00:01Z", "endTime": None, "model": "m"},
        ],
    }  # fmt: skip
    whole = known(trace)
    assert (whole.question, whole.answer, whole.conversation, whole.model) == ("Who?", "Ann.", "s", "m")
    assert whole.contexts == (("d1", "one"), (None, "two"))
    assert (whole.seconds, whole.tokens) == (1.0, {})
    with pytest.raises(ValueError, match="only ids"):
        turn({**trace, "observations": ["o1", "o2"]})


@pytest.mark.parametrize("usage", [
    {"usageDetails": {"input": 3, "input_cached_tokens": 4, "output": 1, "output_reasoning": 1, "total": 9}},
    {"usageDetails": '{"input": 7, "output": 2}'},
    {"usage": {"input": 7, "output": 2, "total": 9, "unit": "TOKENS"}},
    {"usage": {"promptTokens": 7, "completionTokens": 2}},
    {"usageDetails": {}, "usage": None, "promptTokens": 7, "completionTokens": 2},
])  # fmt: skip
def test_observations_of_langfuse_have_tokens_tools_and_a_session(usage: dict[str, Any]) -> None:
    common = {"traceId": "t", "startTime": "2025-11-24T16:00:00Z", "endTime": None, "sessionId": "s"}
    root = {"id": "o0", "parentObservationId": None, "type": "AGENT", "input": "Who?", "output": "Ann."}
    tool = {"id": "o1", "parentObservationId": "o0", "type": "TOOL", "name": "search", "input": {"q": "x"}}
    model = {"id": "o2", "parentObservationId": "o0", "type": "GENERATION", "input": "prompt"}
    whole = known(*(common | row for row in (root, tool | {"level": "ERROR"}, model | usage)))
    assert (whole.conversation, whole.tokens) == ("s", {"input": 7, "output": 2})
    assert whole.steps == (AgentStep("search", '{"q": "x"}', "error"),)


def test_json_needs_a_path() -> None:
    row = otlp(span("t", 0, 0, {"input.value": '{"q": {"text": "Who?"}}', "output.value": '{"reply": "Ann."}'}))
    assert turn(row) is SkipReason.JSON_QUESTION
    assert known(row, naming=Naming("q.text")).answer is None
    assert known(row, naming=Naming("q.text", "reply")).answer == "Ann."
    assert turn(row, naming=Naming("q.other")) is SkipReason.NO_QUESTION
    assert known(otlp(span("t", 0, 0, {"input.value": "[is this JSON?"}))).question == "[is this JSON?"
    messages = json.dumps([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Who?"}])
    listed = otlp(span("t", 0, 0, {"input.value": messages}))
    assert turn(listed) is SkipReason.JSON_QUESTION
    assert proposals(list(spans_of(listed)), "input")["--question with a text at [-1].content"] == 1
    assert known(listed, naming=Naming("[-1].content")).question == "Who?"
    assert turn(otlp(span("t", 0, 0, {"input.value": "__REDACTED__"}))) is SkipReason.NO_QUESTION


@pytest.mark.parametrize(
    ("newest_s", "reason"), [(START + 3602, SkipReason.UNFINISHED), (START + 100, SkipReason.LATER)]
)
def test_a_trace_without_a_root_is_unfinished_or_left_for_later(newest_s: float, reason: SkipReason) -> None:
    assert turn(otlp(span("t", 1, 0, {"input.value": "Who?"})), newest_s=newest_s) is reason
    event = {"traceId": "t", "spanId": "t-1", "eventName": DETAILS, "timeUnixNano": str(START * 10**9)}
    assert turn({"resourceLogs": [{"scopeLogs": [{"logRecords": [event]}]}]}, newest_s=newest_s) is reason


def test_an_inference_that_failed_has_no_answer() -> None:
    root = span("t", 0, 0, {"input.value": "Who?", "output.value": "Ask later."})
    reply = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": message("assistant", "Ann and B")}
    bare = span("t", 0, 0, {"input.value": "Who?"})
    assert known(otlp(bare, span("t", 1, 0, reply))).answer == "Ann and B"
    assert known(otlp(bare, span("t", 1, 0, reply, status={"code": 2}))).answer is None
    for code in (1, 2):
        assert known(otlp(root, span("t", 1, 0, reply, status={"code": code}))).answer == "Ask later."


@pytest.mark.parametrize(("unit", "as_type"), [(1, float), (1, int), (10**3, int), (10**6, int), (10**9, str)])
def test_the_size_of_a_time_tells_its_unit(unit: int, as_type: type) -> None:
    """Data frames of Phoenix as JSON of pandas have milliseconds."""
    row = phoenix(span("t", 0, 0, {"input.value": "Who?"}))
    times = {"start_time": as_type(START * unit), "end_time": as_type((START + 2) * unit)}
    whole = known(row | times)
    assert (whole.start_s, whole.seconds) == (START, 2.0)


def test_what_a_reranker_returned_counts() -> None:
    documents = {"retrieval.documents.0.document.id": "d1", "retrieval.documents.1.document.id": "d2"}
    first = span("t", 1, 0, documents)
    second = span("t", 2, 1, {"reranker.output_documents": [{"document.id": "d2", "document.content": "two"}]})
    root = span("t", 0, 0, {"input.value": "Who?"})
    assert known(otlp(root, second, first)).contexts == (("d2", "two"),)
    assert known(otlp(root, first)).contexts == (("d1", None), ("d2", None))
    texts = span("t", 1, 0, {"retrieval.documents": [{"document.id": "d2", "document.content": "two"}]})
    only_ids = span("t", 2, 1, {"reranker.output_documents": [{"document.id": "d3"}, {"document.id": "d2"}]})
    assert known(otlp(root, only_ids, texts)).contexts == (("d3", None), ("d2", "two"))


def test_a_retrieval_has_its_query_as_arguments_where_it_is_known() -> None:
    known_query = {"gen_ai.retrieval.query.text": "x", "retrieval.documents.0.document.id": "d1"}
    without_query = {"retrieval.documents.0.document.id": "d1"}
    root = span("t", 0, 0, {"input.value": "Who?"})
    steps = known(otlp(root, span("t", 1, 0, known_query), span("t", 2, 1, without_query))).steps
    assert [step.args for step in steps or ()] == ['{"query": "x"}', "{}"]


DOCUMENTS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"document.id": st.sampled_from("abc"), "document.content": st.sampled_from(["x", "y"])}
    ),
    max_size=3,
)


@given(st.data())
def test_any_order_format_and_absence_against_plain_python(data: st.DataObject) -> None:
    texts = st.sampled_from([None, "Who?", "  ", "A text"])
    question, answer, session, failed = (data.draw(texts), data.draw(texts), data.draw(texts), data.draw(st.booleans()))
    retrievals = data.draw(st.lists(DOCUMENTS, max_size=3))
    status = {"status": {"code": 2}} if failed else {}
    rows = [span("t", 0, 0, {"input.value": question, "output.value": answer, "session.id": session}, **status)]
    for place, documents in enumerate(retrievals, start=1):
        rows.append(span("t", place, place, {"openinference.span.kind": "RETRIEVER", "retrieval.documents": documents}))
    twice = data.draw(st.lists(st.sampled_from(rows), max_size=2))
    order = data.draw(st.permutations([*rows, *twice]))
    as_rows = [phoenix(row) for row in order] if data.draw(st.booleans()) else [otlp(row) for row in order]
    result = turn(*json.loads(json.dumps(as_rows)))
    if question is None or not question.strip():
        assert result is SkipReason.NO_QUESTION
        return
    assert isinstance(result, Turn)
    expected = None if answer is None or failed else answer.strip() or None
    assert (result.question, result.answer, result.duplicates) == (question.strip(), expected, len(twice))
    assert result.conversation == session
    assert result.contexts == (documents_of(retrievals) if retrievals else None)


def documents_of(retrievals: list[list[dict[str, str]]]) -> tuple[tuple[str | None, str | None], ...]:
    """Each passage once; where a text is missing, the first one that a retrieval states for the id."""
    listed = [(entry.get("document.id"), entry.get("document.content")) for entries in retrievals for entry in entries]
    distinct: list[tuple[str | None, str | None]] = []
    for name, text in listed:
        texts = [other for id_, other in listed if id_ == name and other is not None and name is not None]
        passage = (name, text or next(iter(texts), None))
        distinct += [] if passage in distinct else [passage]
    return tuple(distinct)


def test_a_span_needs_its_ids() -> None:
    with pytest.raises(KeyError, match="trace_id"):
        list(spans_of({"name": "x", "span_id": "s"}))
    assert next(spans_of({"trace_id": "t", "span_id": "s"})) == Span("t", "s", "", "", 0.0, 0.0, False, {})
