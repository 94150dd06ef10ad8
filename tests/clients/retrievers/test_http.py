"""Parameters of the http retriever."""

import math
import pickle
import subprocess
import sys

import pytest
from pydantic import ValidationError
from support.odd_server import http

from rankbeam.transforms.records.calls.steps import SearchDepth


def test_parameters_travel_and_the_paths_are_no_part_of_what_is_asked() -> None:
    one = http(headers={"Authorization": "Bearer ${env:RB_KEY}"})
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301  our own bytes
    other = http(headers=one.headers, results="a", id="b", score=None, text=None, lower_is_better=True)
    keys = one.keys("http", ["who?"], SearchDepth(10))
    assert other.keys("http", ["who?"], SearchDepth(10)) == keys
    assert http(url="http://none.invalid/other").keys("http", ["who?"], SearchDepth(10)) != keys


def test_one_that_reranks_is_asked_for_every_number_apart() -> None:
    keys = {
        derive: {http(derive=derive).keys("http", ["who?"], SearchDepth(k))[0] for k in (5, 10)}
        for derive in (True, False)
    }
    assert [len(keys[True]), len(keys[False])] == [1, 2]
    assert [http(derive=derive).is_prefix() for derive in (True, False)] == [True, False]


def test_the_scope_is_the_address_that_is_called() -> None:
    assert http(url="HTTPS://Search.example.com/a").scope() == "https://search.example.com:443"
    assert http(url="http://u:${env:A}@[::1]/a").scope() == "http://[::1]:80"
    assert http(api_endpoint="http://127.0.0.1:9200/").scope() == "http://127.0.0.1:9200"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"url": "ftp://h/"}, "write http:// or https://"),
        ({"url": "http://{query}/"}, "come after the host"),
        ({"url": "http://h:99999/"}, "write http:// or https://"),
        ({"url": "http://h/a b"}, "without spaces"),
        ({"url": "http://h/{topk}"}, "unknown placeholder {topk}; did you mean '{top_k}'"),
        ({"url": "http://h/${HOME}"}, "is not a reference"),
        ({"api_endpoint": "127.0.0.1:9"}, "write http:// or https:// and a host"),
        ({"api_endpoint": "http://h/path"}, "and nothing else"),
        ({"headers": {"X": "${query}"}}, "is not a reference"),
        ({"headers": {"X": "${secret:projects/p/secrets/s}"}}, "is not a reference"),
        ({"headers": {"X Y": "1"}}, "headers may not have"),
        ({"headers": {"X": "a {vector}"}}, "header 'X' holds {vector}, which only url, params and body replace"),
        ({"headers": {"X": "{query}"}}, "header 'X' holds {query}, which only"),
        ({"params": {"x": "${env:1}"}}, "is not a reference"),
        ({"body": {"q": "{query}", "x": ["${nope}"]}}, "is not a reference"),
        ({"body": {"q": "{query}", "x": math.nan}}, "JSON cannot write"),
        ({"body": {"size": 10}}, "neither url nor params nor body contains {query}"),
        ({"method": "GET"}, "neither url nor params nor body contains {query}"),
        ({"id": "document-id"}, "'document-id' is not valid JMESPath"),
        ({"results": "hits["}, "'hits[' is not valid JMESPath"),
    ],
)
def test_what_cannot_work_is_refused_before_any_call(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        http(**wrong)
    assert message in str(caught.value)


@pytest.mark.parametrize("placeholder", ["{query}", "{top_k}", "{vector}"])
def test_a_placeholder_is_no_secret_whatever_its_key(placeholder: str) -> None:
    body = {"q": "{query}", "v": "{vector}", "key": placeholder}
    assert http(body=body, embedding_model="e").template == body


def test_httpx_is_imported_only_where_calls_are_made() -> None:
    code = (
        "import sys, rankbeam.transforms.clients.retrievers.http; "
        "print(sorted({'httpx', 'google.cloud.secretmanager'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
