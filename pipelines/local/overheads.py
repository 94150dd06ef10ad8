"""Avoid Beam's overheads, for which it has no options: they slow down short runs, or fail in notebooks.

Beam inspects the signature of every DoFn method again for each of a dozen questions: a quarter of a small run. Here it
remembers the results for a function and for a DoFn class as long as these live.

At the end of each bundle, its worker waits for the thread that samples its state, which sleeps for up to 200 ms.

It imports clients of Google Cloud and MongoDB, and its Dataflow runner, wherever they are installed: half of the second
that its import takes.

In IPython, it puts the cell's number before the names of steps. For that, it imports its interactive runner, which
fails without pandas and with pandas 3, and otherwise loads jQuery into the notebook from a server.
"""

import gc
import logging
import re
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any, cast
from weakref import WeakKeyDictionary

from rankbeam.transforms.clients.sharing import shared

_MODULE = "apache_beam.runners.common"  # with the modules that it imports, it asks all of these questions
_SAMPLED_MS = 5
_COLLECTED_AFTER = 20_000  # objects; an HTTP call leaves forty in cycles, which hold its reply
_INTERACTIVE = "is_in_ipython"
_OPTIONAL = ("google.api_core", "google.auth", "google.cloud", "apitools", "apache_beam.io.gcp.bigquery", "bson")
"""Modules whose failed imports Beam catches, because its extra for Google Cloud is optional."""
_WITHOUT_BSON = "apache_beam.io.mongodbio"  # it logs a warning
_TRIED = "2.77."
"""Beam releases for which this was tested: another one may need the absent modules, and cannot be imported twice."""

_SERVICES = re.compile(r"https?://")

ends_with_its_command = False
"""True in a process of the command line, where only the command uses Beam and modules are never unloaded."""


def experiment_text(path: str) -> str:
    """The text of an experiment file; "" if it cannot be read, which is reported later."""
    try:
        return Path(path).read_text("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def needs_no_clients(*texts: str) -> bool:
    """Return whether no text names a remote file, a table, or a variable that might name one.

    >>> needs_no_clients("out", "url: https://search.example.org"), needs_no_clients("gs://bucket/out")
    (True, False)
    >>> needs_no_clients("path: ${env:DATA}"), needs_no_clients("bigquery: my-project.results")
    (False, False)
    """
    rest = _SERVICES.sub("", "\n".join(texts))
    return not any(elsewhere in rest for elsewhere in ("://", "${", "bigquery"))


def import_beam_alone() -> None:
    """Import Beam as if its extras for Google Cloud and MongoDB were not installed, in a process that needs neither.

    Beam can then read and write only local files. Other modules import Google's libraries as usual.
    """
    if "apache_beam" in sys.modules or not ends_with_its_command or not version("apache-beam").startswith(_TRIED):
        return
    absent = [name for name in _OPTIONAL if name not in sys.modules]
    logging.getLogger(_WITHOUT_BSON).setLevel(logging.ERROR)
    try:
        for name in absent:
            sys.modules[name] = cast("ModuleType", None)  # importing it raises an ImportError
        import apache_beam  # noqa: F401
    finally:
        for name in absent:
            sys.modules.pop(name, None)


@shared
@contextmanager
def avoid_overheads() -> Iterator[None]:
    """Run the block with Beam's local runner, avoiding its overheads."""
    if ends_with_its_command:
        gc.freeze()  # later garbage collections do not search two thousand modules
        gc.set_threshold(_COLLECTED_AFTER, *gc.get_threshold()[1:])
    remember_signatures()
    with _not_interactive(), _sampled_often():
        yield


@contextmanager
def _not_interactive() -> Iterator[None]:
    """Make Beam treat IPython like any other Python."""
    from apache_beam import pipeline
    from apache_beam.utils import interactive_utils

    usual = [(module, getattr(module, _INTERACTIVE, None)) for module in (interactive_utils, pipeline)]
    for module, function in usual:
        if function is not None:
            setattr(module, _INTERACTIVE, lambda: False)
    try:
        yield
    finally:
        for module, function in usual:
            if function is not None:
                setattr(module, _INTERACTIVE, function)


@contextmanager
def _sampled_often() -> Iterator[None]:
    from apache_beam.runners.worker import statesampler

    begin = statesampler.StateSampler.__init__
    usual = begin.__defaults__
    if usual == (getattr(statesampler, "DEFAULT_SAMPLING_PERIOD_MS", None),):
        begin.__defaults__ = (_SAMPLED_MS,)
    try:
        yield
    finally:
        begin.__defaults__ = usual


def remember_signatures() -> list[str]:
    """Let Beam remember signatures from now on, if this process has imported it.

    Returns the names of functions that this Beam lacks, or that do not take exactly one argument; they stay unchanged.
    """
    if _MODULE not in sys.modules:
        return []
    from apache_beam.transforms import core, userstate
    from apache_beam.typehints import decorators

    functions: list[tuple[Any, str, Callable[[Any], Hashable], Callable[[Any], Any]]] = [
        (core, "_check_fn_use_yield_and_return", _function, _itself),
        (core, "get_function_args_defaults", _function, _copied_lists),
        (userstate, "get_dofn_specs", _methods, _copied_sets),
        (decorators, "get_signature", _function, _itself),
        (decorators.IOTypeHints, "from_callable", _function, _itself),
    ]
    changed = []
    for owner, name, key, copied in functions:
        function = getattr(owner, name, None)
        if isinstance(function, _CachedResults):
            continue
        if callable(function) and len(signature(function).parameters) == 1:
            setattr(owner, name, _CachedResults(function, key, copied))
        else:
            changed.append(name)
    return changed


_NEW = object()  # None is a result: a function without type hints


class _CachedResults:
    """Caches the results of a function that takes one function or one DoFn."""

    def __init__(
        self, compute: Callable[[Any], Any], key: Callable[[Any], Hashable], copied: Callable[[Any], Any]
    ) -> None:
        self.compute = compute
        self._key = key
        self._copied = copied
        self._results: dict[bool, WeakKeyDictionary[Any, Any]] = {True: WeakKeyDictionary(), False: WeakKeyDictionary()}

    def __call__(self, argument: Any) -> Any:
        # Every access creates a new bound method, which has one parameter less than its function.
        results = self._results[hasattr(argument, "__func__")]
        key = self._key(argument)
        try:
            result = results.get(key, _NEW)
        except TypeError:  # not hashable, or without weak references
            return self.compute(argument)
        if result is _NEW:
            result = self.compute(argument)
            try:
                results[key] = result
            except TypeError:
                return result
        return self._copied(result)


def _function(argument: Any) -> Any:
    return getattr(argument, "__func__", argument)


def _methods(dofn: Any) -> Any:
    """The owner of a DoFn's methods: its class, unless the DoFn has methods of its own."""
    return dofn if any(isinstance(value, MethodType) for value in vars(dofn).values()) else type(dofn)


def _itself(result: Any) -> Any:
    return result  # a truth value, a signature, or a named tuple, which Beam replaces but does not change


def _copied_lists(names_and_defaults: tuple[list[str], list[Any]]) -> tuple[list[str], list[Any]]:
    names, defaults = names_and_defaults
    return list(names), list(defaults)


def _copied_sets(specs: tuple[set[Any], set[Any]]) -> tuple[set[Any], set[Any]]:
    states, timers = specs
    return set(states), set(timers)
