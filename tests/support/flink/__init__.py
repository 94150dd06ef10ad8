"""A real Flink cluster and Prism on this machine, for `make flink` and for the tests."""

from support.flink.cluster import Cluster, cluster
from support.flink.programs import JOB_SERVER, missing_flink, missing_prism, prism

__all__ = ["JOB_SERVER", "Cluster", "cluster", "missing_flink", "missing_prism", "prism"]
