"""Problems of values that may have several types."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from rankbeam.transforms.records.wrong_values import in_one, in_words, without_types

Name = Annotated[str, Field(min_length=1)]


class _Model(BaseModel):
    to: Name | list[Name] | None = None
    kind: Literal["all"] | list[str] = "all"
    count: Annotated[int, Field(ge=1)] = 1


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ({"to": 5}, {"to": "must be a text or a list"}),
        ({"to": ""}, {"to": "must not be empty"}),
        ({"to": []}, {}),
        ({"to": ["a", 5]}, {"to.1": "must be a text"}),
        ({"to": ["a", ""]}, {"to.1": "must not be empty"}),
        ({"kind": "some"}, {"kind": "must be 'all' or a list"}),
        ({"count": 0, "to": 5}, {"to": "must be a text or a list", "count": "must be at least 1"}),
    ],
)
def test_every_value_has_one_problem(values: dict[str, Any], problems: dict[str, str]) -> None:
    try:
        _Model.model_validate(values)
    except ValidationError as error:
        problems_found = [
            (".".join(map(str, without_types(one["loc"]))), in_words(one)) for one in in_one(error.errors())
        ]
        assert problems_found == [*problems.items()]
    else:
        assert problems == {}
