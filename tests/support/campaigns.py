"""How large the long tests are: `make campaign` runs them whole, `CAMPAIGN_SHARE=0.2 make campaign` a share of each."""

import os

SHARE = float(os.environ.get("CAMPAIGN_SHARE", "1"))


def sized(whole: int, least: int) -> int:
    """The number of queries, runs or samples of a long test.

    Args:
        whole: of the whole campaign.
        least: below which the test would show nothing.
    """
    return max(least, round(whole * SHARE))
