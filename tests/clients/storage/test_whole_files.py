"""Files that are complete as soon as they are visible."""

import gc
from pathlib import Path

from rankbeam.transforms.clients.storage import whole_files


def test_writing_leaves_nothing_for_the_garbage_collector(tmp_path: Path) -> None:
    whole_files.put(str(tmp_path / "first"), b"1")
    gc.collect()
    for number in range(20):
        whole_files.put(str(tmp_path / f"{number}"), b"1")
    assert gc.collect() == 0
    assert len(list(tmp_path.iterdir())) == 21
