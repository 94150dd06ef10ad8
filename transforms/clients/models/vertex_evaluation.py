"""The `vertex_evaluation` judge: Vertex AI's Gen AI evaluation service, which scores criteria with numbers.

A criterion is a pointwise metric: its question becomes the metric's prompt template, the texts to be judged become the
instance, and the service's explanation becomes the verdict's reason.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from rankbeam.transforms.clients.calls.services import Access
from rankbeam.transforms.clients.google.channels import CREDENTIALS, ChannelConnection, Endpoint, open_channels
from rankbeam.transforms.clients.models.base import ModelParameters, Stored, prompt_of
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

_BETWEEN = " | "
_CRITERION = "criterion"  # the step of the judge
_ROUNDING = 1e-3  # scores have single precision
_NO_LETTER = re.compile(r"\W+")
_INSTRUCTION = "Give a score that is exactly one of {scores}, and explain it."


class VertexEvaluation(ModelParameters):
    """Google's evaluation service in a project and region; Google chooses the model that judges.

    Attributes:
        project: Google Cloud project.
        location: region, such as "us-central1".
        api_endpoint: address of the service; by default the region's public address.
    """

    project: Annotated[str, Field(pattern=r"^[\w.:-]+$")]
    location: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    api_endpoint: Endpoint | None = None

    operational: ClassVar[frozenset[str]] = ModelParameters.operational | {"project", "api_endpoint"}
    only_scores: ClassVar[bool] = True

    @model_validator(mode="after")
    def _no_model(self) -> "VertexEvaluation":
        if self.model:
            raise ValueError("Google chooses the model that judges; remove model")
        return self

    @property
    def place(self) -> str:
        return f"projects/{self.project}/locations/{self.location}"

    @property
    def access(self) -> Access:
        return Access(self.api_endpoint or self.place, (CREDENTIALS,))

    def scope(self) -> str:
        """Project and region, to which the service's quota belongs."""
        return self.place

    def warnings(self) -> list[str]:
        return ["vertex_evaluation does not say which model judges, so a change of that model cannot be noticed"]

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  the service does not count tokens
        return NO_TOKENS

    async def connect(self) -> "EvaluationConnection":
        endpoint = self.api_endpoint or f"{self.location}-aiplatform.googleapis.com"
        channels = await open_channels(endpoint, "google.cloud.aiplatform_v1", "EvaluationService")
        return EvaluationConnection(channels, self.place)


@dataclass(frozen=True)
class EvaluationConnection(ChannelConnection):
    """Open connections to the service."""

    place: str

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  every attempt is the same
        prompt = prompt_of(payload)
        if prompt.step != _CRITERION:
            raise CallError(
                FailureKind.INVALID, f"vertex_evaluation judges criteria, and cannot do the step {prompt.step!r}"
            )
        answer = await self.channels.call("evaluate_instances", lambda: _request(self.place, prompt), timeout_s)
        return Reply(_stored_answer(prompt, answer).written())


def metric_of(prompt: Prompt) -> tuple[str, dict[str, str]]:
    """The template of a pointwise metric, and the instance to fill it in with."""
    names = [_NO_LETTER.sub("_", text["id"]) for text in prompt.values["texts"]]
    scores = prompt.values["verdicts"].replace(_BETWEEN, ", ")
    parts = ["{criterion}", _INSTRUCTION.format(scores=scores), *(["{examples}"] if prompt.values["examples"] else [])]
    parts += [f"# {name}\n{{{name}}}" for name in names]
    instance = {name: text["text"] for name, text in zip(names, prompt.values["texts"], strict=True)}
    return "\n\n".join(parts), {name: prompt.values[name] for name in ("criterion", "examples")} | instance


def _request(place: str, prompt: Prompt) -> Any:
    from google.cloud.aiplatform_v1.types import EvaluateInstancesRequest

    template, instance = metric_of(prompt)
    metric = {
        "metric_spec": {"metric_prompt_template": template},
        "instance": {"json_instance": json.dumps(instance, ensure_ascii=False)},
    }
    return EvaluateInstancesRequest(location=place, pointwise_metric_input=metric)


def _stored_answer(prompt: Prompt, answer: Any) -> Stored:
    """The verdict whose number is the score, with the explanation; raises a CallError if no verdict matches."""
    result = answer.pointwise_metric_result
    verdicts = prompt.values["verdicts"].split(_BETWEEN)
    score = result.score if "score" in result else math.nan
    verdict = next((word for word in verdicts if abs(float(word) - score) <= _ROUNDING), None)
    if verdict is None:
        raise CallError(FailureKind.MALFORMED, f"the score {score:g} is not one of {', '.join(verdicts)}")
    return Stored(json.dumps({"reason": result.explanation, "verdict": verdict}, ensure_ascii=False))
