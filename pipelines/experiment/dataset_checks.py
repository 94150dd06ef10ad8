"""What is wrong with the content of a dataset's files, found on this machine with little reading.

Tables of BigQuery are left to the run: reading them here would be paid for.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.transforms.clients.bigquery.read_source import is_table
from rankbeam.transforms.clients.formats import overlap, texts
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError, InputErrors
from rankbeam.transforms.records.slices import attributes_of
from rankbeam.transforms.records.suggestions import did_you_mean

if TYPE_CHECKING:
    from rankbeam.pipelines.experiment.experiment import Experiment


def refuse_disjoint(experiment: "Experiment") -> None:
    """Compare the judgements with the runs and the corpus: ids that never meet would score 0.

    Raises:
        InputErrors: some file shares no query, or no document, with the judgements.
    """
    others = [(role, path) for role, path in experiment.compared if not is_table(path)]
    problems = [] if is_table(experiment.qrels) else overlap.disjoint(experiment.qrels, others)
    if problems:
        raise InputErrors(problems)


def unknown_slices(located: Located, slices: Sequence[str], queries: str | None) -> Iterator[InputError]:
    """Slices by an attribute that no query has; queries are read until each attribute was seen once.

    Args:
        located: the experiment, for messages.
        slices: attributes, or crossings of them.
        queries: path of the queries; None where none are given, which is another problem.
    """
    pending = {name for each in slices for name in attributes_of(each)}
    if not pending or queries is None or is_table(queries):
        return
    known: set[str] = set()
    try:
        for path in files.expand(queries):
            for entry in texts.read_entries(path, "queries"):
                known |= entry.attributes.keys()
                if pending <= known:
                    return
    except InputError as error:
        yield error
        return
    for place, each in enumerate(slices):
        for name in attributes_of(each):
            if name not in known:
                hint = did_you_mean(name, known) if known else "they have no attributes"
                yield located.error(("slices", place), f"no query has the attribute {name!r}; {hint}")
