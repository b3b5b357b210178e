"""Small tables into Spark and back, through plans that are built once.

Planning a query costs Spark more than running it on a few rows. So a plan whose leaf is "the
table in this file" is made once per kind of question; each use writes the file anew and
executes the same plan again: no analysis, no optimisation, one task, no shuffle. The file
is the driver's, so the plan must run where the driver's files are: in a local master.
Elsewhere the table travels as a local relation and the query is planned each time.

Rows come back in the order in which they went in, if the query keeps it: there is one
partition from end to end.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from pyspark.sql import DataFrame, SparkSession

PLANS: Final = 256
"""How many plans are kept; the one that was not used for longest is forgotten."""


class Exchange:
    """Executes queries over tables of the driver; one user at a time."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._local = str(session.sparkContext.master).startswith("local[")
        self._home = tempfile.TemporaryDirectory(prefix="reclock-exchange-")
        self._plans: OrderedDict[Hashable, tuple[Path, DataFrame]] = OrderedDict()
        self._made = 0

    def close(self) -> None:
        """Forget all plans and files."""
        self._plans.clear()
        self._home.cleanup()

    def run(
        self, kind: Hashable, table: pa.Table, query: Callable[[DataFrame], DataFrame]
    ) -> pa.Table:
        """Return ``query`` of ``table``.

        Calls with equal ``kind`` must have equal queries and tables of equal schema.
        """
        if not self._local:
            return query(self._session.createDataFrame(table).coalesce(1)).toArrow()
        if kind not in self._plans:
            self._made += 1
            path = Path(self._home.name) / f"{self._made}.arrow"
            self._plans[kind] = path, query(self._leaf(path, table.schema))
            if len(self._plans) > PLANS:
                forgotten, _ = self._plans.popitem(last=False)[1]
                forgotten.unlink(missing_ok=True)
        self._plans.move_to_end(kind)
        path, plan = self._plans[kind]
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return plan.toArrow()

    def _leaf(self, path: Path, schema: pa.Schema) -> DataFrame:
        """Return the frame that reads whatever is in ``path`` when it is executed."""
        where = str(path)

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                with pa.OSFile(where) as file:
                    yield from pa.ipc.open_file(file).read_all().to_batches()

        one = self._session.range(0, 1, 1, 1)
        return one.mapInArrow(read, from_arrow_schema(schema, prefer_timestamp_ntz=True))
