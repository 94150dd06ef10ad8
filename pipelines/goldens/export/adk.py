"""The EvalSet of Google's Agent Development Kit: one case an item, with a rubric for every vital nugget.

`adk eval` and its web interface read it. A bare list of questions, which older tools wrote, is one conversation to
them, in which every answer sees the questions before it.
"""

from typing import Any

from rankbeam.pipelines.goldens.export.items import Chosen
from rankbeam.transforms.clients.formats.cases.eval_sets import CaseTurn, case_of, eval_set
from rankbeam.transforms.goldens.publishing import query
from rankbeam.transforms.goldens.records.items import Golden


def files_of(chosen: Chosen, path: str) -> dict[str, str]:
    """One file, whose name is that of the EvalSet."""
    full, text = eval_set(path, chosen.name, [_case(item, chosen) for item in chosen.items])
    return {full: text}


def _case(item: Golden, chosen: Chosen) -> dict[str, Any]:
    candidate = item.made
    rubrics = [
        {
            "rubricId": f"{candidate.item_id}-{number}",
            "rubricContent": {"textProperty": f"The answer says: {nugget.text}"},
            "type": "FINAL_RESPONSE_QUALITY",
        }
        for number, nugget in enumerate(candidate.nuggets)
        if nugget.vital
    ]
    own = {"rankbeam": {**query(item, chosen.reviews)["metadata"], "doc_ids": list(candidate.doc_ids)}}
    turn = CaseTurn(candidate.question, candidate.answer, ())
    return case_of(candidate.item_id, [turn], **({"rubrics": rubrics} if rubrics else {}), **own)
