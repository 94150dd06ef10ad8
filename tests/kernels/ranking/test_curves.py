"""Interpolated precision at levels of recall, against plain Python that gives the values of trec_eval 10's vectors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.plain_metrics import Judged
from support.plain_metrics import interpolated_precision as expected_precision

from rankbeam.transforms.kernels.ranking.curves import LEVELS, interpolated_precision

DOCUMENTS = [f"d{place}" for place in range(30)]
RANKINGS = st.lists(st.lists(st.sampled_from(DOCUMENTS), unique=True, max_size=30), min_size=1, max_size=5)
RELEVANT = st.sets(st.sampled_from(DOCUMENTS), min_size=1)


@given(RANKINGS, st.data())
def test_it_is_iprec_at_recall_of_trec_eval(rankings: list[list[str]], data: st.DataObject) -> None:
    relevant = [data.draw(RELEVANT) for _ in rankings]
    query = np.repeat(np.arange(len(rankings)), [len(ranking) for ranking in rankings])
    is_relevant = [doc in relevant[place] for place, ranking in enumerate(rankings) for doc in ranking]
    ours = interpolated_precision(query, np.array(is_relevant, bool), np.array([len(own) for own in relevant]))
    for place, ranking in enumerate(rankings):
        judged = Judged([1.0 if doc in relevant[place] else None for doc in ranking], [1.0] * len(relevant[place]))
        expected = [expected_precision(judged, recall=level, rel=1.0) for level in LEVELS]
        np.testing.assert_allclose(ours[place], expected, rtol=0, atol=1e-12)
