"""Holes in the judgements: documents that nobody judged, which count by a judge's grades in `holes=llm` metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rankbeam.transforms.records.errors import InputError

LLM, HUMAN = "llm", "human"  # sources of judgements, as files of judgements and the table `rankings` name them

GRADES = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("grade", pa.int64())])
"""One row for each query and document that the judge graded, from 0 to 3."""

AUDITED = pa.schema(
    [("query_id", pa.string()), ("doc_id", pa.string()), ("human", pa.float64()), ("judge", pa.int64())]
)
"""One row for each query and document that the judge graded, on the scale of people; `human` is null for a hole."""

LEAST_AUDITED = 50  # with fewer such pairs, an audit says little
MOST_AUDITED = 200
"""Pairs of query and document that audit a judge by default, about equally many for each of its grades."""

# The worth of the judge's grades by the highest grade of people: 2 ("answers in part") is the lowest relevant one.
_DEFAULT_SCALES: Mapping[float, Sequence[int]] = {1.0: (0, 0, 1, 1), 2.0: (0, 0, 1, 2), 3.0: (0, 0, 2, 3)}


@dataclass(frozen=True)
class Holes:
    """Rules for filling holes."""

    depth: int = 10  # number of first documents of each configuration that the judge grades
    grades: tuple[int, ...] | None = None
    audit: int = MOST_AUDITED

    def scale(self, highest: float, option: str = "dataset.qrels_holes.grades") -> tuple[int, ...]:
        """For each grade of the judge, the grade on the scale of people; `option` sets it, for the message.

        >>> Holes().scale(1.0), Holes(grades=(0, 1, 1, 2)).scale(5.0)
        ((0, 0, 1, 1), (0, 1, 1, 2))
        """
        if self.grades is not None:
            return self.grades
        if highest not in _DEFAULT_SCALES:
            problem = f"the highest human grade is {highest:g}, but the judge grades from 0 to 3"
            raise InputError(f"{problem}; set {option} to the human grades for these four, such as 0,0,2,4")
        return tuple(_DEFAULT_SCALES[highest])
