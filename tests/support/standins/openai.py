"""A service that is compatible with OpenAI's, also below /openai: POST /v1/chat/completions and /v1/embeddings."""

import json
import math
from typing import Any

from support.standins.http_protocol import STATUSES, HttpConnection, Request, listen
from support.standins.models import Question, embedding, spoilt, tokens
from support.standins.reception import Reception, Visit

_THOUGHTS = 7
_REFUSALS: dict[str, tuple[str, str | None, str | None]] = {
    "content_filter": (
        "The response was filtered due to the prompt triggering the content management policy.",
        "prompt",
        "content_filter",
    ),
    "few_texts": ("batch size 5 > maximum allowed batch size 4", None, None),
    "poison": ("an input is too long", None, None),
    "no_json_schema": ("'response_format.type' must be 'json_object' or 'text'", None, None),
    "gpt5_limit": (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "max_tokens",
        "unsupported_parameter",
    ),
    "gpt5": (
        (
            "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is "
            "supported."
        ),
        "temperature",
        "unsupported_value",
    ),
    "no_bounds": (
        (
            "Invalid schema for response_format 'support': In context=('properties', 'verdicts'), 'maxItems' is not "
            "permitted."
        ),
        "response_format",
        None,
    ),
    "no_bounds_anthropic": (
        "output_config.format.schema: For 'integer' type, properties maximum, minimum are not supported",
        None,
        None,
    ),
    "no_system": ("Conversation roles must alternate user/assistant/user/assistant/...", None, None),
    "no_temperature_extra": ("`temperature` is deprecated for this model.", None, None),
    "no_form": ("response_format is not supported", "response_format", None),
    "too_hot": (
        "Invalid 'temperature': decimal above maximum value.",
        "temperature",
        "decimal_above_max_value",
    ),
    "too_long": (
        "'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context length is 512.",
        None,
        None,
    ),
}
"""By fault, how a part of a request is refused: message, parameter and code."""


