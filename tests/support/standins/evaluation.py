"""Vertex AI's Gen AI evaluation service: `EvaluateInstances` with pointwise metrics.

The template is filled in as Google's service does. The score is that of `score_of`, and the explanation says which text
it rests on.
"""

import hashlib
import json
import re
from typing import Any

from support.standins import grpc_server, messages
from support.standins.reception import Reception

PACKAGE = "google.cloud.aiplatform_v1"
MESSAGES = messages.module(PACKAGE, "evaluation_service")
REQUEST = MESSAGES.EvaluateInstancesRequest.pb()
RESPONSE = MESSAGES.EvaluateInstancesResponse.pb()
_PLACE = re.compile(r"projects/[^/]+/locations/[a-z0-9-]+")
_SCORES = re.compile(r"exactly one of ([^a-z]+), and")


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    return await grpc_server.start(
        reception,
        grpc_server.Method(
            service="google.cloud.aiplatform.v1.EvaluationService",
            name="EvaluateInstances",
            request=REQUEST,
            query=filled,
            answer=_answer,
        ),
    )


def filled(request: Any) -> str:
    """The metric's prompt, with the instance filled in."""
    metric = request.pointwise_metric_input
    instance = json.loads(metric.instance.json_instance)
    return re.sub(r"\{(\w+)\}", lambda match: instance[match[1]], metric.metric_spec.metric_prompt_template)


def score_of(prompt: str) -> str:
    """One of the scores that a prompt allows: by the hash of what is judged."""
    scores = [score.strip() for score in _SCORES.findall(prompt)[0].split(",")]
    return scores[hashlib.sha256(prompt.encode()).digest()[0] % len(scores)]


def _answer(request: Any, fault: str | None) -> Any:
    if _PLACE.fullmatch(request.location) is None:
        raise ValueError(f"{request.location} is not a location")
    prompt = filled(request)
    if fault == "empty":
        return RESPONSE()
    score = 77.0 if fault == "malformed" else float(score_of(prompt))
    return RESPONSE(pointwise_metric_result={"score": score, "explanation": f"about {len(prompt)} letters"})
