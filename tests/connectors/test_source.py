"""Every source keeps what ``ingest`` relies on: the conformance suite, for all of them."""

from __future__ import annotations

import gzip
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.source import CASES, Upstream
from reclock.connectors.files.parquet import Parquet
from reclock.connectors.files.source import DirectorySource, FileSource
from reclock.connectors.files.text import Header, Text
from reclock.connectors.generator.source import GeneratorSource
from reclock.connectors.kafka.source import KafkaSource
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.source import Case


class Column(NamedTuple):
    name: str
    arrow: pa.DataType
    nullable: bool = True


def kafka(path: Path) -> Upstream:
    broker = MemoryKafka()
    topic = broker.create_topic(3)
    source, origin = KafkaSource.create(broker.cluster(), topic)
    numbers = count()

    def grow() -> None:
        for n in (next(numbers), next(numbers)):
            broker.produce(topic, n % 3, Record(b"%d" % n), Record(None))

    return Upstream(source, origin, grow)


def generator(kind: str, path: Path, **options: str) -> Upstream:
    source, origin = GeneratorSource.create(kind, {"events_per_tick": "120", **options})
    return Upstream(source, origin, lambda: None)


def a_file(path: Path) -> Upstream:
    file = path / "log"
    file.write_bytes(b"begun")
    source, origin = FileSource.create(str(file), Text())

    def grow() -> None:
        with file.open("ab") as out:
            out.write(b" and ended\r\n\nbegun")

    return Upstream(source, origin, grow)


def a_directory(path: Path) -> Upstream:
    source, origin = DirectorySource.create(str(path), Text(Header(("a", "b"))))
    numbers = count()

    def grow() -> None:
        n = next(numbers)
        (path / f"{9 - n}.csv").write_bytes(b"a,b\n1,%d\n2,ended" % n)
        for file in path.glob("*.csv"):
            with file.open("ab") as out:
                out.write(b"\n%d,x" % n)
        packed = path / "log.gz"
        with packed.open("ab") as out:
            out.write(gzip.compress(b"7,8\n" if n else b"a,b\n5,6\n"))

    return Upstream(source, origin, grow)


def parquet_files(path: Path) -> Upstream:
    content = Parquet((Column("n", pa.int64()), Column("t", pa.string(), nullable=False)))
    source, origin = DirectorySource.create(str(path), content)
    numbers = count()

    def grow() -> None:
        n = next(numbers)
        table = pa.table({"t": ["x", None, "y"], "n": ["1", "2", "?"]})
        pq.write_table(table, path / f"{n}.parquet", row_group_size=2)

    return Upstream(source, origin, grow)


SOURCES: dict[str, Callable[[Path], Upstream]] = {
    "kafka in memory": kafka,
    "counter": partial(generator, "counter", max_cardinality="100"),
    "person": partial(generator, "auction", relation="person"),
    "auction": partial(generator, "auction", relation="auction"),
    "bid": partial(generator, "auction"),
    "bank": partial(generator, "bank"),
    "file": a_file,
    "directory": a_directory,
    "parquet": parquet_files,
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_every_source(name: str, case: Case, tmp_path: Path) -> None:
    case(SOURCES[name](tmp_path))
