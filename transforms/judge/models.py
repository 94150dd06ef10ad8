"""A model that an experiment names, as the works that ask it see it."""

from dataclasses import dataclass

from rankbeam.transforms.clients.models.base import Completion, Embedding, ModelParameters
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.prompt import Prompt


@dataclass(frozen=True)
class Model:
    """A service that answers prompts."""

    name: str
    kind: str
    parameters: ModelParameters

    @property
    def label(self) -> str:
        """The name in tables: the service's model, or a description of one in this process."""
        offline = self.parameters.offline
        return self.parameters.model if offline is None else f"{self.kind}: {offline}"

    def call(self, prompt: Prompt) -> Call:
        """The call that asks a prompt."""
        return Call(self.name, self.parameters.key(self.kind, prompt), prompt.payload(), step=prompt.step)

    def read(self, answer: str) -> Completion | Embedding:
        """The model's reply."""
        return self.parameters.read(answer)
