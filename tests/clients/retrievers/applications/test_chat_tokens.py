"""The tokens of applications behind OpenAI's chat API, with cached ones where the service reports them."""

import json
from typing import Any

import pytest

from rankbeam.transforms.clients.retrievers.applications.ask import ChatApplication
from rankbeam.transforms.records.reply import Tokens


def stored(reply: Any) -> str:
    return json.dumps({"seconds": 0.5, "reply": reply})


@pytest.mark.parametrize(
    ("details", "tokens"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 64}}, Tokens(100, 64, 7)),
        ({"prompt_cache_hit_tokens": 32}, Tokens(100, 32, 7)),
        ({"prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": None}, Tokens(100, 0, 7)),
        ({"prompt_tokens_details": None}, Tokens(100, 0, 7)),
        ({"prompt_tokens_details": {"cached_tokens": 101}}, Tokens(100, 0, 7)),
        ({"prompt_tokens_details": {"cached_tokens": "64"}}, Tokens(100, 0, 7)),
    ],
)
def test_a_chat_reports_cached_tokens(details: dict[str, Any], tokens: Tokens) -> None:
    reply = {"usage": {"prompt_tokens": 100, "completion_tokens": 7, **details}}
    assert ChatApplication(url="http://h").tokens_of(stored(reply)) == tokens
    streaming = ChatApplication(url="http://h", stream=True)
    assert streaming.tokens_of(stored({"events": [{}, reply, {"usage": None}]})) == tokens


def test_stated_paths_of_tokens_replace_those_of_a_chat() -> None:
    reply = {"usage": {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 64}}, "cached": 8}
    stated = {"input": "usage.prompt_tokens", "cached": "cached"}
    assert ChatApplication(url="http://h", usage=stated).tokens_of(stored(reply)) == Tokens(100, 8)
    assert ChatApplication(url="http://h", usage={}).tokens_of(stored(reply)) == Tokens()
