"""A kind of component knows the types of its own group, and says what is wrong with what is registered."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.inputs import write

from rankbeam.transforms.clients.parameters import Kind, Parameters, entry_points_of
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
broken = broken_engines:Steam
ended = ended_engines:Steam
spaced = broken engines
[test.wheels]
round = engines_of_a_plugin:Steam
"""
IMPORT = " cannot be imported:"
ENGINES = Kind("engine", "test.engines", Parameters)


@pytest.fixture(autouse=True)
def _plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    write(tmp_path / "engines_of_a_plugin.py", CODE)
    write(tmp_path / "broken_engines.py", "\nraise RuntimeError('no licence')\n")
    write(tmp_path / "ended_engines.py", "raise SystemExit(1)\n")
    info = tmp_path / "engines-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: engines\nVersion: 1.0\n")
    write(info / "entry_points.txt", ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_points_of.cache_clear()
    yield
    entry_points_of.cache_clear()


def test_a_kind_has_the_types_of_its_own_group() -> None:
    assert set(ENGINES.types) == {"steam", "other", "absent", "broken", "ended", "spaced"}
    assert set(ENGINES.load("steam").model_fields) == {"pressure"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("stem", "unknown engine type 'stem'; did you mean 'steam'?"),
        ("round", "unknown engine type 'round'; valid are: absent, broken, ended, other, spaced, steam"),
        ("other", ": engines_of_a_plugin:Other is not a subclass of Parameters"),
        ("absent", f"{IMPORT} module 'engines_of_a_plugin' has no attribute 'Absent'"),
        ("broken", f"{IMPORT} RuntimeError: no licence (FOLDER/broken_engines.py, line 2)"),
        ("ended", f"{IMPORT} SystemExit: 1 (FOLDER/ended_engines.py, line 1)"),
        ("spaced", ": 'broken engines' is not of the form MODULE:OBJECT"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ENGINES.load(name)
    package = "" if message.startswith("unknown") else f"test.engines {name!r} of the package engines"
    assert str(caught.value) == package + message.replace("FOLDER", str(tmp_path))


def test_a_kind_without_types_says_so() -> None:
    with pytest.raises(InputError, match="unknown boat type 'ferry'; no type of boat is installed"):
        Kind("boat", "test.boats", Parameters).load("ferry")
