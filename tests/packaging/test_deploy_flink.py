"""deploy/flink: the image, and the manifests for the Flink Kubernetes operator."""

import gzip
import json
import re
from importlib.metadata import version
from typing import Any

import jsonschema
import pytest
import yaml
from support.data import REPOSITORY

from rankbeam.pipelines.run.options import pipeline_options, works_elsewhere

FOLDER = REPOSITORY / "deploy" / "flink"
CLUSTER: dict[str, Any] = yaml.safe_load((FOLDER / "cluster.yaml").read_text(encoding="utf-8"))
SUBMIT: dict[str, Any] = yaml.safe_load((FOLDER / "submit.yaml").read_text(encoding="utf-8"))
IMAGE = "REGISTRY/rankbeam:TAG"
# The schema of FlinkDeployment in release 1.10.0 of the operator: its definition's openAPIV3Schema, without the status.
SCHEMA = REPOSITORY / "tests" / "support" / "flink" / "flinkdeployments-1.10.0.json.gz"


def strict(schema: Any) -> Any:
    """A schema of Kubernetes as JSON Schema that refuses fields which Kubernetes would drop with a warning."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    fields = {name: strict(item) for name, item in schema.items()}
    if fields.pop("x-kubernetes-int-or-string", False):
        fields["type"] = ["integer", "string"]
    if "properties" in fields and not fields.get("x-kubernetes-preserve-unknown-fields"):
        fields.setdefault("additionalProperties", False)
    return fields


@pytest.fixture(scope="module")
def schema() -> Any:
    read: Any = strict(json.loads(gzip.decompress(SCHEMA.read_bytes())))
    read["properties"] |= {"apiVersion": {"const": "flink.apache.org/v1beta1"}, "kind": {"const": "FlinkDeployment"}}
    read["properties"] |= {"metadata": {"type": "object"}}
    return read


def test_the_cluster_is_a_flink_deployment_of_the_operator(schema: Any) -> None:
    validator = jsonschema.Draft7Validator(schema)
    assert not [error.message for error in validator.iter_errors(CLUSTER)]
    (refused,) = validator.iter_errors({**CLUSTER, "spec": {**CLUSTER["spec"], "flinkConfig": {}}})
    assert "'flinkConfig' was unexpected" in refused.message


def test_the_submitting_pod_is_one_of_kubernetes(schema: Any) -> None:
    """The operator's pod templates have the fields of pods."""
    assert (SUBMIT["apiVersion"], SUBMIT["kind"]) == ("batch/v1", "Job")
    pod = schema["properties"]["spec"]["properties"]["podTemplate"]
    assert not [error.message for error in jsonschema.Draft7Validator(pod).iter_errors(SUBMIT["spec"]["template"])]


def test_the_cluster_is_a_session_with_workers() -> None:
    spec = CLUSTER["spec"]
    assert "job" not in spec  # a session cluster
    assert spec["mode"] == "standalone"  # in the other mode, the operator does not read the number of TaskManagers
    major, minor = re.fullmatch(r"flink:(\d+)\.(\d+)-java17", spec["image"]).groups()  # type: ignore[union-attr]
    assert spec["flinkVersion"] == f"v{major}_{minor}"
    main, workers = spec["taskManager"]["podTemplate"]["spec"]["containers"]
    assert main == {"name": "flink-main-container"}
    assert (workers["image"], workers["args"]) == (IMAGE, ["--worker_pool"])


def test_the_submitting_pod_agrees_with_the_cluster() -> None:
    pod = SUBMIT["spec"]["template"]["spec"]
    (server,), (container,) = pod["initContainers"], pod["containers"]
    beam, flink = version("apache-beam"), CLUSTER["spec"]["flinkVersion"].removeprefix("v").replace("_", ".")
    assert server["image"] == f"apache/beam_flink{flink}_job_server:{beam}"
    assert server["restartPolicy"] == "Always"
    assert container["image"] == IMAGE
    rest = f"{CLUSTER['metadata']['name']}-rest:8081"  # as the operator names its service
    assert f"--flink-master={rest}" in server["args"]
    options = [word for word in container["args"] if word.startswith("--") and not word.startswith("--run-id")]
    values = pipeline_options(options).get_all_options()
    assert values["flink_master"] == f"http://{rest}"
    (port,) = CLUSTER["spec"]["taskManager"]["podTemplate"]["spec"]["containers"][1]["ports"]
    assert values["environment_config"] == f"localhost:{port['containerPort']}"
    assert f"--job-port={values['job_endpoint'].rpartition(':')[2]}" in server["args"]
    slots = int(CLUSTER["spec"]["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    assert values["parallelism"] == slots * CLUSTER["spec"]["taskManager"]["replicas"]
    assert works_elsewhere(pipeline_options(options))  # so local files are refused
