"""A task's report about its executor: packages, the store, reachable hosts.

This runs where our package may be missing, and every other: it needs Python's own library only,
and travels as code, not as the name of a module (``preflight``). What it finds is plain values.

Tests: tests/spark/test_preflight.py.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import pickle
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Found = dict[str, Any]
    """``host``, ``process``: where; ``wrong``: pairs of a kind and a text; ``file``, if written."""


def examination(
    packages: Mapping[str, tuple[str, int]],
    probe: bytes | None,
    visits: bytes | None,
    linger: float,
) -> Callable[[Iterable[int]], Iterator[Found]]:
    """Return what a task runs.

    ``packages`` has the version of each and how many of its numbers must be the same; ``probe``
    is a pickled pair of the store and the name of a file in it; ``visits`` are pickled pairs of a
    name and a call that must succeed. A task ends ``linger`` seconds after it began, or later:
    meanwhile others have others' turns.
    """

    def examine(numbers: Iterable[int]) -> Iterator[Found]:
        begun = time.monotonic()
        for _ in numbers:
            wrong = package_faults(packages)
            found: Found = {"host": socket.gethostname(), "process": executor_process()}
            if not wrong and probe is not None:
                found["file"], fault = store_fault(probe)
                wrong += [("store", fault)] if fault else []
            if not wrong and visits is not None:
                wrong += [("reach", fault) for fault in visit_faults(visits)]
            yield {**found, "wrong": wrong}
        time.sleep(max(0.0, begun + linger - time.monotonic()))

    return examine


def package_faults(packages: Mapping[str, tuple[str, int]]) -> list[tuple[str, str]]:
    """Return which packages cannot be imported, or are others than the driver's."""
    faults = []
    for name, (wanted, numbers) in packages.items():
        try:
            module = importlib.import_module(name)
        except Exception as error:
            faults.append(("package", f"cannot import {name} ({error})"))
            continue
        there = version_of(module)
        if there.split(".")[:numbers] != wanted.split(".")[:numbers]:
            faults.append(("package", f"{name} is {there}, the driver's is {wanted}"))
    return faults


def version_of(module: Any) -> str:
    """Return the version of a module that has been imported."""
    said = getattr(module, "__version__", None)
    if isinstance(said, str):
        return said
    try:
        return importlib.metadata.version(module.__name__)
    except importlib.metadata.PackageNotFoundError:
        return "of no version"


def store_fault(probe: bytes) -> tuple[str | None, str | None]:
    """Read a file of the driver's and write another; return its name, and what is wrong."""
    try:
        store, name = pickle.loads(probe)
        content = store.file(name).whole().to_pybytes()
    except Exception as error:
        return None, f"cannot read what the driver wrote to the store ({told(error)})"
    try:
        answer = f"{name}-{os.urandom(8).hex()}"
        path = store.scratch(name)
        path.write_bytes(content)
        store.publish(path, answer, durable=False)
    except Exception as error:
        return None, f"cannot write to the store ({told(error)})"
    return answer, None


def visit_faults(visits: bytes) -> list[str]:
    """Return what cannot be reached."""
    faults = []
    for name, visit in pickle.loads(visits):
        try:
            visit()
        except Exception as error:
            faults.append(f"cannot reach {name} ({told(error)})")
    return faults


def told(error: Exception) -> str:
    """Return what an error says, with its detail, in one line."""
    detail = getattr(error, "detail", None)
    lines = str(getattr(error, "message", error)).splitlines() or [type(error).__name__]
    return f"{lines[0]}: {detail}" if detail else lines[0]


def executor_process() -> int:
    """Return the process of the executor: a worker's parent forks workers, its parent is that."""
    try:
        with open(f"/proc/{os.getppid()}/stat", encoding="ascii", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return os.getppid()
