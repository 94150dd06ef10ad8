"""Stand-ins for Google's services and for any search service: they speak the real protocols on this machine.

Each runs in a process of its own, so that what it does costs the client under test nothing, and goes wrong as it is
told to:

    with serve("rag_engine", faults=Faults(rate=0.1), quota_per_minute=1500) as server:
        ...  # ask server.address
    assert server.stats().violations_per_minute == 0

Module `faults` has the faults, `quota` the counting of arrivals, and `ranking` the answers.
"""

from support.standins.faults import DEFAULT_KINDS, KINDS, Faults
from support.standins.process import Standin, serve
from support.standins.reception import Stats

__all__ = ["DEFAULT_KINDS", "KINDS", "Faults", "Standin", "Stats", "serve"]
