"""What is not well though everything moves: the overview tells it, ``/readyz`` does not.

- An object that holds errors in the place of rows: who reads it gets an error.
- A disk of which less than ``DISK_SHARE`` is free: when it is full, nothing is written any more.
- An object that keeps nothing from ``NEAR_MS`` or less from now on, and was not renewed though half
  of the last tenth of its window is over.

Tests: tests/server/http/test_trouble.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.server.http.health import told

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from reclock.server.http.health import Reason, To
    from reclock.session.database import Database

DISK_SHARE: Final = 0.1
NEAR_MS: Final = 6 * 3_600_000


def trouble(db: Database, to: To, known: Set[str] = frozenset()) -> Iterator[Reason]:
    """Yield what is not well, but for objects that are ``known`` to fail otherwise."""
    facts = db.facts
    for fault in facts.faults.look():
        if fault.name not in known:
            parts = told(fault.error, to)
            yield {"kind": fault.kind, "name": fault.name, "state": "errors", **parts}
    disk = facts.disk()
    if disk is not None and disk.free < DISK_SHARE * disk.size:
        yield {
            "kind": "disk", "name": "of the state", "state": "nearly full", "code": "53100",
            "message": f"{_gib(disk.free)} of {_gib(disk.size)} GiB are free",
            "hint": "make room, or keep less: reclock.arrangement_sizes says what is stored",
        }  # fmt: skip
    near = min(NEAR_MS, facts.lifetime_ms // 20)
    for name, left in sorted(facts.expirations().items()):
        if left < near:
            yield {
                "kind": "object", "name": name, "state": "expires", "code": "57P01",
                "message": f"it keeps nothing any more in {max(0, left) // 60_000} minutes",
                "hint": "restart reclock before then; with expiration_renewal = true it goes on by "
                        "itself",
            }  # fmt: skip


def _gib(size: int) -> str:
    return f"{size / (1 << 30):,.1f}"
