"""The text of a Spark master: whose cores it means, and on which machine.

A master is *own* if its tasks run on this machine, below this process; it is *here* if its
executors are processes of this machine, so that they find its Python where this process does.

Tests: tests/spark/test_master.py.
"""

from __future__ import annotations

import os
import re
import socket
from typing import Final

DEFAULT: Final = "local[*]"
_OWN: Final = re.compile(r"local(?:\[(\d+|\*)(?:,\d+)?\])?")
_STANDALONE: Final = re.compile(r"spark://([^,]+)")
_PORT: Final = re.compile(r":\d+$")


def is_own(master: str) -> bool:
    """Return whether the tasks of a master run on this machine, below this process.

    >>> is_own("local[2]"), is_own("local-cluster[2,1,1024]"), is_own("spark://host:7077")
    (True, False, False)
    """
    return _OWN.fullmatch(master) is not None


def own_cores(master: str) -> int | None:
    """Return how many cores a master has, if they are this process's; else None.

    >>> own_cores("local[3]"), own_cores("local"), own_cores("yarn")
    (3, 1, None)
    """
    found = _OWN.fullmatch(master)
    if found is None:
        return None
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


def is_here(master: str) -> bool:
    """Return whether the executors of a master are processes of this machine, as far as it says.

    >>> is_here("local-cluster[2,1,1024]"), is_here("spark://127.0.0.1:7077"), is_here("yarn")
    (True, True, False)
    """
    return master.startswith("local") or is_loopback(master)


def is_loopback(master: str) -> bool:
    """Return whether a master can be reached from this machine only.

    >>> is_loopback("spark://localhost:7077"), is_loopback("spark://10.0.0.1:7077,10.0.0.2:7077")
    (True, False)
    """
    found = _STANDALONE.fullmatch(master)
    if found is None:
        return False
    try:
        address = socket.gethostbyname(_PORT.sub("", found[1]))
    except OSError:
        return False
    return address.startswith("127.")


def is_connect(master: str) -> bool:
    """Return whether this is the address of a Spark Connect server.

    >>> is_connect("sc://host:15002"), is_connect("spark://host:7077")
    (True, False)
    """
    return master.startswith("sc://")
