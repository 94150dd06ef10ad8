"""The folder of the shared collections, and the marker for tests that need them."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED_DATA = Path(os.environ.get("RANKBEAM_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")

needs_shared_data = pytest.mark.skipif(
    not SHARED_DATA.is_dir(),
    reason=f"the shared collections are not at {SHARED_DATA}; set RANKBEAM_SHARED_DATA to their folder",
)