class OpenAi(HttpConnection):
    """One connection of the service."""

    def parsed(self, request: Request) -> tuple[str, Any]:
        """The body, and the question or the text to embed."""
        target = request.target.removeprefix("/openai")
        if target == "/v1/models":
            return "models", (None, None)
        body = json.loads(request.body)
        if target == "/v1/embeddings":
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            self.reception.note([f"embed {text[:200]}" for text in texts[1:]])
            return f"embed {texts[0][:200]}", (body, None)
        if target != "/v1/chat/completions":
            raise LookupError(f"there is nothing at {request.target}")
        messages = {message["role"]: message["content"] for message in body["messages"]}
        question = Question(messages.get("system", ""), messages["user"], body["model"])
        return question.name, (body, question)

    def answer(self, visit: Visit, parsed: Any) -> None:
        """Answer, or go wrong as the visit's fault says."""
        body, question = parsed
        if body is None:
            self._list(visit)
            return
        if self.say_scripted(question.user if question else "".join(body["input"])):
            return
        self._answer(visit, body, question)

    def _list(self, visit: Visit) -> None:
        data = [{"id": name, "object": "model"} for name in ("m-001", "m-002")]
        self.refuse(visit) if visit.fault in STATUSES else self.say(200, json.dumps({"data": data}).encode())

    def _answer(self, visit: Visit, body: dict[str, Any], question: Question | None) -> None:
        fault, refused = visit.fault, refusal(body, visit.fault)
        if refused is not None:
            self.say(400, json.dumps(refused).encode())
        elif fault == "quota_info":
            self.say(429, self.error(429, "slow down"), f"retry-after-ms: {visit.hint_s * 1000:g}\r\n")
        elif fault == "quota_reset":
            left = "x-ratelimit-remaining-tokens: 0\r\nx-ratelimit-remaining-requests: 5\r\n"
            reset = "x-ratelimit-reset-tokens: 1m2.5s\r\nx-ratelimit-reset-requests: 90s\r\n"
            self.say(429, self.error(429, "slow down"), left + reset)
        elif fault == "quota_day":
            self.say(429, self.error(429, "You exceeded your current quota", "insufficient_quota"))
        elif fault == "bad_gateway":
            self.say(502, b"<html><h1>502 Bad Gateway</h1></html>", "Content-Type: text/html\r\n")
        elif fault in STATUSES:
            self.refuse(visit)
        elif fault in ("reset", "drop_connection"):
            self.reset()
        elif fault == "empty_body":
            self.say(200, b"")
        else:
            self.say_spoilt(json.dumps(self._reply_body(body, question, fault)).encode(), fault)

    def error(self, status: int, message: str, code: str | None = None) -> bytes:
        """As OpenAI says it."""
        return json.dumps({"error": {"message": message, "type": f"http_{status}", "code": code}}).encode()

    def _reply_body(self, body: dict[str, Any], question: Question | None, fault: str | None) -> dict[str, Any]:
        if question is None:
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            data: list[dict[str, Any]] = [
                {"object": "embedding", "index": index, "embedding": embedding(text)}
                for index, text in enumerate(texts)
            ]
            used = sum(map(tokens, texts))
            usage = {"prompt_tokens": used, "total_tokens": used}
            if fault == "no_number":
                data[0]["embedding"] = [*embedding(texts[0])[1:], math.nan]
            data = data[:1] if fault == "one_vector" else data[::-1]
            return {"object": "list", "data": data, "model": f"{body['model']}-v7", "usage": usage}
        text = spoilt(question.reply(), fault)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        finish = "stop"
        if fault == "truncated":
            message["content"], finish = text[: len(text) // 2], "length"
        elif fault == "truncated_thinking":
            message["content"], finish = None, "length"
        elif fault == "safety":
            message["content"], finish = "", "content_filter"
        elif fault == "refusal":
            message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
        elif fault == "empty":
            message["content"] = " "
        elif fault == "unknown_finish":
            finish = "bored"
        choices = [] if fault == "no_candidates" else [{"index": 0, "message": message, "finish_reason": finish}]
        head = {"id": question.key, "model": f"{body['model']}-v7"}
        usage = self._usage(question, text)
        return {**head, "choices": choices, **({} if fault == "no_usage" else {"usage": usage})}

    def _usage(self, question: Question, text: str) -> dict[str, Any]:
        sent, received = tokens(question.system + question.user), tokens(text) + _THOUGHTS
        self.reception.count_tokens(sent + received)
        return {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
            "prompt_tokens_details": {"cached_tokens": tokens(question.system) if question.system else 0},
            "completion_tokens_details": {"reasoning_tokens": _THOUGHTS},
        }


def refusal(body: dict[str, Any], fault: str | None) -> dict[str, Any] | None:
    """The refusal of a part of a request, in services' own words; None if they accept it."""
    form = json.dumps(body.get("response_format", {}))
    if fault == "no_seed" and "seed" in body:
        return {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs not permitted"}]}
    texts = body.get("input", [])
    refused = {
        "few_texts": isinstance(texts, list) and len(texts) > 4,
        "poison": "poison" in "".join(texts),
        "content_filter": True,
        "no_json_schema": body.get("response_format", {}).get("type") == "json_schema",
        "gpt5": "max_tokens" in body or body.get("temperature", 1) != 1,
        "no_bounds": "maxItems" in form,
        "no_bounds_anthropic": "minimum" in form or "maxItems" in form,
        "no_system": body.get("messages", [{}])[0].get("role") == "system",
        "no_temperature_extra": "temperature" in body,
        "no_form": "response_format" in body,
        "too_hot": True,
        "too_long": True,
    }
    if fault is None or not refused.get(fault):
        return None
    message, parameter, code = _REFUSALS["gpt5_limit" if fault == "gpt5" and "max_tokens" in body else fault]
    return {"error": {"message": message, "type": "invalid_request_error", "param": parameter, "code": code}}


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    return await listen(lambda: OpenAi(reception), reception)
