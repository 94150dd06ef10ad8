"""Keys of models are hidden in texts, unless they are too short to be secrets."""

import asyncio

import pytest

from rankbeam.transforms.clients.models.remote import resolve_key


@pytest.mark.parametrize(("key", "shown"), [("EMPTY", "an EMPTY kind of k"), ("k", "an EMPTY kind of k")])
def test_a_short_key_changes_no_word_of_an_answer(key: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", key)
    value, secrets = asyncio.run(resolve_key("${env:RANKBEAM_TEST_KEY}"))
    assert (value, secrets.hide("an EMPTY kind of k")) == (key, shown)


def test_a_key_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "sk-12345")
    _, secrets = asyncio.run(resolve_key("${env:RANKBEAM_TEST_KEY}"))
    assert secrets.hide("Bearer sk-12345.") == "Bearer ***."
