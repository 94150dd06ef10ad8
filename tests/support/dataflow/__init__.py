"""A stand-in for Dataflow: takes jobs as the real runner submits them, and does what they say.

    with dataflow(google.environment) as service:
        rankbeam("evaluate", …, "--runner=DataflowRunner", f"--dataflow_endpoint={service.endpoint}")

`server` speaks the REST interface, `execution` does what Dataflow and the container of its workers do, and `worker` is
the process in there: a clean environment with what was staged, and nothing of the checkout.
"""

from support.dataflow.server import Dataflow, dataflow

__all__ = ["Dataflow", "dataflow"]
