"""Habits of Beam that are a tenth of a small run, and cost less in tests; what it computes stays the same.

They are how it packs what it pickles, which is mostly what an earlier run has packed too, how it lists its options,
that it notes for each type hint where it was written, that it looks through all modules when it estimates the size of
a side input, that it pickles every function when a step gets it as well as when the pipeline is packed, and that each
step reports its times and elements beside the counters of the code under test.
"""

import bz2
import sys
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from rankbeam.pipelines.local import overheads


def make_cheap() -> None:
    """Let Beam spend less on them, and on signatures, from now on, if this process has imported it."""
    if "apache_beam.runners.common" not in sys.modules:
        return
    from apache_beam.internal import cloudpickle_pickler, pickler
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.worker import statecache
    from apache_beam.runners.worker.bundle_processor import BundleProcessor
    from apache_beam.typehints.decorators import IOTypeHints

    overheads.remember_signatures()
    cloudpickle_pickler.bz2 = SimpleNamespace(compress=_packed_fast, decompress=_unpacked)
    pickler.roundtrip = lambda function: function
    PipelineOptions._visible_option_list = lambda options: sorted(vars(options._visible_options))
    IOTypeHints._make_origin = lambda *_, **__: []
    statecache.get_deep_size = lambda *objects: sum(map(sys.getsizeof, objects))
    BundleProcessor.monitoring_infos = _counters


def _counters(processor: Any) -> list[Any]:
    steps = processor.ops.items()
    return [info for name, step in steps for info in step.user_monitoring_infos(name).values()]


@lru_cache(2048)
def _packed_fast(content: bytes, compresslevel: int) -> bytes:
    """Pickles of a few kilobytes, in one small block instead of one of the size that is asked for."""
    return bz2.compress(content, min(compresslevel, 1))


_unpacked = lru_cache(2048)(bz2.decompress)
