"""The HTML report: one self-contained file about a run, for people who decide between configurations."""

import os
import uuid
from pathlib import Path

from pipelines.results import Results
from transforms.clients import files
from transforms.records.errors import InputError

FILE_NAME = "report.html"


def build(results: Results) -> str:
    """The report of a finished run: a page of HTML that needs no other file and no network."""
    from pipelines.report.page import render  # Jinja is imported where a report is made, and nowhere else

    return render(results)


def write(results: Results, path: str | None = None) -> str:
    """Write the report of a finished run; returns its path.

    The file is complete or not there: it is built beside and then put in place.

    Args:
        results: the run.
        path: of the file, on any filesystem; by default `report.html` in the run's output folder.

    Raises:
        InputError: it cannot be written.
    """
    place = files.join(results.output, FILE_NAME) if path is None else path
    content = build(results).encode()
    if not files.is_local(place):  # an object appears when it is complete
        files.write(place, content)
        return place
    beside = f"{place}.{uuid.uuid4().hex}.part"
    try:
        files.write(beside, content)
        os.replace(beside, place)  # noqa: PTH105  both are text here
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", path=place) from error
    finally:
        Path(beside).unlink(missing_ok=True)
    return place
