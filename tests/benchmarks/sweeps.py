"""Wall and CPU seconds and peak memory of a sweep on a laptop: documents cut, indexed, asked and scored in one command.

    python tests/benchmarks/sweeps.py                      six chunkings × three top_k × bm25 and lsa
    python tests/benchmarks/sweeps.py --chunkings 1,3,6    how memory grows with the number of cells
    python tests/benchmarks/sweeps.py --documents 500000 --words 90 --whole    two values of b, documents as they are

Every experiment runs twice: the second time its indexes are there. Peak memory is that of the process, with the parts
of indexes that it has mapped and read. Words are drawn by Zipf's law, lengths are lognormal, and queries are words of
the same law, so that they meet frequent and rare terms.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import yaml
from measure import measure

SEED, TERMS, EXPONENT, SPREAD = 1, 200_000, 1.15, 0.75
QUERIES, WORDS_OF_A_QUERY, JUDGED, SENTENCE = 648, 10, 3, 15
CHUNKINGS = ((64, 0), (64, 16), (128, 0), (128, 16), (256, 0), (256, 16))


def main() -> None:
    """Make the documents once, and evaluate each experiment twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=57_000)
    parser.add_argument("--words", type=int, default=130, help="of a document, on average")
    parser.add_argument("--chunkings", default=str(len(CHUNKINGS)), metavar="N,N", help="the first N of six")
    parser.add_argument("--whole", action="store_true", help="do not cut; compare two values of b")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankbeam-sweeps-") as name:
        folder = Path(name)
        make(folder, options.documents, options.words)
        for experiment in experiments(options.whole, [int(count) for count in options.chunkings.split(",")]):
            for time in ("first", "again"):
                evaluated(folder, experiment, time)


def experiments(whole: bool, chunkings: list[int]) -> Iterator[dict[str, object]]:
    """An experiment to measure; experiments of another name have indexes of their own."""
    common = {"metrics": ["nDCG@10", "R@10"], "statistics": {"replicates": 1000}}
    common["dataset"] = {"queries": "queries.jsonl", "qrels": "qrels.tsv", "corpus": "corpus.jsonl"}
    if whole:
        configuration = {"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 100}
        yield {**common, "name": "b", "configurations": [configuration], "grid": {"b": [0.4, 0.75]}}
        return
    for count in chunkings:
        corpora = {f"c{size}-{overlap}": chunks(size, overlap) for size, overlap in CHUNKINGS[:count]}
        configurations = [
            {"name": f"{kind}-{corpus}", "retriever": {"type": kind, "corpus": corpus}}
            for kind in ("bm25", "lsa")
            for corpus in corpora
        ]
        cut = {"corpora": corpora, "configurations": configurations, "grid": {"top_k": [10, 50, 100]}}
        yield {**common, "name": f"chunkings-{count}", **cut}


def chunks(size: int, overlap: int) -> dict[str, object]:
    """A corpus of chunks."""
    return {"type": "chunks", "by": "words", "chunk_size": size, "chunk_overlap": overlap}


def evaluated(folder: Path, experiment: dict[str, object], time: str) -> None:
    """Evaluate an experiment, and print what it took."""
    file = folder / f"{experiment['name']}.yaml"
    file.write_text(yaml.safe_dump({**experiment, "output": {"path": f"out-{experiment['name']}"}}))
    program = str(Path(sys.executable).with_name("rankbeam"))
    command = [program, "evaluate", str(file)]
    used = measure(command, folder / "printed")
    took = f"{used.wall_s:.1f} s, {used.cpu_s:.1f} CPU s, peak {used.peak_bytes / 1e6:,.0f} MB"
    sys.stdout.write(f"{experiment['name']}, {time}: {took}\n")
    sys.stdout.flush()


def make(folder: Path, documents: int, words: int) -> None:
    """Write documents, queries and judgements."""
    draw = np.random.default_rng(SEED)
    terms = [
        f"{''.join(chr(97 + number // 26**place % 26) for place in range(4))}{number % 97}" for number in range(TERMS)
    ]

    def text(length: int) -> str:
        words = [terms[place] for place in draw.zipf(EXPONENT, length) % TERMS]
        words[SENTENCE - 1 :: SENTENCE] = [f"{word}." for word in words[SENTENCE - 1 :: SENTENCE]]
        return " ".join(words)

    lengths = draw.lognormal(np.log(words) - SPREAD**2 / 2, SPREAD, documents).astype(int).clip(5, 2000)
    with (folder / "corpus.jsonl").open("w") as file:
        for number, length in enumerate(lengths.tolist()):
            file.write(json.dumps({"_id": f"d{number}", "text": text(length)}) + "\n")
    with (folder / "queries.jsonl").open("w") as file, (folder / "qrels.tsv").open("w") as judged:
        judged.write("query-id\tcorpus-id\tscore\n")
        for number in range(QUERIES):
            file.write(json.dumps({"_id": f"q{number}", "text": text(WORDS_OF_A_QUERY)}) + "\n")
            for document in np.unique(draw.integers(0, documents, JUDGED)).tolist():
                judged.write(f"q{number}\td{document}\t1\n")


if __name__ == "__main__":
    main()
