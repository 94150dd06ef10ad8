"""Run the bundled example on a Flink cluster of this machine, show its leaderboard, and stop the cluster."""

import subprocess
import sys
import tempfile
from pathlib import Path

from support.flink import cluster, missing_flink

REPOSITORY = Path(__file__).parents[3]
EXPERIMENT, OUTPUT = REPOSITORY / "examples" / "helpdesk" / "experiment.yaml", REPOSITORY / "out" / "flink"


def main() -> int:
    """Run the example; returns its exit status."""
    if (reason := missing_flink()) is not None:
        print(reason, file=sys.stderr)  # noqa: T201  a command
        return 1
    with tempfile.TemporaryDirectory(prefix="rankbeam-flink-") as folder, cluster(Path(folder)) as running:
        print(f"Flink's dashboard is at http://{running.address} until the run ends", file=sys.stderr)  # noqa: T201
        command = [sys.executable, "-m", "rankbeam", "evaluate", str(EXPERIMENT), "--output", str(OUTPUT)]
        return subprocess.run([*command, *running.options(external=True)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
