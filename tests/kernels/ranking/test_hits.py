"""The example of the documentation of metrics is what its text says."""

from dataclasses import asdict

import numpy as np
from support.assessments import assessment_of

from rankbeam.transforms.kernels.ranking.hits import EXAMPLE


def test_the_example_is_the_assessment_that_it_describes() -> None:
    run = [("q", doc, -float(rank)) for rank, doc in enumerate(["best", "new", "bad", "good", "other"], 1)]
    described = assessment_of({"q": {"best": 2.0, "bad": 0.0, "good": 1.0, "missed": 1.0}}, run)
    np.testing.assert_equal(asdict(EXAMPLE), asdict(described))
