"""The rows of the table `monitor`, beside the other tables of the run."""

from rankbeam.pipelines.monitor.changes import Monitored
from rankbeam.pipelines.monitor.show import Tolerances, as_rows
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.write.tables import write_alone


def store(result: Monitored, tolerances: Tolerances) -> None:
    """Write the rows."""
    run, output = result.run, result.run.output
    execution = Run(run.run_id, run.experiment, run.execution[1], run.run["experiment_yaml"])
    write_alone("monitor", output, execution, as_rows(result.changes, tolerances))


def rebuild(output: str) -> None:
    """Rebuild the DuckDB file where there is one."""
    if files.exists(files.join(output, warehouse.FILE_NAME)):
        warehouse.refuse_foreign(output)
        warehouse.build(output)
