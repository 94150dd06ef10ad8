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
        """How tables name it: the service's model, or for one in this process what it is."""
        offline = self.parameters.offline
        return self.parameters.model if offline is None else f"{self.kind}: {offline}"

    def call(self, prompt: Prompt) -> Call:
        """The call that asks a prompt."""
        return Call(self.name, self.parameters.key(self.kind, prompt), prompt.payload(), step=prompt.step)

    def read(self, answer: str) -> Completion | Embedding:
        """What the model says."""
        return self.parameters.read(answer)
