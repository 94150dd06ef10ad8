"""A run whose tables are exported, and readers of Markdown and LaTeX."""

import itertools
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.runs import run_experiment

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records import tables

QUERIES = 40
METRICS = ["RR@10", "nDCG@10", "R@10"]
SPECIALS = "\\`*_{}[]()<>|~&$%#^\"'-+!.:=@ \n\t\x1b\u202e"
Row = dict[str, Any]

# The rank of the only relevant document: one system is far behind, two differ here and there and by chance.
RANKS: dict[str, Callable[[int], int]] = {
    "weak": lambda query: 4 + query % 3,
    "strong": lambda query: 2 if query % 8 == 0 else 1,
    "twin": lambda query: 2 if query % 8 == 4 or query == 5 else 1,
}


def evaluated(folder: Path, names: Sequence[str] = tuple(RANKS), depth: int = 7, **more: Any) -> Results:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "qrels.txt").write_text("".join(f"q{query} 0 right 1\n" for query in range(QUERIES)))
    for name in names:
        rows = []
        for query in range(QUERIES):
            labels = ["right" if rank == RANKS[name](query) else f"wrong{rank}" for rank in range(1, depth + 1)]
            rows += [f"q{query} Q0 {doc} {rank} {1 / rank} t\n" for rank, doc in enumerate(labels, 1)]
        (folder / f"{name}.run").write_text("".join(rows))
    configurations = [{"name": name, "retriever": {"type": "run_file", "path": f"{name}.run"}} for name in names]
    base = {"dataset": {"qrels": "qrels.txt"}, "configurations": configurations, "metrics": METRICS}
    return run_experiment(folder, base | more)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return evaluated(tmp_path_factory.mktemp("finished"), baseline="twin")


@pytest.fixture
def results(finished: Results, tmp_path: Path) -> Results:
    """A copy, to be rewritten."""
    shutil.copytree(finished.output, tmp_path / "copy")
    return Results(str(tmp_path / "copy"), finished.run_id)


def rewritten(results: Results, name: str, rows: Sequence[Row]) -> Results:
    """A run with other rows in one of its tables."""
    first, *others = sorted(Path(results.output, name, results.run_id).glob("*.parquet"))
    for path in others:
        path.unlink()
    pq.write_table(pa.Table.from_pylist(list(rows), tables.TABLES[name]), first)
    return Results(results.output, results.run_id)


def markdown_tables(document: str) -> list[list[list[ElementTree.Element]]]:
    """The cells of every table, as an independent reader of Markdown understands them."""
    html = MarkdownIt("commonmark").enable("table").enable("strikethrough").render(document)
    root = ElementTree.fromstring(f"<all>{html}</all>")  # noqa: S314  we made it
    return [[list(row) for row in table.iter("tr")] for table in root.iter("table")]


def text_of(cell: ElementTree.Element) -> str:
    return "".join(cell.itertext())


def latex_rows(document: str) -> list[list[str]]:
    body = document.split("\\midrule\n")[1].split("\\bottomrule")[0]
    return [re.split(r" (?<!\\)& ", line.removesuffix(" \\\\")) for line in body.splitlines()]


def check_latex(document: str) -> None:
    """Braces and environments are balanced, and every row has as many cells as there are columns."""
    code = re.sub(r"(?<!\\)%.*", "", document)
    depth = list(itertools.accumulate(1 if character == "{" else -1 for character in re.findall(r"(?<!\\)[{}]", code)))
    assert min(depth) >= 0
    assert depth[-1] == 0
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", code):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", code)
    assert columns is not None
    assert {len(row) for row in latex_rows(document)} == {len(columns[1])}
    rules = ["\\toprule", "\\midrule", "\\bottomrule"]
    assert re.findall(r"\\\w+rule", code) == rules


names = st.text(st.one_of(st.sampled_from(SPECIALS), st.characters(codec="utf-8")), min_size=1, max_size=12)
