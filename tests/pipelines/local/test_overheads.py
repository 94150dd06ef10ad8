"""Beam samples often while a run lasts; what it remembers of signatures is what it finds when it looks."""

import contextlib
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders import VarIntCoder
from apache_beam.runners.worker import statesampler
from apache_beam.transforms import core, userstate
from apache_beam.typehints import decorators
from apache_beam.utils.counters import CounterFactory
from support.campaigns import in_campaigns

from rankbeam.pipelines.local import overheads

COUNT = userstate.CombiningValueStateSpec("count", VarIntCoder(), sum)
TIMER = userstate.TimerSpec("timer", beam.TimeDomain.WATERMARK)
OF_COUNT, OF_TIMER = beam.DoFn.StateParam(COUNT), beam.DoFn.TimerParam(TIMER)


class Stateful(beam.DoFn):
    def process(self, element: Any, count: Any = OF_COUNT, side: int = 1) -> None:
        """Count what comes."""

    @userstate.on_timer(TIMER)
    def end(self, timer: Any = OF_TIMER) -> None:
        """End."""


class Plain(beam.DoFn):
    def process(self, element: Any, window: Any = beam.DoFn.WindowParam) -> None:
        """Do nothing."""


def with_state(element: Any, count: Any = OF_COUNT) -> None:
    """A function that a DoFn is made of."""


@pytest.mark.parametrize(
    "factory",
    [Stateful, Plain, lambda: core.CallableWrapperDoFn(with_state), lambda: core.CallableWrapperDoFn(str.split)],
)
def test_every_answer_is_the_one_that_is_computed(factory: Callable[[], beam.DoFn]) -> None:
    overheads.remember_signatures()
    function = factory()
    names = [name for name in dir(beam.DoFn) if callable(getattr(function, name)) and not name.startswith("__")]
    for _ in range(2):
        assert userstate.get_dofn_specs(function) == userstate.get_dofn_specs.compute(function)
        for argument in [with_state, *(getattr(function, name) for name in names), *(getattr(Plain, n) for n in names)]:
            answer = core.get_function_args_defaults(argument)
            assert answer == core.get_function_args_defaults.compute(argument)
            answer[0].append("what a caller does with its lists is its own affair")
            assert decorators.get_signature(argument) == decorators.get_signature.compute(argument)


def test_a_function_without_type_hints_is_inspected_once() -> None:
    inspected: list[object] = []
    cached = overheads._CachedResults(inspected.append, overheads._function, overheads._itself)
    assert cached(with_state) is cached(with_state) is None
    assert inspected == [with_state]


def test_this_release_of_beam_has_what_is_avoided() -> None:
    assert overheads.remember_signatures() == [], f"changed in Beam {beam.__version__}"
    usual = statesampler.StateSampler.__init__.__defaults__
    assert usual == (statesampler.DEFAULT_SAMPLING_PERIOD_MS,), f"changed in Beam {beam.__version__}"
    assert beam.__version__.startswith(overheads._TRIED), f"import Beam {beam.__version__} alone, then say so"


def test_functions_that_beam_changes_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_two(dofn: beam.DoFn, more: int) -> None:
        """Take one argument more than today."""

    monkeypatch.delattr(core, "_check_fn_use_yield_and_return")
    monkeypatch.setattr(userstate, "get_dofn_specs", of_two)
    assert overheads.remember_signatures() == ["_check_fn_use_yield_and_return", "get_dofn_specs"]
    assert userstate.get_dofn_specs is of_two


def period_ms() -> int:
    return int(statesampler.StateSampler("stage", CounterFactory()).sampling_period_ms)


def test_samples_are_frequent_in_the_block_and_usual_after_it() -> None:
    usual = period_ms()
    with contextlib.suppress(KeyboardInterrupt), overheads.avoid_overheads():
        assert period_ms() < usual / 10
        raise KeyboardInterrupt
    assert period_ms() == usual == statesampler.DEFAULT_SAMPLING_PERIOD_MS


@pytest.mark.long
@pytest.mark.parametrize("command", [False, True])
def test_only_a_process_of_the_command_line_leaves_its_modules_out_of_collections(
    command: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overheads, "ends_with_its_command", command)
    before, usual = gc.get_freeze_count(), gc.get_threshold()
    lists = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    try:
        with overheads.avoid_overheads():
            assert (gc.get_freeze_count() >= before + len(lists)) == command
            assert (gc.get_threshold() == (overheads._COLLECTED_AFTER, *usual[1:])) == command
    finally:
        gc.set_threshold(*usual)


ALONE = """
import sys
from rankbeam.pipelines.local import overheads
overheads._TRIED = {tried!r}
overheads.ends_with_its_command = {command}
overheads.import_beam_alone()
import apache_beam
modules = ["google.cloud.storage", "apitools", "apache_beam.io.gcp.bigquery", "bson"]
print(*[name in sys.modules for name in modules])
import google.cloud.storage, apitools, bson, apache_beam as beam
from apache_beam.io.gcp.bigquery import ReadFromBigQuery
from apache_beam.io.filesystems import FileSystems
with beam.Pipeline() as pipeline:
    pipeline | beam.Create([1]) | beam.Map(print)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "tried", "printed"),
    [(True, "2.", "False " * 4), *in_campaigns((None, "2.", "True " * 4), (True, "1.", "True " * 4))],
)
def test_beam_is_imported_without_clients_of_google_and_mongodb_which_other_modules_import_as_ever(
    command: bool | None, tried: str, printed: str
) -> None:
    before = "import apache_beam" if command is None else ""
    done = subprocess.run(
        [sys.executable, "-c", before + ALONE.format(command=command, tried=tried)], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (f"{printed.strip()}\n1\n", "")


CLOUD = """
from rankbeam.pipelines.local import overheads
from rankbeam.transforms.clients.storage import gcs
overheads.ends_with_its_command = True
overheads.import_beam_alone()
gcs.prepare("gs://bucket/file")
from apache_beam.io.filesystems import FileSystems
print(type(FileSystems.get_filesystem("gs://bucket/file")).__name__)
"""


@pytest.mark.long
def test_a_path_on_cloud_storage_loads_the_client_that_beam_was_imported_without() -> None:
    environment = {**os.environ, "STORAGE_EMULATOR_HOST": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", CLOUD], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("GCSFileSystem\n", "")
