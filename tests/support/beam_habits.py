"""Habits of Beam that are a tenth of a small run, and cost less in tests; what it computes stays the same.

They are how it packs what it pickles, how it lists its options, that it notes for each type hint where it was
written, that it looks through all modules when it estimates the size of a side input, and that it pickles every
function when a step gets it and when a worker has unpacked it as well as when the pipeline is packed.
"""

import bz2
import sys
import zlib
from functools import wraps
from threading import local
from types import SimpleNamespace
from typing import Any, NamedTuple

from rankbeam.pipelines.local import overheads


def make_cheap() -> None:
    """Let Beam spend less on them, and on signatures, from now on, if this process has imported it."""
    if "apache_beam.runners.common" not in sys.modules:
        return
    from apache_beam.internal import cloudpickle_pickler, pickler
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.pipeline import Pipeline
    from apache_beam.runners.worker import bundle_processor, operations, statecache
    from apache_beam.typehints.decorators import IOTypeHints

    overheads.remember_signatures()
    cloudpickle_pickler.bz2 = SimpleNamespace(compress=_packed_fast, decompress=_unpacked)
    if not hasattr(Pipeline.__init__, "__wrapped__"):
        Pipeline.__init__ = _noting_its_workers(Pipeline.__init__)
    bundle_processor.pickler = SimpleNamespace(dumps=_Contents, loads=_contents)
    operations.pickler = SimpleNamespace(loads=_contents)
    pickler.roundtrip = lambda function: function
    PipelineOptions._visible_option_list = lambda options: sorted(vars(options._visible_options))
    IOTypeHints._make_origin = lambda *_, **__: []
    statecache.get_deep_size = lambda *objects: sum(map(sys.getsizeof, objects))


_packing = local()


def _noting_its_workers(begin: Any) -> Any:
    """Note of each pipeline whether its workers are threads of this process, so that no other has to unpack it."""
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    from apache_beam.transforms.environments import EmbeddedPythonEnvironment

    @wraps(begin)
    def begin_and_note(pipeline: Any, *arguments: Any, **more: Any) -> None:
        begin(pipeline, *arguments, **more)
        workers = getattr(pipeline.runner, "_default_environment", None)
        _packing.for_this_process = type(pipeline.runner) is FnApiRunner and type(workers) is EmbeddedPythonEnvironment

    return begin_and_note


def _packed_fast(content: bytes, compresslevel: int) -> bytes:
    """Pickles of a few kilobytes: with zlib, or for other processes in one small block instead of a large one."""
    if getattr(_packing, "for_this_process", False):
        return zlib.compress(content, 1)
    return bz2.compress(content, min(compresslevel, 1))


def _unpacked(packed: bytes) -> bytes:
    return bz2.decompress(packed) if packed.startswith(b"BZh") else zlib.decompress(packed)


class _Contents(NamedTuple):
    """A function and its arguments, on their way from a worker to the one step that it builds of them."""

    of_step: Any


def _contents(packed: Any) -> Any:
    from apache_beam.internal import pickler

    return packed.of_step if isinstance(packed, _Contents) else pickler.loads(packed)
