"""Processor time by kind of process, from /proc: who is whose child, and what it runs.

Kinds are the driver's Python, the driver's JVM (in which the tasks' JVM side of a local master
runs, too), the JVMs of executors, and the Python workers of all of these. Time of processes that
have ended is their parent's to tell: what a JVM or a worker tells of its children is time of
workers.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

DRIVER: Final = "driver Python"
DRIVER_JVM: Final = "driver JVM"
EXECUTOR: Final = "executor JVM"
WORKER: Final = "worker Python"
KINDS: Final = (DRIVER, DRIVER_JVM, EXECUTOR, WORKER)

_TICKS: Final = os.sysconf("SC_CLK_TCK")


class _Process(NamedTuple):
    parent: int
    own: float
    children: float


def cpu_by_kind(hosts: list[int]) -> dict[str, float]:
    """Return the seconds of this process's Spark; ``hosts`` are the workers of a cluster."""
    found = {int(e.name): p for e in Path("/proc").iterdir() if (p := _read(e)) is not None}
    below: dict[int, list[int]] = {}
    for pid, process in found.items():
        below.setdefault(process.parent, []).append(pid)
    made = dict.fromkeys(KINDS, 0.0)
    driver = os.getpid()
    made[DRIVER] += found[driver].own
    todo = [(child, DRIVER_JVM) for child in below.get(driver, ())]
    todo += [(child, EXECUTOR) for host in hosts for child in below.get(host, ())]
    while todo:
        pid, kind = todo.pop()
        command = _command(pid)
        if "CoarseGrainedExecutorBackend" in command:
            kind = EXECUTOR
        elif Path(command.split("\0")[0]).name.startswith("python"):
            kind = WORKER
        made[kind] += found[pid].own
        made[WORKER] += found[pid].children
        todo += [(child, kind) for child in below.get(pid, ())]
    return made


def forget_peak() -> None:
    """Have the peak be that of what follows, where the kernel can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mebibytes() -> float:
    """Return the peak resident memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _read(entry: Path) -> _Process | None:
    if not entry.name.isdecimal():
        return None
    with suppress(OSError):  # it has ended
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        own, children = (sum(map(int, fields[i : i + 2])) / _TICKS for i in (11, 13))
        return _Process(int(fields[1]), own, children)
    return None


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""
