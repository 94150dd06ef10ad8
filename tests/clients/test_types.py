"""A kind of component knows the types of its own group, and says what is wrong with what is registered."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.inputs import write

from rankbeam.transforms.clients.parameters import Kind, Parameters, registered
from rankbeam.transforms.records.errors import InputError

CODE = """
from rankbeam.transforms.clients.parameters import Parameters

class Steam(Parameters):
    pressure: float = 1.0

class Other:
    pass
"""
ENTRY_POINTS = """
[test.engines]
steam = engines_of_a_plugin:Steam
other = engines_of_a_plugin:Other
absent = engines_of_a_plugin:Absent
[test.wheels]
round = engines_of_a_plugin:Steam
"""
ENGINES = Kind("engine", "test.engines", Parameters)


@pytest.fixture(autouse=True)
def _plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    write(tmp_path / "engines_of_a_plugin.py", CODE)
    info = tmp_path / "engines-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: engines\nVersion: 1.0\n")
    write(info / "entry_points.txt", ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    registered.cache_clear()
    yield
    registered.cache_clear()


def test_a_kind_has_the_types_of_its_own_group() -> None:
    assert set(ENGINES.types) == {"steam", "other", "absent"}
    assert set(ENGINES.load("steam").model_fields) == {"pressure"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("stem", "unknown engine type 'stem'; did you mean 'steam'?"),
        ("round", "unknown engine type 'round'; valid are: absent, other, steam"),
        ("other", "engine type 'other': engines_of_a_plugin:Other is not a subclass of Parameters"),
        ("absent", "engine type 'absent' cannot be imported: module 'engines_of_a_plugin' has no attribute 'Absent'"),
    ],
)
def test_what_cannot_be_used_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ENGINES.load(name)
    assert str(caught.value) == message


def test_a_kind_without_types_says_so() -> None:
    with pytest.raises(InputError, match="unknown boat type 'ferry'; no type of boat is installed"):
        Kind("boat", "test.boats", Parameters).load("ferry")
