"""CPU seconds per MB of text of rankbeam's chunkers, and of other libraries' on the same texts, as ratios.

    PEERS_PYTHON=.venv-peers/bin/python .venv/bin/python tests/benchmarks/chunkers.py [--megabytes 2]

The texts are the demo's articles in pieces of 20,000 characters. Chunks have at most 512 characters, or 128 words where
a chunker counts words; they repeat 64 characters, or 16 words, of the one before. Each figure is the least of three.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools import PEERS, PEERS_PYTHON

DEMO = Path(__file__).parents[2] / "examples" / "helpdesk" / "corpus.jsonl"
PIECE, ROUNDS = 20_000, 3
LIMIT = 5.0
"""The most that `recursive` may take, as a multiple of the slowest library's."""
Cut = Callable[[str], Sequence[object]]


def texts(megabytes: float) -> list[str]:
    """Texts of some megabytes together."""
    articles = "\n\n".join(json.loads(line)["text"] for line in DEMO.read_text(encoding="utf-8").splitlines())
    characters = int(megabytes * 1e6)
    whole = articles * (characters // len(articles) + 1)
    return [whole[start : start + PIECE] for start in range(0, characters, PIECE)]


def measured(cutters: Mapping[str, Cut], pieces: Sequence[str]) -> dict[str, tuple[float, int]]:
    """CPU seconds per MB, and the number of chunks, of each way to cut."""
    megabytes = sum(len(piece.encode()) for piece in pieces) / 1e6
    figures = {}
    for name, cut in cutters.items():
        seconds = []
        for _ in range(ROUNDS):
            begun = time.process_time()
            chunks = sum(len(cut(piece)) for piece in pieces)
            seconds.append(time.process_time() - begun)
        figures[name] = min(seconds) / megabytes, chunks
    return figures


def _own() -> dict[str, Cut]:
    from rankbeam.transforms.kernels.chunks import CHUNKERS, chunk_spans

    scales = {"characters": 4}
    cutters: dict[str, Cut] = {}
    for by in CHUNKERS:
        size, overlap = 128 * scales.get(by, 1), 16 * scales.get(by, 1)
        for label, options in (("", {}), (", intact", {"intact": True})):
            cutters[f"{by}{label}"] = lambda text, by=by, size=size, overlap=overlap, options=options: chunk_spans(
                text, by, size, overlap, **options
            )
    return cutters


def _peers(megabytes: float) -> dict[str, tuple[float, int]]:
    command = [PEERS_PYTHON, str(PEERS / "with_chunkers.py"), str(megabytes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {name: (seconds, chunks) for name, (seconds, chunks) in json.loads(done.stdout).items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=2.0)
    megabytes = parser.parse_args().megabytes
    own, peers = measured(_own(), texts(megabytes)), _peers(megabytes)
    slowest = max(seconds for seconds, _ in peers.values())
    lines = ["| chunker | CPU s per MB | of the slowest library | chunks |", "|---|---|---|---|"]
    for name, (seconds, chunks) in {**peers, **own}.items():
        lines.append(f"| {name} | {seconds:.3f} | {seconds / slowest:.2f} | {chunks:,} |")
    sys.stdout.write("\n".join([*lines, ""]))
    if own["recursive"][0] > LIMIT * slowest:
        sys.exit(f"recursive takes more than {LIMIT} times the slowest library's time")


if __name__ == "__main__":
    main()
