"""node-postgres: its own implementation of the protocol, in JavaScript."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import pytest

from engines.model_engine import ModelEngine
from nodejs import node
from reclock.dev.jars import locked
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.server.server import Server

VERSION = "8.13.1"

SCRIPT = """
const { Client, Pool } = require("pg");
const where = { host: "127.0.0.1", port: Number(process.argv[2]), database: "reclock" };
const joe = { ...where, user: "joe", password: "hunter2" };
const said = {};

async function failure(promise) {
  try { await promise; return null; } catch (error) {
    return { code: error.code, hint: Boolean(error.hint), position: error.position };
  }
}

async function main() {
  said.wrong = await failure(new Client({ ...joe, password: "wrong" }).connect());
  const client = new Client({ ...joe, application_name: "node", statement_timeout: 5000 });
  await client.connect();
  said.rows = (await client.query("SELECT id, name, price FROM t ORDER BY id")).rows;
  said.fields = (await client.query("SELECT id, name FROM t LIMIT 0")).fields.map(f => f.name);
  const row = (await client.query(
    "SELECT $1::int AS i, $2::text AS t, $3::boolean AS b, $4::timestamptz AS at,"
    + " $5::text[] AS tags, $6::json AS data, $7::bytea AS bytes, $8::double precision AS d,"
    + " $9::numeric AS n, $10::date IS NULL AS none",
    [7, "o'k\\n", true, new Date(Date.UTC(2026, 10, 16)), ["a,b", null, '"'], { x: [1, null] },
     Buffer.from([0, 255]), 0.5, "1.50", null])).rows[0];
  said.row = { ...row, at: row.at.toISOString(), bytes: [...row.bytes] };
  for (const id of [1, 2, 9]) {
    const found = await client.query({ name: "by-id", text: "SELECT name FROM t WHERE id = $1",
                                       values: [id] });
    said["name" + id] = found.rows.map(r => r.name);
  }
  said.array = (await client.query({ text: "SELECT id FROM t ORDER BY id",
                                     rowMode: "array" })).rows;
  said.forbidden = await failure(client.query("DELETE FROM t"));
  said.undefined = await failure(client.query("SELECT * FROM nothing"));
  said.after = (await client.query("SELECT 1 AS one")).rows[0].one;
  said.settings = (await client.query("SHOW application_name")).rows[0].application_name;
  said.several = (await client.query("SELECT 1 AS a; SELECT 2 AS b")).map(r => r.rows[0]);
  const following = client.query("SUBSCRIBE t").then(() => null, error => error.code);
  const ask = setInterval(() => new Client(joe).cancel(client, client.activeQuery), 100);
  said.cancelled = await following;
  clearInterval(ask);
  await client.end();

  const pool = new Pool({ ...where, user: "boss", password: "hunter2", max: 3 });
  const writer = await pool.connect();
  await writer.query("BEGIN");
  said.inserted = (await writer.query("INSERT INTO log VALUES ($1), ($2)", [5, 6])).rowCount;
  await writer.query("COMMIT");
  writer.release();
  const sums = await Promise.all([...Array(9)].map((_, i) => pool.query(
    "SELECT sum(n) + $1::bigint AS total FROM log", [i])));
  said.sums = sums.map(r => r.rows[0].total);
  await pool.end();
  console.log(JSON.stringify(said));
}
main().catch(error => { console.error(error); process.exit(1); });
"""


@pytest.fixture(scope="module")
def modules() -> Path:
    """The directory that has ``pg``, fetched once per user; it is there whole or not at all."""
    cache = platformdirs.user_cache_path("reclock")
    home = cache / f"node-postgres-{VERSION}"
    with locked(cache / "node-postgres.lock"):
        if not home.is_dir():
            made = Path(tempfile.mkdtemp(prefix=f"{home.name}-", dir=cache))
            try:
                asked = ("npm", "install", "--prefix", str(made), f"pg@{VERSION}")
                done = node(*asked, "--no-audit", "--no-fund", "--ignore-scripts", cwd=made)
                if done.returncode:
                    pytest.fail(f"node-postgres could not be fetched from npm:\n{done.stderr}")
                made.rename(home)
            finally:
                shutil.rmtree(made, ignore_errors=True)
    return home


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Database(tmp_path_factory.mktemp("served") / "state", ModelEngine())
    made.execute("ALTER SYSTEM SET timestamp_interval = '50ms'")
    made.execute(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, price NUMERIC(12,2));"
        "INSERT INTO t VALUES (1, 'one', 1.5), (2, NULL, 0); CREATE TABLE log (n INT);"
        "CREATE USER joe PASSWORD 'hunter2'; GRANT SELECT ON t TO joe;"
        "CREATE USER boss PASSWORD 'hunter2' SUPERUSER"
    )
    with made, serving(made, Options(port=0, grace=1)) as server:
        yield server


def test_node_postgres(server: Server, modules: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.js"
    script.write_text(SCRIPT)
    done = node(str(script), str(server.port), env={"NODE_PATH": str(modules / "node_modules")})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "wrong": {"code": "28P01", "hint": True},
        "rows": [
            {"id": "1", "name": "one", "price": "1.50"},
            {"id": "2", "name": None, "price": "0.00"},
        ],
        "fields": ["id", "name"],
        "row": {
            "i": 7, "t": "o'k\n", "b": True, "at": "2026-11-16T00:00:00.000Z",
            "tags": ["a,b", None, '"'], "data": {"x": [1, None]}, "bytes": [0, 255], "d": 0.5,
            "n": "1.500000000", "none": True,
        },
        "name1": ["one"],
        "name2": [None],
        "name9": [],
        "array": [["1"], ["2"]],
        "forbidden": {"code": "42501", "hint": True},
        "undefined": {"code": "42P01", "hint": True, "position": "15"},
        "after": 1,
        "settings": "node",
        "several": [{"a": 1}, {"b": 2}],
        "cancelled": "57014",
        "inserted": 2,
        "sums": [str(11 + i) for i in range(9)],
    }  # fmt: skip
