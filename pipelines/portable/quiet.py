"""Silence what Beam prints while a job server works: its log, and its tracebacks of workers in this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from apache_beam.runners.worker import log_handler, sdk_worker

from rankbeam.pipelines.local.runner import quiet_beam


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Beam: errors come back with the job, and rankbeam reports them.

    Beam's workers print every traceback, besides returning it; a name in their module hides Python's `print` from them.
    """
    modules = [vars(log_handler), vars(sdk_worker)]
    for names in modules:
        names["print"] = lambda *_, **__: None
    try:
        with quiet_beam():
            yield
    finally:
        for names in modules:
            names.pop("print", None)
