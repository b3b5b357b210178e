"""Strictly consistent streaming SQL on Apache Spark.

>>> import reclock
>>> db = reclock.open("state/")  # doctest: +SKIP
>>> db.execute("CREATE TABLE t (a INT)")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.clock import Clock, ManualClock, SystemClock
from reclock.errors import Error
from reclock.interval import Interval

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from reclock.session.database import Database

__version__ = "0.2.0.dev0"

__all__ = ["Clock", "Error", "Interval", "ManualClock", "SystemClock", "__version__", "open"]


def open(  # noqa: A001 - as reclock.open
    path: str | os.PathLike[str],
    *,
    clock: Clock | None = None,
    background: bool = True,
    spark: SparkSession | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    store: str | None = None,
    meta: str | None = None,
) -> Database:
    """Open the database in the state directory ``path``, creating it if there is none.

    With ``background`` a thread ticks once per interval; without it, time is yours:
    ``tick`` runs a step, and reads run the ticks they need. ``spark`` is a session to
    use, which stays yours: nothing of it is changed, and it is never stopped. Without one Spark
    starts when something needs it, and with the opening if it runs in the background and its
    ticks have needed Spark before: with ``master``, any Spark master, by default this machine,
    and ``conf``, settings of Spark.

    ``store`` is where files are, if not in the state directory: another directory, or an
    address such as ``s3://bucket/prefix``; ``meta`` the address of a PostgreSQL database that has
    the records. Both stay the same for as long as the database lives.
    """
    # Imports stay cheap, and Spark starts while the rest is loaded.
    from reclock.spark.early import EarlySpark  # noqa: PLC0415
    from reclock.spark.session import Spark  # noqa: PLC0415

    early = EarlySpark(path, Spark(master, conf, spark))
    if background:
        early.begin()
    from reclock.session.database import open_database  # noqa: PLC0415

    return open_database(
        path, store=store, meta=meta, clock=clock, background=background, early=early
    )
