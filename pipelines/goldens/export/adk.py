"""The EvalSet of Google's Agent Development Kit: one case an item, with a rubric for every vital nugget.

`adk eval` and its web interface read it. A bare list of questions, which older tools wrote, is one conversation to
them, in which every answer sees the questions before it.
"""

import json
import re
from typing import Any

from rankbeam.pipelines.goldens.export.items import Chosen
from rankbeam.transforms.goldens.publishing import query
from rankbeam.transforms.goldens.records.items import Golden
from rankbeam.transforms.records.errors import InputError

SUFFIX = ".evalset.json"
_NAME = re.compile(r"[a-zA-Z0-9_]+")
_NO_TIME = 0.0  # equal benchmarks have equal bytes


def files_of(chosen: Chosen, path: str) -> dict[str, str]:
    """One file, whose name is that of the EvalSet."""
    name = path.rpartition("/")[2].removesuffix(SUFFIX).removesuffix(".json")
    if not _NAME.fullmatch(name):
        better = re.sub(r"\W", "_", name)
        problem = f"ADK takes letters, digits and _ in the name of an EvalSet, not {name!r}; write {better}{SUFFIX}"
        raise InputError(problem, path=path)
    full = path if path.endswith(SUFFIX) else f"{path.removesuffix('.json')}{SUFFIX}"
    cases = [_case(item, chosen) for item in chosen.items]
    value = {"eval_set_id": name, "name": chosen.name, "eval_cases": cases, "creation_timestamp": _NO_TIME}
    return {full: json.dumps(value, ensure_ascii=False, indent=2) + "\n"}


def _case(item: Golden, chosen: Chosen) -> dict[str, Any]:
    candidate = item.made
    answer = {"finalResponse": {"role": "model", "parts": [{"text": candidate.answer}]}}
    invocation = {
        "invocationId": f"{candidate.item_id}-1",
        "userContent": {"role": "user", "parts": [{"text": candidate.question}]},
        **answer,
        "intermediateData": {"toolUses": [], "toolResponses": [], "intermediateResponses": []},
        "creationTimestamp": _NO_TIME,
    }
    rubrics = [
        {
            "rubricId": f"{candidate.item_id}-{number}",
            "rubricContent": {"textProperty": f"The answer says: {nugget.text}"},
            "type": "FINAL_RESPONSE_QUALITY",
        }
        for number, nugget in enumerate(candidate.nuggets)
        if nugget.vital
    ]
    return {
        "evalId": candidate.item_id,
        "conversation": [invocation],
        **({"rubrics": rubrics} if rubrics else {}),
        "creationTimestamp": _NO_TIME,
        "rankbeam": {**query(item, chosen.reviews)["metadata"], "doc_ids": list(candidate.doc_ids)},
    }
