"""Fixtures for tests that need Google's storage and warehouse. A conftest, or a test module, imports both:

from support.emulators.fixtures import cloud, emulators  # noqa: F401  pytest finds them by name
"""

import os
from collections.abc import Iterator

import pytest
from apache_beam.internal.gcp import auth
from support.emulators import process, services

_started: list[services.Cloud] = []
"""The emulators of this process: pytest makes a fixture anew for every module that imports it."""


@pytest.fixture(scope="session")
def emulators() -> Iterator[services.Cloud]:
    """Both emulators, started once a session; where they are not installed the test is skipped, or fails in CI."""
    if _started:
        yield _started[0]
        return
    require()
    with services.cloud() as running:
        _started.append(running)
        yield running
        _started.clear()


@pytest.fixture
def cloud(emulators: services.Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[services.Cloud]:
    """The emulators, with the variables that lead to them set; a test that fails shows what they wrote meanwhile."""
    for name, value in emulators.environment.items():
        monkeypatch.setenv(name, value)
    # Beam keeps the first credentials of a process, or that there were none.
    monkeypatch.setattr(auth._Credentials, "_credentials_init", False)
    monkeypatch.setattr(auth._Credentials, "_credentials", None)
    begun = [log.stat().st_size for log in emulators.logs()]
    yield emulators
    for log, start in zip(emulators.logs(), begun, strict=True):
        with log.open("rb") as file:
            file.seek(max(start, log.stat().st_size - process.SHOWN_CHARACTERS))
            print(file.read().decode(errors="replace"))  # noqa: T201  pytest shows it where the test fails


def require() -> None:
    """Skip the test where the emulators are not installed, with the reason; in CI it fails."""
    if reason := process.missing():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
