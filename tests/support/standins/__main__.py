"""The process of a stand-in: serves until its parent is gone. `process` starts it."""

import asyncio
import importlib
import json
import os
import sys
import threading
import time
from dataclasses import asdict

from support.standins.process import settings_from
from support.standins.reception import Reception

LOOK_AFTER_S = 0.5


async def main(module: str) -> None:
    """Serve what the module serves.

    Args:
        module: with `start(reception)`, which returns the port.
    """
    reception = Reception(settings_from(sys.stdin.readline()))
    say({"port": await importlib.import_module(module).start(reception)})
    loop = asyncio.get_running_loop()
    threading.Thread(target=listen, args=(loop, reception), daemon=True).start()
    await asyncio.Event().wait()


def listen(loop: asyncio.AbstractEventLoop, reception: Reception) -> None:
    """Say the figures whenever a line comes, and end with the last one."""
    for _ in sys.stdin:
        loop.call_soon_threadsafe(lambda: say(asdict(reception.stats())))
    os._exit(0)


def watch(parent: int) -> None:
    """End with the parent, even if a process that it forked still holds the other end of stdin."""
    while os.getppid() == parent:
        time.sleep(LOOK_AFTER_S)
    os._exit(0)


def say(message: object) -> None:
    """Write a line that the parent reads."""
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()
    asyncio.run(main(sys.argv[1]))
