"""Sizes of the long tests: `make campaign` runs them whole, `CAMPAIGN_SHARE=0.2 make campaign` a share of each.

`make campaign` also runs every test that Hypothesis makes examples for, with five times as many as `make test`.
"""

import os
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

SHARE = float(os.environ.get("CAMPAIGN_SHARE", "1"))


def sized(whole: int, least: int) -> int:
    """The number of queries, runs or samples of a long test.

    Args:
        whole: size in the whole campaign.
        least: smallest size at which the test shows anything.
    """
    return max(least, round(whole * SHARE))


def in_campaigns(*cases: Any) -> list[ParameterSet]:
    """Further cases of a test, which only `make campaign` tries.

    Args:
        cases: as `pytest.mark.parametrize` takes them: a tuple has a value for each argument.
    """
    arguments = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [pytest.param(*values, marks=pytest.mark.campaign) for values in arguments]


def examples(of_a_hundred: int) -> int:
    """The number of examples for a law that needs more or fewer than the profile gives.

    Args:
        of_a_hundred: percentage of the profile's number.
    """
    return max(1, round(of_a_hundred * settings().max_examples / 100))
