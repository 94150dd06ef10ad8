"""Google's models over HTTP: the Developer API and Vertex AI, as google-genai speaks to them.

POST /v1beta/models/M:generateContent                                              (a key in x-goog-api-key)
POST /v1beta1/projects/P/locations/L/publishers/google/models/M:generateContent    (Bearer)
… and M:batchEmbedContents, M:embedContent, M:predict
"""

import json
import re
from typing import Any

from support.standins.http_protocol import STATUSES, HttpConnection, Request, listen
from support.standins.models import Question, embedding, spoilt, tokens
from support.standins.reception import Reception, Visit

_PATH = re.compile(
    r"/v1(?:beta\d?)?/(?:projects/[^/]+/locations/[^/]+/publishers/google/)?models/(?P<model>[^:]+):(?P<method>\w+)"
)
_MODEL = re.compile(
    r"/v1(?:beta\d?)?/(?:projects/[^/]+/locations/[^/]+/)?(?P<name>(?:publishers/google/)?models/(?P<model>[^:/]+))"
)
_NAMES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 408: "CANCELLED",
    429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip
_FINISHES = {
    "safety": "SAFETY", "recitation": "RECITATION", "malformed_call": "MALFORMED_FUNCTION_CALL",
    "unknown_finish": "BORED",
}  # fmt: skip
_REFUSED = {
    "no_seed": ("seed", "Unable to submit request because seed is not supported by this model."),
    "too_many_states": (
        "maxItems",
        (
            "The specified schema produces a constraint that has too many states for serving. Typical causes are long "
            "lists, and property or item limits"
        ),
    ),
    "no_temperature_extra": ("temperature", "temperature is not supported for this model"),
}
_THOUGHTS = 7


