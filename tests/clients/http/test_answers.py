"""Reading of JSON answers: the fast ways say what Python's own reader and JMESPath say."""

import json
import math
from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.clients.storage.json_paths import value_of
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.rankings.retrieved import documents_of

NAMES = st.sampled_from(["a", "b", "_c", "d e", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: ".".join(_spelled(name) for name in names))


def _spelled(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else f'"{name}"'


@given(VALUES, st.booleans())
def test_json_is_read_as_python_reads_it(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    parsed = value_of(text)
    assert json.dumps(parsed) == json.dumps(json.loads(text))


@given(st.text() | st.binary())
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011  whatever Python says
            value_of(text)
    else:
        assert str(value_of(text)) == str(expected)


@given(PATHS, PATHS, PATHS, VALUES)
def test_names_alone_lead_where_jmespath_leads(id_path: str, score: str, text: str, result: Any) -> None:
    def value_at(path: str) -> Any:
        return jmespath.search(path, result)

    http = Http(url="http://none.invalid/", results="hits", id=id_path, score=score, text=text)
    other = Http(
        url="http://none.invalid/", results="hits", id=f"{id_path} || id", score=f"@ | {score}", text=f"@ | {text}"
    )
    answer = json.dumps({"hits": [result]})
    usable_id = (isinstance(value_at(id_path), str) and value_at(id_path) != "") or _is_number(value_at(id_path))
    usable_score = value_at(score) is None or _is_number(value_at(score))
    usable_text = value_at(text) is None or isinstance(value_at(text), str)
    if not (usable_id and usable_score and usable_text):
        for reader in (http, other):
            with pytest.raises(CallError):
                reader.read(answer)
        return
    expected_score = math.nan if value_at(score) is None else float(value_at(score))
    expected = Ranking((str(value_at(id_path)),), (expected_score,), (value_at(text) or "",))
    assert str(http.read(answer)) == str(other.read(answer)) == str(expected)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2.0**1023


GOOD = {"_id": "d1", "s": 1.5, "of": {"text": "words"}}
ODD = [
    *({**GOOD, "_id": odd} for odd in ("", 5, None, True, {})),
    *({**GOOD, "s": odd} for odd in (-0.0, 1, 2**60, 10**400, math.inf, math.nan, None, True, "1")),
    *({**GOOD, "of": odd} for odd in ({"text": ""}, {"text": 3}, {"text": None}, {}, None, "text", ["text"])),
    *({name: GOOD[name] for name in GOOD if name != absent} for absent in GOOD),
    "d1",
]


@pytest.mark.parametrize("path", ["hits", "hits || `[]`", "abs(hits)"])
def test_many_answers_are_read_as_each_of_them(path: str) -> None:
    http = Http(url="http://none.invalid/", body="{query}", results=path, id="_id", score="s", text="of.text")
    for odd in [[], None, {}, *([GOOD, case] for case in ODD)]:
        answers = [json.dumps({"hits": hits}) for hits in ([GOOD], odd, [GOOD, GOOD])]
        expected = documents_of([_read(http, answer) for answer in answers])
        assert http.recall([answer.encode() for answer in answers]).to_pylist() == expected.to_pylist(), odd


def _read(http: Http, answer: str) -> Ranking | None:
    try:
        return http.read(answer)
    except CallError:
        return None
