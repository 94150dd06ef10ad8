"""Looking for documents given twice, a few queries at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.ranking import rankings

ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12)), max_size=40).map(sorted)


@pytest.mark.parametrize("piece", [1, 2, 7, 1 << 13])
@given(rows=ROWS, shift=st.sampled_from([0, 31, 32, 40]))
def test_pieces_find_what_a_look_at_all_rows_finds(piece: int, rows: list[tuple[int, int]], shift: int) -> None:
    query = np.array([one for one, _ in rows], np.int64)
    # As `keys` has it, rows of different queries have different keys; some halves are equal here all the same.
    key = np.array([(1 + one) * 16 + other << shift for one, other in rows], np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rankings, "_ROWS_AT_ONCE", piece)
        assert rankings.has_repeats(key, query) == (len(set(rows)) < len(rows))
    assert rankings.has_repeats(key) == (len(set(rows)) < len(rows))
