"""The corpora of a run that still exist, for people."""

from datetime import datetime
from operator import itemgetter

from rankbeam.pipelines.results.run import Results

_RUN = "run"


def corpora_lines(results: Results) -> list[str]:
    """A line for each corpus of a service that exists after the run, and until when."""
    return [
        f"corpus  {row['name']}: {row['resource']}, {row['files']:,} files, {_until(row['expires'])}"
        for row in sorted(results.table("corpora").to_pylist(), key=itemgetter("name"))
        if row["keep"] != _RUN
    ]


def _until(expires: datetime | None) -> str:
    if expires is None:
        return "kept until you delete it: `rankbeam corpora delete`"
    return f"expires {expires:%Y-%m-%d %H:%M} UTC: `rankbeam corpora delete --expired` deletes it then"
