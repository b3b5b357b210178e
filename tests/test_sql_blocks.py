"""Every SQL block of every document runs, and does what the document says of it.

A page, or the whole tutorial, is one session with a database of its own, without Spark (with it in
the slow tests): real operators, expressions in plain Python, topics in memory, files in a directory
of its own, and a clock that stands at noon of 2026-11-16 but for the second that passes before each
statement. ``documents`` says how pages state what happens.
"""

from __future__ import annotations

import gzip
import io
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from documents import Part, Statement, parts, statements
from engines.local_engine import LocalEngine
from reclock import ManualClock
from reclock.config import parse_duration
from reclock.engine.place import segments_of
from reclock.errors import Error
from reclock.rows.text_table import table
from reclock.session.database import Database
from reclock.sinks.topics import NewTopic
from reclock.spark.engine import SparkEngine
from reclock.sql.parse import parse_statement
from reclock.sql.statement import Copy, CreateSource, Subscribe
from reclock.sql.statement.source import KafkaConnection
from reclock.testing.kafka_log import MemoryKafka
from reclock.testing.kafka_upstream import Record
from reclock.testing.outlets import MemoryOutlets
from reclock.testing.schema_registry import running_registry

if TYPE_CHECKING:
    from reclock.engine.engine import Engine

ROOT = Path(__file__).parents[1]
NOON_MS = 1_794_830_400_000
REGISTRY = "http://localhost:8081"


TUTORIAL = ROOT / "docs" / "tutorial"


def read(path: Path) -> str:
    """Return a page; the pages of the tutorial, which continue each other, as one."""
    if path.is_dir():
        return "".join(read(page) for page in sorted(path.glob("*.md")))
    return path.read_text(encoding="utf-8")


PAGES = [
    path
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), TUTORIAL])
    if path.parent != TUTORIAL
    and "sql" in (kinds := {part.kind for part in parts(read(path))})
    and "postgres" not in kinds
]


class Reader:
    """Runs what a page says, from its beginning to its end."""

    def __init__(self, home: Path, undo: ExitStack, engine: Engine) -> None:
        self.home = home
        self.clock = ManualClock(NOON_MS)
        self.kafka = MemoryKafka()
        self.undo = undo
        self.registry: str | None = None
        self.wrong: list[str] = []
        self.db = undo.enter_context(
            Database(
                home / "state", engine, clock=self.clock, background=False,
                clusters=lambda connection: self.kafka.cluster(connection.isolation),
                outlets=MemoryOutlets(self.kafka),
            )
        )  # fmt: skip
        self.session = undo.enter_context(self.db.session())

    def do(self, part: Part) -> None:
        match part.kind:
            case "file":
                self.write(self.home / part.name, part.text)
            case "topic":
                self.produce(part.name, part.text)
            case "time":
                self.clock.advance(parse_duration(part.name))
            case _:
                for statement in statements(part):
                    self.run(statement)

    def run(self, statement: Statement) -> None:
        self.clock.advance(1_000)
        self.db.tick()
        try:
            given = self.given(statement.text)
        except Error as error:
            said = error.message.startswith(statement.message or "")
            if error.code != statement.code or not said:
                self.note(statement, f"fails: {error.code} {error}")
            return
        if statement.code is not None:
            self.note(statement, f"does not fail:\n{given}")
        elif statement.rows is not None:
            lines = [line.rstrip() for line in given.splitlines()]
            if not statement.rows.endswith(")"):
                lines = [line for line in lines if not line.endswith((" row)", " rows)"))]
            if "\n".join(lines) != statement.rows:
                self.note(statement, f"gives\n{given}")

    def note(self, statement: Statement, what: str) -> None:
        self.wrong.append(f"line {statement.line}: {statement.text};\n{what}")

    def given(self, text: str) -> str:
        """Run a statement and return what the shell would print."""
        if REGISTRY in text:
            text = text.replace(REGISTRY, self.registered())
        parsed = parse_statement(text)
        match parsed:
            case CreateSource(connection=KafkaConnection(topic=topic)):
                self.kafka.create(NewTopic(topic))
            case Copy():
                return "".join(self.session.copy(text, timeout=0))
            case Subscribe():
                with self.session.subscribe(text) as changes:
                    rows = [changes.values(update) for update in changes.fetch()]
                    return table(rows, changes.schema)
        result = self.session.execute(text)
        return result.tag if result.schema is None else table(result.rows, result.schema)

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        match path.suffix:
            case ".gz":
                path.write_bytes(gzip.compress(text.encode()))
            case ".parquet":
                pl.read_csv(io.StringIO(text), try_parse_dates=True).write_parquet(path)
            case _:
                path.write_text(text, encoding="utf-8")

    def produce(self, topic: str, text: str) -> None:
        self.kafka.create(NewTopic(topic))
        for line in text.splitlines():
            key, arrow, value = line.rpartition(" => ")
            found = value.encode() if value != "NULL" else None
            self.kafka.produce(topic, 0, Record(found, key.encode() if arrow else None))

    def registered(self) -> str:
        if self.registry is None:
            self.registry = self.undo.enter_context(running_registry()).url
        return self.registry


def do_all(page: Path, home: Path, engine: Engine) -> None:
    with ExitStack() as undo:
        reader = Reader(home, undo, engine)
        for part in parts(read(page)):
            reader.do(part)
        if reader.wrong:
            pytest.fail("\n\n".join(reader.wrong), pytrace=False)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_says_in_sql_is_so(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    do_all(page, tmp_path, LocalEngine())


@pytest.mark.slow(seconds=5)
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_it_is_so_on_spark(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    do_all(page, tmp_path, SparkEngine(segments_of(tmp_path / "state")))
