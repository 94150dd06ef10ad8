"""The HTML report: one self-contained file about a run, for people who decide between configurations."""

from typing import TYPE_CHECKING

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

if TYPE_CHECKING:
    from rankbeam.pipelines.report.compare import ComparisonSection

FILE_NAME = "report.html"

_MARK, _HEAD_BYTES = b"rankbeam report</title>", 1 << 12


def build(results: Results, against: "ComparisonSection | None" = None) -> str:
    """The report of a finished run: one HTML page that needs no other file and no network."""
    from rankbeam.pipelines.report.page import render  # only reports need Jinja

    return render(results, against)


def refuse_foreign(output: str) -> None:
    """Refuse to replace a file that is not an earlier report in an output folder."""
    place = files.join(output, FILE_NAME)
    if files.exists(place) and _MARK not in files.read_head(place, _HEAD_BYTES):
        raise InputError(
            "was not made by rankbeam and would be overwritten; move it, or choose another place", path=place
        )


def write(results: Results, path: str | None = None, against: "ComparisonSection | None" = None) -> str:
    """Write the report of a finished run; return its path."""
    place = files.join(results.output, FILE_NAME) if path is None else path
    if path is None:
        refuse_foreign(results.output)
    files.write(place, build(results, against).encode())
    return place
