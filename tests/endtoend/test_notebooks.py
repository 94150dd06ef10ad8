"""The Python API inside IPython and notebooks, where Beam would import its interactive runner."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.processes import run

JUPYTER = REPOSITORY / ".venv-notebooks"
needs_jupyter = pytest.mark.skipif(
    not (JUPYTER / ".installed").exists(),
    reason="Jupyter's kernel is not in .venv-notebooks; `make notebooks` installs it",
)
QRELS = {"q1": {"a": 1}, "q2": {"b": 1}}
RUN = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 1.0}}
OTHER = {"q1": {"b": 1.0}}
SCORE = f"import rankbeam\nresult = rankbeam.score({QRELS}, {{'x': {RUN}, 'y<b>': {OTHER}}}, ['nDCG@10'])"
IN_IPYTHON = f"""
import sys, types
shell = types.SimpleNamespace(config={{"IPKernelApp": {{}}}}, execution_count=1)
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
sys.modules["pandas"] = None  # as where it is not installed
from apache_beam import pipeline
usual = pipeline.is_in_ipython
{SCORE}
assert not any(name.startswith("apache_beam.runners.interactive") for name in sys.modules)
assert pipeline.is_in_ipython is usual and usual()
print(result.leaderboard()["nDCG@10"].to_pylist())
"""
AS_DATA_FRAMES = """
import pandas
board = result.leaderboard().to_pandas()
run = pandas.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["a", "b"], "score": [1.0, 1.0]})
again = rankbeam.score({"q1": {"a": 1}, "q2": {"b": 1}}, {"run": run}, ["RR"])
if pandas.__version__ >= "3":
    import polars
    assert polars.from_arrow(result.leaderboard())["configuration"].to_list() == ["x", "y<b>"]
print(pandas.__version__.split(".")[0], type(board).__module__.split(".")[0], again.leaderboard()["RR"].to_pylist())
"""
WITHOUT_PANDAS = "import importlib.util\nprint(importlib.util.find_spec('pandas'))"
REFUSED = """
try:
    rankbeam.score({'q1': {'a': 1}}, {'x': {'q1': {'a': 1.0}}}, ['nDGC'])
except rankbeam.InputError:
    get_ipython().showtraceback()
"""


def test_in_ipython_without_pandas_beam_imports_no_interactive_runner(tmp_path: Path) -> None:
    done = run(IN_IPYTHON, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "[0.5, 0.0]\n"), done.stderr


@pytest.mark.long
@needs_jupyter
@pytest.mark.parametrize("pandas", ["", *in_campaigns("2", "3")])
def test_a_notebook_shows_results_with_any_pandas_and_without_a_network(tmp_path: Path, pandas: str) -> None:
    codes = [
        SCORE,
        "result",
        "result.comparisons()",
        AS_DATA_FRAMES if pandas else WITHOUT_PANDAS,
        "result.warnings",
        REFUSED,
    ]
    cells = executed(notebook_of(tmp_path, codes), pandas)
    scored, shown, table, last, _, refused = (cell["outputs"] for cell in cells)
    assert [output["output_type"] for output in scored] == ["display_data"]  # the progress, and nothing on stderr
    assert re.match(
        r'<progress max="1" value="1" aria-label="progress"></progress><div .*>scored 4/4 ', html(scored[0])
    )
    page = html(shown[0])
    assert page.count("<table>") == 2
    assert page.count("<svg ") == 2 * 2 + 1
    assert "y&lt;b&gt;" in page
    assert "pyarrow.Table" in table[0]["data"]["text/plain"]
    assert last[-1]["text"] == (f"{pandas} pandas [1.0]\n" if pandas else "None\n")
    (refusal,) = (output for output in refused if output["output_type"] == "error")
    assert refusal["traceback"] == ["InputErrors: unknown metric 'nDGC'; did you mean 'nDCG'?"]  # without our frames
    assert not re.search(r"jquery|<script|https?://", json.dumps(cells), flags=re.IGNORECASE)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The notebook of the examples, beside what it reads."""
    for name in ("notebook", "helpdesk", "trec_runs"):
        shutil.copytree(REPOSITORY / "examples" / name, tmp_path / name, ignore=shutil.ignore_patterns("out"))
    return tmp_path / "notebook" / "first_results.ipynb"


def assert_decides(pages: list[str], notebook: Path) -> None:
    """The results on these pages are those of the example, and its last run has a report."""
    decisions = [re.findall(r"<p><strong>(.*?)</strong>", page)[0] for page in pages]
    assert [decision.partition(":")[0] for decision in decisions] == [
        "stemmed is better than exact_words",
        "No decision is possible yet",
        "stems is better than words",
    ]
    assert (notebook.parent / "out" / "stemming" / "report.html").exists()


@pytest.mark.long
def test_the_cells_of_the_example_run(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Jupyter, which shows the value of the last line of a cell."""
    monkeypatch.chdir(example.parent)
    names: dict[str, Any] = {}
    pages = []
    for cell in json.loads(example.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            *before, last = ast.parse("".join(cell["source"])).body
            assert isinstance(last, ast.Expr)
            exec(compile(ast.Module(before, []), "cell", "exec"), names)  # noqa: S102  it is the repository's own
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307  as above
            pages += [shown._repr_html_()] if hasattr(shown, "_repr_html_") else []
    assert_decides([page for page in pages if "</table>" in page], example)


@needs_jupyter
@pytest.mark.campaign
@pytest.mark.parametrize("pandas", ["", "2", "3"])
def test_the_example_notebook_runs(example: Path, pandas: str) -> None:
    cells = executed(example, pandas)
    outputs = [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]
    assert_decides([html(output) for output in outputs if "</table>" in html(output)], example)
    assert not [output for output in outputs if output["output_type"] in ("error", "stream")]


def notebook_of(folder: Path, codes: list[str]) -> Path:
    """A notebook with cells of code."""
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**cell, "id": f"cell-{place}", "source": code} for place, code in enumerate(codes)]
    path = folder / "notebook.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    return path


def executed(notebook: Path, pandas: str = "") -> list[dict[str, Any]]:
    """The cells of a notebook after its execution beside a version of pandas, or beside none."""
    beside = [JUPYTER / f"pandas{pandas}"] if pandas else []
    places = [*beside, REPOSITORY, *(path for path in sys.path if path.endswith("site-packages"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places)), "IPYTHONDIR": str(notebook.parent)}
    command = [JUPYTER / "bin" / "python", REPOSITORY / "tests" / "support" / "notebooks" / "execute.py", notebook]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cells: list[dict[str, Any]] = json.loads(done.stdout)
    return cells


def html(output: dict[str, Any]) -> str:
    """The HTML of an output; "" where it has none."""
    return str(output.get("data", {}).get("text/html", ""))
