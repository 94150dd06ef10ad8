"""Models: what an experiment names under `services:`, to answer queries and to judge answers.

A type of model is a `ModelParameters` that the experiment's YAML fills in; the entry point group `rankbeam.models`
registers it.
"""

from typing import Any, ClassVar

from rankbeam.transforms.clients.calls.services import Connection
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.registry import Kind
from rankbeam.transforms.records.calls.quota import Quota


class ModelParameters(Parameters):
    """The parameters of one type of model.

    Attributes:
        default_quota: the budget where `quotas:` says nothing.
    """

    default_quota: ClassVar[Quota]

    def scope(self) -> str:
        """What shares a budget at the service: a project, region and model, or a host and model."""
        return ""

    async def connect(self) -> Connection:
        """Connect to the service; see `services.Service.connect`."""
        raise NotImplementedError(f"{type(self).__name__} has no connect()")

    def read(self, answer: str) -> Any:
        """What an answer says; see `services.Service.read`."""
        raise NotImplementedError(f"{type(self).__name__} has no read()")


MODELS = Kind("model", "rankbeam.models", ModelParameters)
"""The types of models."""
