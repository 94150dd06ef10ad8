"""Bodies of answers: all calls in flight together hold a few large ones."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from rankbeam.transforms.clients.http import transport
from rankbeam.transforms.clients.http.transport import BodySize, read_body

SMALL, MOST = 10, 4


@pytest.mark.parametrize("most", [1000, 50])
def test_all_bodies_are_read_but_only_a_few_large_ones_at_a_time(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_SMALL_BYTES", SMALL)
    reading: set[int] = set()
    most_at_once = 0

    async def body(number: int) -> AsyncIterator[bytes]:
        nonlocal most_at_once
        yield b"x" * (SMALL + 1)
        reading.add(number)
        most_at_once = max(most_at_once, len(reading))
        for _ in range(99):
            await asyncio.sleep(0)
            yield b"x"
        reading.discard(number)

    async def read_all() -> list[bytes]:
        async def read(number: int) -> bytes:
            try:
                return await read_body(body(number), most)
            finally:
                reading.discard(number)

        return await asyncio.gather(*map(read, range(20)))

    assert [len(read) for read in asyncio.run(read_all())] == [min(SMALL + 100, most + 1)] * 20
    assert most_at_once == MOST


def test_a_reader_that_is_cancelled_leaves_its_turn_to_others() -> None:
    async def read() -> None:
        async with BodySize() as size:
            await size.add(b"x" * (5 << 20))
            await asyncio.Event().wait()

    async def cancel_many() -> int:
        for _ in range(2 * MOST):
            task = asyncio.create_task(read())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        async with BodySize() as size:
            return await size.add(b"x" * (5 << 20))

    assert asyncio.run(asyncio.wait_for(cancel_many(), 60)) == 5 << 20
