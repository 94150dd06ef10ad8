"""Parameters of types of one's own: numbers are not booleans, wherever they occur."""

from typing import Any

import pytest
from pydantic import ValidationError

from rankbeam.transforms.clients.parameters import Parameters


class Own(Parameters):
    """Mappings of numbers, of words, and of either."""

    boosts: dict[str, float] | None = None
    sizes: dict[str, int] | None = None
    flags: dict[str, bool] | None = None
    either: dict[str, bool | float] | None = None
    labels: dict[str, Any] | None = None


@pytest.mark.parametrize(
    ("values", "message"),
    [({"boosts": {"title": 2, "text": True}}, "valid number"), ({"sizes": {"title": False}}, "valid integer")],
)
def test_a_boolean_in_a_mapping_of_numbers_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Own(**values)


def test_a_boolean_stays_one_where_a_mapping_may_have_it() -> None:
    own = Own(boosts={"title": 2}, flags={"a": True}, either={"b": True}, labels={"c": True})
    assert own.boosts == {"title": 2.0}
    assert (own.flags, own.either, own.labels) == ({"a": True}, {"b": True}, {"c": True})
