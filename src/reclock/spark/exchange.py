"""Small tables into Spark and back, through plans that are built once.

Planning a query costs Spark more than running it on a few rows. So a plan whose leaf is "the table
in this file" is made once per kind of question; each use rewrites the file and executes the same
plan again: no analysis, no optimisation, one task, no shuffle. The file is the driver's, so the
plan must run where the driver's files are: in a local master. Elsewhere the table travels as a
local relation and the query is planned each time. So it does with the first question of all, which
a process that starts again waits for: the file is read by a Python worker of Spark's, and to start
one takes as long as the answer. It starts after that.

Invariant: a plan is executed again only if nothing in it remembers. Spark keeps what a shuffle, a
broadcast or a subquery computed with the plan, and would answer the next question with it; a query
that needs one is planned again for each use.

Rows come back in the order in which they went in, if the query keeps it: there is one
partition from end to end.

Tests: tests/spark/test_exchange.py.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from reclock.spark.local_relation import local_relation
from reclock.spark.pool import Pool, titled
from reclock.spark.stoppable import is_stopped
from reclock.spark.worker import settle

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from pyspark.sql import DataFrame, SparkSession

PLANS: Final = 256
"""How many plans are kept; the one that was not used for longest is forgotten."""

_REMEMBERS: Final = re.compile(r"Exchange|Broadcast|InMemory|[Ss]ubquery")
"""Words in the text of plans whose second execution may answer from the first."""


class Exchange:
    """Executes queries over tables of the driver; one user at a time."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._local = str(session.sparkContext.master).startswith("local[")
        self._home = Path(tempfile.mkdtemp(prefix="reclock-exchange-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self._home, ignore_errors=True)
        self._plans: OrderedDict[Hashable, tuple[Path, DataFrame | None]] = OrderedDict()
        self._made = 0
        self._begun = False

    @property
    def is_over(self) -> bool:
        """Whether its Spark was stopped."""
        return is_stopped(self._session.sparkContext)

    def close(self) -> None:
        """Forget all plans and files."""
        self._plans.clear()
        self._remove()

    def run(
        self, kind: Hashable, table: pa.Table, query: Callable[[DataFrame], DataFrame]
    ) -> pa.Table:
        """Return ``query`` of ``table``.

        Calls with equal ``kind`` must have equal queries and tables of equal schema.
        """
        with titled(self._session.sparkContext, "tick · expressions", Pool.TICKS):
            return self._run(kind, table, query)

    def _run(
        self, kind: Hashable, table: pa.Table, query: Callable[[DataFrame], DataFrame]
    ) -> pa.Table:
        if not self._local:
            return query(self._relation(table)).toArrow()
        if not self._begun:
            self._begun = True
            answer = query(self._relation(table)).toArrow()
            Thread(target=self._start_worker, name="reclock-worker", daemon=True).start()
            return answer
        if kind not in self._plans:
            self._made += 1
            path = self._home / f"{self._made}.arrow"
            made = query(self._leaf(path, table.schema))
            self._plans[kind] = path, made if is_repeatable(made) else None
            if len(self._plans) > PLANS:
                forgotten, _ = self._plans.popitem(last=False)[1]
                forgotten.unlink(missing_ok=True)
        self._plans.move_to_end(kind)
        path, plan = self._plans[kind]
        if plan is None:
            plan = query(self._leaf(path, table.schema))
        path.unlink(missing_ok=True)  # to cut a file off makes some file systems sync it
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return plan.toArrow()

    def _relation(self, table: pa.Table) -> DataFrame:
        """Return the frame of a table that travels with its plan."""
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
        return local_relation(self._session, table, schema).coalesce(1)

    def _start_worker(self) -> None:
        """Have a Python worker for the questions that follow."""
        with suppress(Exception):  # who needs one finds out, and says so
            self._session.range(0, 1, 1, 1).mapInArrow(iter, "id bigint").toArrow()

    def _leaf(self, path: Path, schema: pa.Schema) -> DataFrame:
        """Return the frame that reads whatever is in ``path`` when it is executed."""
        where = str(path)

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            settle()
            for _ in batches:
                with pa.OSFile(where) as file:
                    yield from pa.ipc.open_file(file).read_all().to_batches()

        one = self._session.range(0, 1, 1, 1)
        return one.mapInArrow(read, from_arrow_schema(schema, prefer_timestamp_ntz=True))


def is_repeatable(plan: DataFrame) -> bool:
    """Return whether every execution of a plan computes all of it."""
    physical = plan._jdf.queryExecution().executedPlan()  # noqa: SLF001 - ``explain`` only prints
    return _REMEMBERS.search(physical.toString()) is None
