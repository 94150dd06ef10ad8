"""Look for the environment variables of secrets before a job is submitted: its workers need them."""

import json
import os
from collections.abc import Collection, Mapping

import grpc
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.local.messages import warn
from rankbeam.pipelines.portable.worker_pool import VARIABLES
from rankbeam.pipelines.run.options import works_elsewhere
from rankbeam.transforms.clients.secrets import env_name
from rankbeam.transforms.records.errors import InputError

_ANSWER_S = 8.0
_EXTERNAL = "EXTERNAL"


def refuse_unset(experiment: Experiment, options: PipelineOptions) -> None:
    """Refuse an experiment whose secrets are in variables that its workers lack, as far as workers can report that."""
    places = {name: place for reference, place in experiment.secrets.items() if (name := env_name(reference))}
    portable = options.view_as(PortableOptions)
    if portable.environment_type == "LOOPBACK":
        _refuse({name for name in places if not os.environ.get(name, "").strip()}, places, "here")
    elif portable.environment_type == _EXTERNAL and not works_elsewhere(options):
        address = portable.environment_config
        if (unset := _unset_at(address, sorted(places))) is not None:
            _refuse(unset, places, f"in the pool of workers at {address}; set it there and start the pool again")
        elif places:
            unknown = "Beam's own pool cannot report its variables"
            warn(
                f"not checked: {', '.join(sorted(places))} must be set for the pool of workers at {address}; {unknown}"
            )
    elif places:
        warn(f"not checked: {', '.join(sorted(places))} must be set where the workers are")


def _refuse(unset: Collection[str], places: Mapping[str, str], where: str) -> None:
    if unset:
        needed = ", ".join(f"{name} ({places[name]})" for name in sorted(unset))
        raise InputError(f"environment variables that the workers need are not set {where}: {needed}")


def _unset_at(address: str, names: list[str]) -> list[str] | None:
    """The variables that a pool lacks; None where it is Beam's, which cannot be asked."""
    with grpc.insecure_channel(address) as channel:
        try:
            answer: bytes = channel.unary_unary(VARIABLES)(json.dumps(names).encode(), timeout=_ANSWER_S)
        except grpc.RpcError as error:
            if isinstance(error, grpc.Call) and error.code() == grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise InputError(f"no pool of workers answers at {address}; check --environment_config") from error
    unset: list[str] = json.loads(answer)
    return unset
