"""The Python API inside IPython and notebooks, where Beam would import its interactive runner."""

import json
from pathlib import Path

import pytest
from support.processes import run

QRELS = {"q1": {"a": 1}, "q2": {"b": 1}}
RUN = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 1.0}}
SCORE = f"import rankbeam\nresult = rankbeam.score({QRELS}, {{'x': {RUN}}}, ['nDCG@10'])"
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


def test_in_ipython_without_pandas_beam_imports_no_interactive_runner(tmp_path: Path) -> None:
    done = run(IN_IPYTHON, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "[0.5]\n"), done.stderr


def test_a_notebook_shows_a_result_as_a_table_and_loads_nothing_from_a_server(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient, nbformat and ipykernel are not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbclient, nbformat and ipykernel are not installed")
    pytest.importorskip("ipykernel", reason="nbclient, nbformat and ipykernel are not installed")
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(code) for code in (SCORE, "result", "result.leaderboard()")]
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    scored, shown, table = notebook.cells
    assert scored.outputs == []
    (output,) = shown.outputs
    assert "<table><caption>" in output.data["text/html"]
    assert "nDCG@10" in table.outputs[0].data["text/plain"]
    assert "jquery" not in json.dumps(notebook).lower()
