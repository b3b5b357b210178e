"""How much one server does for its clients: sizes, rates and streams, all bounded.

Tests: tests/server/http/test_limits.py.
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Final

from reclock.errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

BODY_BYTES: Final = 1 << 20
"""So large a request may be."""
ROWS: Final = 10_000
"""So many rows an answer has, unless the request asks for fewer or more."""
MOST_ROWS: Final = 100_000
ANSWER_BYTES: Final = 32 << 20
"""So large the rows of an answer may be; what is cut off is said."""
STATEMENTS: Final = 16
"""So many statements run at once; others wait."""
WAITING: Final = 64
"""So many may wait."""
STREAMS: Final = 512
"""So many subscriptions are followed at once."""
RATE: Final = 100
"""So many requests a second an address may make, in the long run."""
BURST: Final = 300
ADDRESSES: Final = 10_000


class Rates:
    """A bucket of requests for each address, which fills as time goes by."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> None:
        """Count a request, or refuse it."""
        now = self._clock()
        left, then = self._left.pop(address, (float(BURST), now))
        left = min(BURST, left + (now - then) * RATE)
        self._left[address] = max(0.0, left - 1), now
        if len(self._left) > ADDRESSES:
            self._left.popitem(last=False)
        if left < 1:
            message = "too many requests"
            raise Rejected(message, code="53400", hint=f"make at most {RATE} a second")


async def body_of(request: Request) -> bytes:
    """Return the body of a request, if it is not too large."""
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > BODY_BYTES:
            message = "the request is too large"
            raise Rejected(message, code="54000", detail=f"it may have {BODY_BYTES} bytes")
    return bytes(found)
