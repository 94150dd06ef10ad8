"""The number of buckets into which a run's queries are divided.

One worker holds one bucket at a time: queries with their judgements, and every source's rankings of them. So buckets
are small, and large data have many; but since every batch is cut into one part for each bucket, there are no more than
needed.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rankbeam.transforms.clients.formats import read_ahead, sources
from rankbeam.transforms.clients.storage import files

if TYPE_CHECKING:  # files are divided before the experiment is imported
    from rankbeam.pipelines.experiment.experiment import Experiment

LEAST = 4
_GOOD_BYTES = 8 << 20  # for a bucket's largest part: then all buckets together keep several workers busy
_GOOD_TEXT_BYTES = 2 << 20  # if there are answers: all answers of a bucket are one element, which Flink must sort
_ENOUGH = 4096  # more buckets keep no more workers busy
_MOST_BYTES = 64 << 20  # for all parts of a bucket together, as in files; several times as much in memory
_QUERY_BYTES, _RESULT_BYTES, _CONTEXT_BYTES, _VALUE_BYTES = 64, 64, 4096, 32  # of one each, for estimates
_JUDGED_BYTES = 1024  # for each judged metric of an answer
_RESULTS = 1000  # results of a retriever without a limit
_METRICS = 20  # before their number is known
_DOCUMENT_BYTES = 16 << 20  # for a part of the documents: each part sends texts to each bucket of queries
_LARGE_BYTES = 16 << 20  # for files that another process starts to read: for less, its start costs more than it saves


def buckets_of(experiment: "Experiment") -> int:
    """The number of buckets for an experiment, from its files' sizes and its retrievers' expected results."""
    if (chosen := read_ahead.buckets()) is not None:
        return chosen
    sizes = {path: sources.size(path) for path in experiment.inputs()}
    queries = sizes.get(experiment.dataset.queries or "", 0) // _QUERY_BYTES
    if experiment.dataset.queries is None and experiment.dataset.qrels is not None:
        queries = queries_in(experiment.dataset.qrels)
    retrieved, values = queries * _result_bytes(experiment), queries * _score_bytes(experiment)
    has_texts = experiment.calls_models or any(source.replayed for source in experiment.evaluation.sources)
    good = _GOOD_TEXT_BYTES if has_texts else _GOOD_BYTES
    return number_of(max(retrieved, *sizes.values()), sum(sizes.values()) + retrieved + values, good)


def start_reading(qrels: str, runs: Sequence[str]) -> AbstractContextManager[object]:
    """Start to read large local files before anything else is imported, for a pipeline in the block."""
    paths = [Path(path).expanduser().absolute() for path in (qrels, *runs)]
    sizes = [path.stat().st_size for path in paths if path.is_file()]
    if len(sizes) < len(paths) or sum(sizes) < _LARGE_BYTES:
        return nullcontext()
    values = queries_in(str(paths[0])) * len(runs) * _METRICS * _VALUE_BYTES
    roles = ("qrels", *("run" for _ in runs))
    begun = dict.fromkeys((role, str(path)) for role, path in zip(roles, paths, strict=True))
    return read_ahead.reading(list(begun), number_of(max(sizes), sum(sizes) + values))


def queries_in(qrels: str) -> int:
    """Estimated number of judged queries. Lines of a query usually follow each other; if not, it is too high."""
    size = sources.size(qrels)
    path = sources.expand(qrels)[0]
    is_plain = files.is_local(path) and files.read_raw(path, 2) != b"\x1f\x8b"  # gzip: stored bytes are not of lines
    head = files.read_head(path) if is_plain else b""
    rows = [line.split() for line in head.splitlines()]
    if not rows or not all(3 <= len(row) <= 4 and not row[0].startswith(b"{") for row in rows):
        return size // _QUERY_BYTES
    return min(size // _QUERY_BYTES, size * len({row[0] for row in rows}) // len(head))


def number_of(largest: int, together: int, good: int = _GOOD_BYTES) -> int:
    """The number of buckets for the bytes of the largest input and of all inputs; a bucket suits `good` bytes.

    >>> number_of(1 << 20, 2 << 20), number_of(800 << 20, 1600 << 20), number_of(10 << 40, 20 << 40)
    (4, 100, 327680)
    """
    return max(LEAST, min(_rounded_up(largest, good), _ENOUGH), _rounded_up(together, _MOST_BYTES))


def of_documents(corpus: str | None) -> int:
    """The number of parts into which a corpus's documents are divided while texts are looked up."""
    return LEAST if corpus is None else max(LEAST, _rounded_up(sources.size(corpus), _DOCUMENT_BYTES))


def _result_bytes(experiment: "Experiment") -> int:
    """Bytes of one query's results: from all retrievers, and contexts for models."""
    sources = experiment.evaluation.sources
    results = sum(sources[place].top_k or _RESULTS for place in {*experiment.local, *experiment.remote})
    return results * _RESULT_BYTES + _contexts(experiment) * _CONTEXT_BYTES


def _contexts(experiment: "Experiment") -> int:
    """Maximum contexts of one query; a file of answers counts by its size, an application by its results."""
    if not experiment.calls_models and not experiment.rerankers:
        return 0
    return max((source.top_k or _RESULTS for source in experiment.evaluation.sources if not source.replayed), default=0)


def _score_bytes(experiment: "Experiment") -> int:
    """Bytes of one query's scores, and of the judged values of its answers."""
    evaluation = experiment.evaluation
    answer_bytes = len(evaluation.metrics) * _VALUE_BYTES + len(experiment.judged) * _JUDGED_BYTES
    return len(evaluation.configurations) * answer_bytes


def _rounded_up(whole: int, part: int) -> int:
    return -(-whole // part)
