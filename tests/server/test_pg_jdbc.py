"""JDBC's metadata: PostgreSQL's driver in a JVM of its own, asked through py4j."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from engines.model_engine import ModelEngine
from reclock.dev.jars import JDBC_VERSION, jdbc_jars
from reclock.java import find_java
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

MADE = """
CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT NOT NULL DEFAULT 'x', price NUMERIC(12,2),
                code VARCHAR(10), at TIMESTAMPTZ, tags TEXT[], data JSON);
CREATE TABLE pair (a INT, b TEXT, PRIMARY KEY (b, a));
CREATE VIEW v AS SELECT id, name FROM t;
CREATE MATERIALIZED VIEW m AS SELECT name, count(*) AS n FROM t GROUP BY name;
CREATE INDEX t_name ON t (name, id);
CREATE SOURCE g FROM LOAD GENERATOR counter;
CREATE USER joe; GRANT SELECT ON t TO joe
"""


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    (bridge,) = Path(spark.origin).parent.glob("jars/py4j-*.jar")
    driver = jdbc_jars(print) / f"postgresql-{JDBC_VERSION}.jar"
    port, process = launch_gateway(
        classpath=str(driver), jarpath=str(bridge), java_path=str(find_java()),
        die_on_exit=True, return_proc=True,
    )  # fmt: skip
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(60)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture(scope="module")
def metadata(java: JavaGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = Database(tmp_path_factory.mktemp("served") / "state", ModelEngine(), background=False)
    made.execute(MADE)
    options = Options(port=0, trusts_local=True, grace=1)
    with made, serving(made, options) as server:
        java.jvm.java.lang.Class.forName("org.postgresql.Driver")
        url = f"jdbc:postgresql://127.0.0.1:{server.port}/reclock?user=me"
        connection = java.jvm.java.sql.DriverManager.getConnection(url)
        try:
            yield connection.getMetaData()
        finally:
            connection.close()


def rows(answer: Any, *names: str) -> list[tuple[str | None, ...]]:
    """Return some columns of an answer, as text."""
    found = []
    while answer.next():
        found.append(tuple(answer.getString(name) for name in names))
    return found


def test_schemas_tables_and_columns(metadata: Any, java: JavaGateway) -> None:
    schemas = rows(metadata.getSchemas(), "TABLE_SCHEM")
    assert schemas == [("information_schema",), ("pg_catalog",), ("public",), ("reclock",)]
    assert rows(metadata.getCatalogs(), "TABLE_CAT") == [("reclock",)]
    wanted = ["TABLE", "VIEW", "FOREIGN TABLE", "MATERIALIZED VIEW"]
    kinds = java.new_array(java.jvm.java.lang.String, len(wanted))
    for place, kind in enumerate(wanted):
        kinds[place] = kind
    assert rows(metadata.getTables(None, "public", "%", kinds), "TABLE_NAME", "TABLE_TYPE") == [
        ("g", "FOREIGN TABLE"),
        ("m", "MATERIALIZED VIEW"),
        ("pair", "TABLE"),
        ("t", "TABLE"),
        ("v", "VIEW"),
    ]
    names = ("COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "COLUMN_DEF")
    assert rows(metadata.getColumns(None, "public", "t", "%"), *names) == [
        ("id", "int8", "19", "0", "0", None),
        ("name", "text", "2147483647", "0", "0", "'x'::text"),
        ("price", "numeric", "12", "2", "1", None),
        ("code", "varchar", "10", "0", "1", None),
        ("at", "timestamptz", "35", "6", "1", None),
        ("tags", "_text", "2147483647", "0", "1", None),
        ("data", "json", "2147483647", "0", "1", None),
    ]
    everything = rows(metadata.getColumns(None, None, "%", "%"), "TABLE_SCHEM", "TABLE_NAME")
    assert {("public", "m"), ("reclock", "ticks"), ("pg_catalog", "pg_class")} <= set(everything)


def test_keys_and_indexes(metadata: Any) -> None:
    names = ("COLUMN_NAME", "KEY_SEQ", "PK_NAME")
    found = rows(metadata.getPrimaryKeys(None, "public", "pair"), *names)
    assert sorted(found, key=lambda row: str(row[1])) == [
        ("b", "1", "pair_pkey"),
        ("a", "2", "pair_pkey"),
    ]
    names = ("INDEX_NAME", "NON_UNIQUE", "ORDINAL_POSITION", "COLUMN_NAME")
    assert rows(metadata.getIndexInfo(None, "public", "t", False, False), *names) == [
        ("t_pkey", "f", "1", "id"),
        ("t_name", "t", "1", "name"),
        ("t_name", "t", "2", "id"),
    ]
    assert rows(metadata.getImportedKeys(None, "public", "t"), "PKTABLE_NAME") == []
    assert rows(metadata.getBestRowIdentifier(None, "public", "t", 1, True), "COLUMN_NAME") == [
        ("id",)
    ]


def test_types_functions_and_privileges(metadata: Any) -> None:
    types = dict(rows(metadata.getTypeInfo(), "TYPE_NAME", "DATA_TYPE"))
    assert (types["int8"], types["text"], types["numeric"]) == ("-5", "12", "2")
    assert ("abs",) in rows(metadata.getFunctions(None, None, "ab%"), "FUNCTION_NAME")
    assert rows(metadata.getFunctionColumns(None, None, "upper", "%"), "TYPE_NAME") == [
        ("text",),
        ("text",),
    ]
    assert ("joe", "SELECT") in rows(
        metadata.getTablePrivileges(None, "public", "t"), "GRANTEE", "PRIVILEGE"
    )
    assert metadata.getMaxColumnsInIndex() == 32
    assert "subscribe" in metadata.getSQLKeywords().split(",")
    assert rows(metadata.getUDTs(None, None, "%", None), "TYPE_NAME") == []
    assert rows(metadata.getProcedures(None, None, "%"), "PROCEDURE_NAME") == []
