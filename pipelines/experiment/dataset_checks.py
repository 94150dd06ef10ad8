"""Checks of the content of a dataset's files, on this machine and with little reading.

Tables of BigQuery are left to the run: reading them here would be paid for.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.template_files import TemplateFile
from rankbeam.transforms.clients.bigquery.read_source import is_table
from rankbeam.transforms.clients.formats import overlap, sources, texts
from rankbeam.transforms.records.errors import InputError, InputErrors
from rankbeam.transforms.records.slices import attributes_of
from rankbeam.transforms.records.suggestions import did_you_mean

if TYPE_CHECKING:
    from rankbeam.pipelines.experiment.experiment import Experiment


def refuse_disjoint(experiment: "Experiment") -> None:
    """Compare the judgements with the runs and the corpus: ids that never meet would score 0."""
    others = [(role, path) for role, path in experiment.compared if not is_table(path)]
    qrels = experiment.qrels
    problems = [] if qrels is None or is_table(qrels) else overlap.disjoint(qrels, others)
    if problems:
        raise InputErrors(problems)


def unknown_attributes(
    located: Located,
    slices: Sequence[str],
    templates: Mapping[TemplateFile, bool],
    queries: str | None,
    answers: str | None,
) -> Iterator[InputError]:
    """Attributes that slices or templates name and no query has."""
    sliced = {name for each in slices for name in attributes_of(each)}
    filled = {name for each in templates for name in each.attributes}
    try:
        known = attributes_in(queries, sliced | filled | ({answers} if answers else set()))
    except InputError as error:
        yield error
        return
    if known is not None and answers is not None:
        if answers not in known:
            hint = did_you_mean(answers, known) if known else "they have no attributes"
            yield located.error(("dataset", "answers"), f"no query has the attribute {answers!r}; {hint}")
        known -= {answers}
    for template, without_contexts in templates.items():
        yield from template.problems(known, without_contexts)
    if known is None:
        return
    for place, each in enumerate(slices):
        for name in attributes_of(each):
            if name not in known:
                hint = did_you_mean(name, known) if known else "they have no attributes"
                yield located.error(("slices", place), f"no query has the attribute {name!r}; {hint}")


def attributes_in(queries: str | None, wanted: Set[str]) -> set[str] | None:
    """Attributes of queries, which are read until each that is wanted was seen once."""
    known: set[str] = set()
    if queries is None or is_table(queries):
        return None
    if not wanted:
        return known
    for path in sources.expand(queries):
        for entry in texts.read_entries(path, "queries"):
            known |= entry.attributes.keys()
            if wanted <= known:
                return known
    return known
