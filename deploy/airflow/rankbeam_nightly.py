"""A night of an experiment for Cloud Composer or another Airflow: evaluate it, then look at its gates and its changes.

Copy this file into the folder of DAGs, and set these variables of Airflow:

    rankbeam_experiment  gs://my-project-rankbeam/experiments/helpdesk/experiment.yaml
    rankbeam_output      gs://my-project-rankbeam/results/helpdesk
    rankbeam_options     --runner DataflowRunner --project my-project --region us-central1 --wait
                         --temp_location gs://my-project-rankbeam/temp
                         --service_account_email rankbeam-worker@my-project.iam.gserviceaccount.com
                         --sdk_container_image us-central1-docker.pkg.dev/my-project/rankbeam/rankbeam:latest
    rankbeam_command     rankbeam

rankbeam needs other versions of packages than Airflow, so install it into an environment of its own on the workers of
Airflow, and let `rankbeam_command` name its program. Nothing is imported from it here.
"""

from datetime import UTC, datetime, timedelta

from airflow import DAG

try:
    from airflow.providers.standard.operators.bash import BashOperator  # Airflow 3
except ImportError:
    from airflow.operators.bash import BashOperator  # Airflow 2

ENVIRONMENT = {
    "EXPERIMENT": "{{ var.value.rankbeam_experiment }}",
    "OUTPUT": "{{ var.value.rankbeam_output }}",
    "OPTIONS": "{{ var.value.get('rankbeam_options', '') }}",
    "RANKBEAM": "{{ var.value.get('rankbeam_command', 'rankbeam') }}",
    # Of the night, not of the attempt: a retry, or a night that is cleared and run again, replaces its rows.
    # In Airflow 3, a manual run may have no logical date.
    "RUN_ID": "{{ dag.dag_id }}-{{ (dag_run.logical_date or dag_run.run_after).strftime('%Y%m%dT%H%M%S') }}",
}
MISSED = 3  # exit status of a run that missed a gate, failed too often or reached max_cost: its results are complete

with DAG(
    "rankbeam_nightly",
    description="Evaluates an experiment, and fails if it misses a gate or a metric has fallen",
    schedule="0 3 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # two runs would wait for each other's quota
    default_args={"retries": 0},
    tags=["rankbeam"],
):

    def command(name: str, line: str, **more: object) -> BashOperator:
        """A task that runs a command; variables are those of its environment, so nothing is quoted twice."""
        return BashOperator(task_id=name, bash_command=line, env=ENVIRONMENT, append_env=True, **more)

    # A second attempt pays for nothing that the first one had: its answers are in the ledger.
    evaluate = command(
        "evaluate",
        f'"$RANKBEAM" evaluate "$EXPERIMENT" --output "$OUTPUT" --run-id "$RUN_ID" $OPTIONS || [ $? -eq {MISSED} ]',
        retries=2,
        retry_delay=timedelta(minutes=10),
        execution_timeout=timedelta(hours=20),
    )
    gate = command("gate", '"$RANKBEAM" gate "$OUTPUT" --run-id "$RUN_ID"')
    monitor = command("monitor", '"$RANKBEAM" monitor "$OUTPUT" --run-id "$RUN_ID"')
    trend = command("trend", '"$RANKBEAM" trend "$OUTPUT"')
    evaluate >> [gate, monitor, trend]