class Gemini(HttpConnection):
    """One connection of the service."""

    def parsed(self, request: Request) -> tuple[str, Any]:
        """The method and the question, or the texts to embed."""
        if (described := _MODEL.fullmatch(request.target.partition("?")[0])) is not None:
            return "model", (described["model"], "get", None, {})
        path = _PATH.fullmatch(request.target.partition("?")[0])
        if path is None:
            raise LookupError(f"there is nothing at {request.target}")
        body = json.loads(request.body)
        if path["method"] == "generateContent":
            question = Question(_text(body.get("systemInstruction")), _text(body["contents"][0]))
            return question.name, (path["model"], path["method"], question, body["generationConfig"])
        texts = _texts(body)
        self.reception.note([f"embed {text[:200]}" for text in texts[1:]])
        return f"embed {texts[0][:200]}", (path["model"], path["method"], texts, {})

    def answer(self, visit: Visit, parsed: Any) -> None:
        """Answer, or go wrong as the visit's fault says."""
        model, method, question, config = parsed
        fault = visit.fault
        if method == "get":
            named = json.dumps({"name": f"models/{model}"}).encode()
            self.refuse(visit) if fault in STATUSES else self.say(200, named)
            return
        if self.say_scripted(question.user if isinstance(question, Question) else question[0]):
            return
        if fault in _REFUSED and _REFUSED[fault][0] in json.dumps(config).replace("max_items", "maxItems"):
            self.say(400, self.error(400, _REFUSED[fault][1]))
            return
        if fault in ("quota_info", "quota_day"):
            self.say(429, self._quota(visit))
        elif fault == "bad_gateway":
            self.say(502, b"<html><h1>502 Bad Gateway</h1></html>", "Content-Type: text/html\r\n")
        elif fault == "bad_key":
            reason = {"@type": _TYPE + "ErrorInfo", "reason": "API_KEY_INVALID"}
            self.say(400, self.error(400, "API key not valid", reason))
        elif fault in STATUSES:
            self.refuse(visit)
        elif fault in ("reset", "drop_connection"):
            self.reset()
        elif fault == "empty_body":
            self.say(200, b"")
        else:
            body = self._content(model, question, fault) if method == "generateContent" else _embedded(method, question)
            self.say_spoilt(json.dumps(body).encode(), fault)

    def error(self, status: int, message: str, *details: dict[str, Any]) -> bytes:
        """As Google says it."""
        error = {"code": status, "message": message, "status": _NAMES.get(status, "UNKNOWN"), "details": details}
        return json.dumps({"error": error}).encode()

    def _quota(self, visit: Visit) -> bytes:
        if visit.fault == "quota_day":
            violations = [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]
            return self.error(429, "Quota exceeded", {"@type": _TYPE + "QuotaFailure", "violations": violations})
        wait = {"@type": _TYPE + "RetryInfo", "retryDelay": f"{visit.hint_s:g}s"}
        return self.error(429, "Resource exhausted", wait)

    def _content(self, model: str, question: Question, fault: str | None) -> dict[str, Any]:
        text = spoilt(question.reply(), fault)
        text = text[: len(text) // 2] if fault == "truncated" else text
        usage = _usage(question, "" if fault == "truncated_thinking" else text)
        self.reception.count_tokens(usage["totalTokenCount"])
        head: dict[str, Any] = {"modelVersion": f"{model}-v7", "responseId": question.key}
        head |= {} if fault == "no_usage" else {"usageMetadata": usage}
        if fault == "blocked_prompt":
            return {**head, "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
        if fault == "no_candidates":
            return head
        if fault in _FINISHES:
            return {**head, "candidates": [{"finishReason": _FINISHES[fault], "index": 0}]}
        parts: list[dict[str, Any]] = [{"text": "Let me think.", "thought": True}, {"text": text}]
        parts = [] if fault == "truncated_thinking" else [{"text": " "}] if fault == "empty" else parts
        finish = "MAX_TOKENS" if fault in ("truncated", "truncated_thinking") else "STOP"
        content = {"role": "model", "parts": parts} if parts else {"role": "model"}
        more = {"avgLogprobs": -0.2, "score": -8.9}  # of which the library does not know all
        return {**head, "candidates": [{"content": content, "finishReason": finish, "index": 0, **more}]}


_TYPE = "type.googleapis.com/google.rpc."


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    return await listen(lambda: Gemini(reception), reception)


def _text(content: Any) -> str:
    return "".join(part.get("text", "") for part in (content or {}).get("parts", []))


def _usage(question: Question, text: str) -> dict[str, int]:
    sent, received = tokens(question.system + question.user), tokens(text) if text else 0
    cached = tokens(question.system) if question.system else 0
    return {
        "promptTokenCount": sent,
        "cachedContentTokenCount": cached,
        "candidatesTokenCount": received,
        "thoughtsTokenCount": _THOUGHTS,
        "totalTokenCount": sent + received + _THOUGHTS,
    }


def _texts(body: dict[str, Any]) -> list[str]:
    if "requests" in body:
        return [_text(request["content"]) for request in body["requests"]]
    if "instances" in body:
        return [instance["content"] for instance in body["instances"]]
    return [_text(body["content"])]


_MOST_EMBEDDED = 2048
"""Tokens of a text; Vertex AI embeds no more of a longer one."""


def _embedded(method: str, texts: list[str]) -> dict[str, Any]:
    counts = [tokens(text) for text in texts]
    if method == "predict":
        statistics = [{"token_count": count, "truncated": count > _MOST_EMBEDDED} for count in counts]
        vectors = [{"values": embedding(text), "statistics": one} for text, one in zip(texts, statistics, strict=True)]
        return {"predictions": [{"embeddings": one} for one in vectors]}
    if method == "embedContent":
        usage = {"promptTokenCount": counts[0]}
        is_cut = counts[0] > _MOST_EMBEDDED
        return {"embedding": {"values": embedding(texts[0])}, "usageMetadata": usage, "truncated": is_cut}
    return {"embeddings": [{"values": embedding(text)} for text in texts]}
