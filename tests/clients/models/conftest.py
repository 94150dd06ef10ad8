"""One stand-in of each protocol for all tests of a module: a question says itself what goes wrong."""

from collections.abc import Iterator

import pytest
from support.standins import Faults, Standin, serve

NAMED = Faults(named=True, hint_s=17.5, hang_s=60.0)


@pytest.fixture(scope="module")
def gemini() -> Iterator[Standin]:
    with serve("gemini", faults=NAMED) as server:
        yield server


@pytest.fixture(scope="module")
def openai() -> Iterator[Standin]:
    with serve("openai", faults=NAMED) as server:
        yield server
