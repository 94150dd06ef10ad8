"""Interpolated precision at levels of recall against trec_eval, which is the oracle."""

import numpy as np
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.ranking.curves import LEVELS, interpolated_precision

DOCUMENTS = [f"d{place}" for place in range(30)]
RANKINGS = st.lists(st.lists(st.sampled_from(DOCUMENTS), unique=True, max_size=30), min_size=1, max_size=5)
RELEVANT = st.sets(st.sampled_from(DOCUMENTS), min_size=1)


@given(RANKINGS, st.data())
def test_it_is_iprec_at_recall_of_trec_eval(rankings: list[list[str]], data: st.DataObject) -> None:
    relevant = [data.draw(RELEVANT) for _ in rankings]
    qrels = {f"q{place}": dict.fromkeys(own, 1) for place, own in enumerate(relevant)}
    run = {
        f"q{place}": {document: float(-rank) for rank, document in enumerate(ranking)}
        for place, ranking in enumerate(rankings)
    }
    expected = pytrec_eval.RelevanceEvaluator(qrels, {"iprec_at_recall"}).evaluate(run)
    query = np.repeat(np.arange(len(rankings)), [len(each) for each in rankings])
    is_relevant = [each in relevant[place] for place, ranking in enumerate(rankings) for each in ranking]
    ours = interpolated_precision(query, np.array(is_relevant, bool), np.array([len(own) for own in relevant]))
    for place, ranking in enumerate(rankings):
        if ranking:  # trec_eval leaves out a query without results
            theirs = [expected[f"q{place}"][f"iprec_at_recall_{level:.2f}"] for level in LEVELS]
            np.testing.assert_allclose(ours[place], theirs, rtol=0, atol=1e-12)
        else:
            assert not ours[place].any()
