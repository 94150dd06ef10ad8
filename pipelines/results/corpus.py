"""The texts of the corpus that a run searched."""

from collections.abc import Iterator

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats import sources, texts


def corpus_texts(run: Results) -> Iterator[tuple[str, str]]:
    """The documents of the run's corpus with their texts, titles included; none without a corpus."""
    corpus = run.run["versions"].get("dataset.corpus")
    for part in [] if corpus is None else sources.expand(corpus):
        for entry in texts.read_entries(part, "corpus"):
            yield entry.id, "\n".join(filter(None, [entry.title, entry.text]))
