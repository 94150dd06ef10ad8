"""Texts of tables that may hold lists and objects."""

import pytest

from rankbeam.transforms.clients.storage.json_paths import parse_literal


@pytest.mark.parametrize("text", ["{[]: 1}", "{{}}", "[" * 100_000, f"[{'9' * 5_000}]", "[1,\0]"])
def test_a_text_that_python_cannot_evaluate_stays_a_text(text: str) -> None:
    assert parse_literal(text) == text
