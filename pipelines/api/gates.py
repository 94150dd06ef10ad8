"""Gates in tests: a result that misses one raises an AssertionError that shows all of them."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rankbeam.pipelines.api.result import Result
from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.gates import checks as gate_checks
from rankbeam.pipelines.gates.gates import located_gates, read_gates
from rankbeam.pipelines.gates.show import as_text, summary

Gates = Sequence[Mapping[str, Any]] | str | os.PathLike[str]


def assert_gates(result: Result, gates: Gates | None = None, *, baseline: Result | None = None) -> None:
    """See `rankbeam.testing.assert_gates`."""
    other = None if baseline is None else baseline.results
    if gates is None:
        located = result.results.given
    elif isinstance(gates, str | os.PathLike):
        located = read_gates(os.fspath(gates))
    else:
        located = Located("gates", {"gates": [dict(gate) for gate in gates]}, {}, ())
    known = gate_checks.known_of(result.results, other)
    checks = gate_checks.check(result.results, located_gates(located, known), other)
    if not all(check.is_met for check in checks):
        raise AssertionError(f"{summary(checks)}\n{as_text(checks)}")
