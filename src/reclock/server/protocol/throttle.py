"""Failed log-ins are few: after some, an address must wait for the next attempt.

``ALLOWED`` failures are free. Each one after them doubles the wait, up to ``LONGEST_MS``, counted
from the last failure; twice the longest wait without a failure forgets them. A success forgets the
failures with its own name, and no others: the owner of one account cannot try the passwords of
others between log-ins of his own. Of IPv6 a network (/64) is one address: a machine has all of it.
Memory is bounded: of many addresses those that failed longest ago are forgotten first, and of many
names with one address the number is kept.

Tests: tests/server/protocol/test_startup.py.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reclock.errors import Rejected

if TYPE_CHECKING:
    from reclock.clock import Clock

ALLOWED: Final = 5
FIRST_MS: Final = 1_000
LONGEST_MS: Final = 60_000
ADDRESSES: Final = 10_000
NAMES: Final = 100
_OTHERS: Final = ""
"""What counts names that are one too many; no role has this name."""


@dataclass(slots=True)
class _Failures:
    """The failures of one address: when the last one was, and how many with which name."""

    last: int
    by_name: dict[str, int] = field(default_factory=dict)

    @property
    def wait(self) -> int:
        """So many milliseconds after the last one the next attempt may come."""
        over = min(sum(self.by_name.values()) - ALLOWED, 32)
        return 0 if over < 0 else min(FIRST_MS << over, LONGEST_MS)


class Throttle:
    """Remembers who failed to log in."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse an attempt that comes too soon."""
        found = self._failures.get(place_of(address))
        left = 0 if found is None else found.last + found.wait - self._clock.now_ms()
        if left > 0:
            message = "too many failed log-ins"
            hint = f"try again in {left / 1_000:.0f} s"
            raise Rejected(message, code="53300", hint=hint)

    def failed(self, address: str, user: str) -> None:
        """Remember a failure."""
        now, place = self._clock.now_ms(), place_of(address)
        found = self._failures.pop(place, None)
        if found is None or now - found.last > 2 * LONGEST_MS:
            found = _Failures(now)
        name = user if user in found.by_name or len(found.by_name) < NAMES else _OTHERS
        found.by_name[name] = found.by_name.get(name, 0) + 1
        found.last = now
        self._failures[place] = found
        if len(self._failures) > ADDRESSES:
            self._failures.popitem(last=False)

    def succeeded(self, address: str, user: str) -> None:
        """Forget the failures of an address with a name."""
        place = place_of(address)
        found = self._failures.get(place)
        if found is not None:
            found.by_name.pop(user, None)
            if not found.by_name:
                del self._failures[place]


def place_of(address: str) -> str:
    """Return what one machine cannot choose of its address.

    >>> place_of("2001:db8::1:2:3:4"), place_of("::ffff:10.0.0.1"), place_of("10.0.0.1")
    ('2001:db8::/64', '10.0.0.1', '10.0.0.1')
    >>> place_of("")
    ''
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
