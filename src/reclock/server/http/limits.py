"""Limits of one server: sizes, rates and streams, all bounded.

Tests: tests/server/http/test_limits.py.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect

from reclock.errors import Interrupted, InvalidValue, Rejected
from reclock.server.protocol.throttle import place_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

BODY_BYTES: Final = 1 << 20
"""So large a request may be."""
LOGIN_BYTES: Final = 16 << 10
"""So large a log-in may be: anybody may send one."""
BODY_SECONDS: Final = 30.0
"""So long it may take to come."""
DEEPEST: Final = 100
"""So deep the lists and objects of a request may be."""
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
        now, address = self._clock(), place_of(address)
        left, then = self._left.pop(address, (float(BURST), now))
        left = min(BURST, left + (now - then) * RATE)
        self._left[address] = max(0.0, left - 1), now
        if len(self._left) > ADDRESSES:
            self._left.popitem(last=False)
        if left < 1:
            message = "too many requests"
            raise Rejected(message, code="53400", hint=f"make at most {RATE} a second")


async def body_of(request: Request, most: int = BODY_BYTES) -> bytes:
    """Return the body of a request, if it is not too large and comes in time."""
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                found += chunk
                if len(found) > most:
                    message = "the request is too large"
                    raise Rejected(message, code="54000", detail=f"it may have {most} bytes")
    except TimeoutError as cause:
        message = "the request did not come to its end"
        hint = f"send all of it within {BODY_SECONDS:.0f} s"
        raise Rejected(message, code="57014", hint=hint) from cause
    except ClientDisconnect as cause:
        message = "the client has gone"
        raise Interrupted(message, code="08006") from cause
    return bytes(found)


def checked(value: Any) -> Any:
    """Return a value of a request, if all its texts are texts of SQL and it is not too deep.

    JSON can say characters that UTF-8 cannot, and the character zero, which no text of SQL has.
    """
    left = [(value, 0)]
    while left:
        one, depth = left.pop()
        if depth > DEEPEST:
            message = "the request is nested too deeply"
            raise Rejected(message, code="54000", detail=f"it may be {DEEPEST} levels deep")
        if isinstance(one, str):
            _check_text(one)
        elif isinstance(one, list):
            left += [(each, depth + 1) for each in one]
        elif isinstance(one, dict):
            left += [(each, depth + 1) for pair in one.items() for each in pair]
    return value


def _check_text(text: str) -> None:
    if "\0" in text or not _is_unicode(text):
        message = "a text of the request is not UTF-8, or has the character zero"
        raise InvalidValue(message, code="22021", hint="send bytes as bytea: '\\\\x00'")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
