"""CPU seconds and peak memory of dense retrieval on one machine: embedding documents, and searching their vectors.

    python tests/benchmarks/dense.py embed --corpus corpus.jsonl --documents 5700 --words 130
    python tests/benchmarks/dense.py search --vectors 1000000 --width 384 --queries 200

`embed` evaluates an experiment with a model of type onnx twice; the second time, the vectors of documents are there.
Documents are stretches of the words of a corpus. `search` compares rankbeam's exact search with plain NumPy, each in a
process of its own, over vectors in a file; the ten best must agree.
"""

import argparse
import json
import sys
import tempfile
from itertools import chain, islice
from pathlib import Path

import numpy as np
import yaml
from measure import Usage, measure

TOP, QUERIES_AT_ONCE = 10, 50
PLAIN, OWN = "plain NumPy", "rankbeam"


def main() -> None:
    """Measure embedding or search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    embed = parts.add_parser("embed")
    embed.add_argument("--corpus", required=True, help="JSON lines with text")
    embed.add_argument("--documents", type=int, default=5_700)
    embed.add_argument("--words", type=int, default=130, help="of a document")
    embed.add_argument("--model", default="all-minilm-l6-v2-q")
    search = parts.add_parser("search")
    search.add_argument("--vectors", type=int, default=1_000_000)
    search.add_argument("--width", type=int, default=384)
    search.add_argument("--queries", type=int, default=200)
    one = parts.add_parser("one")
    one.add_argument("folder", type=Path)
    one.add_argument("way", choices=[PLAIN, OWN, "nothing"])
    options = parser.parse_args()
    if options.part == "one":
        search_one_way(options.folder, options.way)
        return
    with tempfile.TemporaryDirectory(prefix="rankbeam-dense-") as name:
        embedding(Path(name), options) if options.part == "embed" else searching(Path(name), options)


def embedding(folder: Path, options: argparse.Namespace) -> None:
    """Write documents, and evaluate them twice."""
    with Path(options.corpus).open(encoding="utf-8") as file:
        words = list(chain.from_iterable(json.loads(line)["text"].split() for line in file))
    around = chain.from_iterable(words[start:] + words[:start] for start in range(0, len(words), 7))
    with (folder / "corpus.jsonl").open("w") as file:
        for number in range(options.documents):
            text = " ".join(islice(around, options.words))
            file.write(json.dumps({"_id": f"d{number}", "text": text}) + "\n")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": " ".join(words[:10])}) + "\n")
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n")
    experiment = {
        "name": "dense",
        "dataset": {"queries": "queries.jsonl", "qrels": "qrels.tsv", "corpus": "corpus.jsonl"},
        "services": {"model": {"type": "onnx", "model": options.model, "max_tokens": 256}},
        "configurations": [{"name": "dense", "retriever": {"type": "dense", "embedding_model": "model"}}],
        "metrics": ["nDCG@10"],
        "output": {"path": "out"},
    }
    (folder / "dense.yaml").write_text(yaml.safe_dump(experiment))
    command = [str(Path(sys.executable).with_name("rankbeam")), "evaluate", str(folder / "dense.yaml")]
    for time in ("first", "again"):
        used = measure(command, folder / "printed")
        say(f"{options.documents:,} documents of {options.words} words, {time}", used, options.documents, "document")


def searching(folder: Path, options: argparse.Namespace) -> None:
    """Write vectors and queries, and search them in either way."""
    draw = np.random.default_rng(1)
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (options.vectors, options.width))
    for first in range(0, options.vectors, 10_000):
        some = vectors[first : first + 10_000]
        some[:] = draw.standard_normal(some.shape, np.float32)
        some /= np.linalg.norm(some, axis=1, keepdims=True)
    vectors.flush()
    queries = draw.standard_normal((options.queries, options.width), np.float32)
    np.save(folder / "queries.npy", queries / np.linalg.norm(queries, axis=1, keepdims=True))
    best = {}
    for way in ("nothing", PLAIN, OWN):
        used = measure([sys.executable, __file__, "one", str(folder), way], folder / way)
        say(
            f"{options.queries:,} queries, {options.vectors:,} × {options.width}, {way}", used, options.queries, "query"
        )
        best[way] = json.loads((folder / way).read_text() or "[]")
    equal = np.mean([one == other for one, other in zip(best[PLAIN], best[OWN], strict=True)])
    sys.stdout.write(f"the first {TOP} are equal for {equal:.1%} of the queries\n")


def search_one_way(folder: Path, way: str) -> None:
    """Search in this process, some queries at a time as a bucket has them, and print the best."""
    from rankbeam.transforms.kernels.search.nearest import nearest

    vectors, queries = np.load(folder / "vectors.npy", mmap_mode="r"), np.load(folder / "queries.npy")
    best: list[list[int]] = []
    for first in range(0, len(queries) if way != "nothing" else 0, QUERIES_AT_ONCE):
        some = queries[first : first + QUERIES_AT_ONCE]
        if way == OWN:
            best += [places.tolist() for places, _ in nearest(vectors, some, TOP)]
            continue
        products = some @ vectors.T
        top = np.argpartition(-products, TOP, axis=1)[:, :TOP]
        order = np.argsort(-np.take_along_axis(products, top, axis=1), axis=1)
        best += np.take_along_axis(top, order, axis=1).tolist()
    sys.stdout.write(json.dumps(best))


def say(what: str, used: Usage, count: int, one: str) -> None:
    """Print what something took."""
    share = f"{used.cpu_s / count * 1000:.1f} ms of CPU a {one}"
    took = f"{used.wall_s:.1f} s, {used.cpu_s:.1f} CPU s, peak {used.peak_bytes / 1e6:,.0f} MB"
    sys.stdout.write(f"{what}: {took}; {share}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
