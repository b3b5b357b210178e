"""``mz_now()``, the time of the data, and what it is compared with.

Spark never computes ``mz_now()``: in a one-off query it is replaced by the time of the
read, in a maintained one it becomes the validity of rows (``plan.temporal``). It is a number
of milliseconds; ``mz_timestamp`` makes one of a time, rounded down.
"""

from __future__ import annotations

from reclock.sql.plan.functions.overload import Overload
from reclock.sql.types import BIGINT, DATE, TIMESTAMP, TIMESTAMPTZ

_NO_TIME = "CAST(raise_error('mz_now() was not given its time') AS BIGINT)"

OVERLOADS = (
    Overload("mz_now", (), BIGINT, _NO_TIME, never_null=True),
    Overload("mz_timestamp", (TIMESTAMPTZ,), BIGINT, "unix_millis({0})"),
    Overload("mz_timestamp", (TIMESTAMP,), BIGINT, "unix_millis(CAST({0} AS TIMESTAMP))"),
    Overload("mz_timestamp", (DATE,), BIGINT, "unix_millis(CAST({0} AS TIMESTAMP))"),
    Overload("mz_timestamp", (BIGINT,), BIGINT, "{0}"),
)
