"""The collections of Google's notebook that the documentation lists exist under the names that it gives."""

import re

from support.data import REPOSITORY

from rankbeam.transforms.clients.public import NAMES

PAGE = (REPOSITORY / "docs" / "formats.md").read_text()
TABLE = PAGE.partition("| collection | from BEIR's archives |")[2].partition("\n\n")[0]


def test_every_archive_is_one_that_is_fetched() -> None:
    archives = re.findall(r"`beir: ([\w-]+)", TABLE)
    assert archives == ["germanquad", "mmarco", "mrtydi", "trec-covid-v2", "vihealthqa"]
    assert set(archives) <= set(NAMES)


def test_every_collection_of_ir_datasets_is_registered_there() -> None:
    import ir_datasets

    names = [row.split("|")[5].strip(" `") for row in TABLE.splitlines()[2:]]
    assert len([name for name in names if name]) == 2
    for name in filter(None, names):
        assert name in ir_datasets.registry._registered
