"""What a plan says of the corpora that configurations search."""

from collections import Counter
from dataclasses import dataclass

from rankbeam.pipelines.experiment.corpora import Corpus
from rankbeam.pipelines.experiment.experiment import Experiment


@dataclass(frozen=True)
class CorpusPlan:
    """A corpus that configurations search.

    Attributes:
        name: under `corpora:`.
        type: its type.
        content: what it consists of, for people.
        configurations: how many search it.
    """

    name: str
    type: str
    content: str
    configurations: int

    def line(self) -> str:
        """For people."""
        verb = "configuration searches" if self.configurations == 1 else "configurations search"
        return f"corpus {self.name}: {self.content} · {self.configurations:,} {verb} it"


def corpus_plans(experiment: Experiment) -> tuple[CorpusPlan, ...]:
    """Every corpus of an experiment once, however many configurations share it."""
    of_sources = [each.retriever.corpus for each in experiment.sources]
    searched = (of_sources[each.source] for each in experiment.evaluation.configurations)
    counts: Counter[Corpus] = Counter(corpus for corpus in searched if corpus is not None)
    return tuple(_plan(corpus, count) for corpus, count in counts.items())


def _plan(corpus: Corpus, configurations: int) -> CorpusPlan:
    return CorpusPlan(corpus.name, corpus.kind, corpus.parameters.described(), configurations)
