"""dbt itself, in an environment of its own, over the example project and others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import psycopg
import pytest

from engines.model_engine import ModelEngine
from reclock.dev.jars import locked
from reclock.server.background import serving
from reclock.server.server import Options
from reclock.session.database import Database
from reclock.session.file_roots import FileRoots

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGES = ("dbt-core==1.11.16", "dbt-postgres==1.9.1")
DEADLINE = 170.0

pytestmark = pytest.mark.slow(seconds=60)


@pytest.fixture(scope="session")
def dbt() -> Path:
    """Return dbt's program; its environment is made once per user."""
    name = "-".join(p.replace("==", "-") for p in PACKAGES)
    made = platformdirs.user_cache_path("reclock") / f"{name}-py{sys.version_info.minor}"
    made.parent.mkdir(parents=True, exist_ok=True)
    with locked(made.parent / f"{made.name}.lock"):
        if not (made / "whole").exists():
            shutil.rmtree(made, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", made], check=True)
            subprocess.run([made / "bin/pip", "install", "-q", *PACKAGES], check=True)
            (made / "whole").touch()
    return made / "bin/dbt"


class Project:
    """A project of dbt, in a copy, against a server of its own."""

    def __init__(self, dbt: Path, path: Path, port: int) -> None:
        self.path = path
        self.port = port
        self._dbt = dbt
        self.said = ""
        self.seconds = 0.0

    def run(self, *arguments: str, fails: bool = False) -> dict[str, tuple[str, str]]:
        """Run a command; return the status and the message of each node."""
        begun = time.monotonic()
        done = subprocess.run(
            [self._dbt, "--no-use-colors", *arguments],
            cwd=self.path, env=self._environment(), capture_output=True, text=True,
            timeout=DEADLINE, check=False,
        )  # fmt: skip
        self.seconds = time.monotonic() - begun
        self.said = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, self.said
        results = json.loads((self.path / "target/run_results.json").read_text())["results"]
        return {r["unique_id"].split(".")[2]: (r["status"], str(r["message"])) for r in results}

    def write(self, model: str, text: str) -> None:
        (self.path / "models" / f"{model}.sql").write_text(text)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        where = {"host": "127.0.0.1", "port": self.port, "user": "me", "autocommit": True}
        with psycopg.connect(**where) as connection:
            return connection.execute(query).fetchall()

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "PYTHONPATH": str(ROOT / "adapters/dbt"),
            "DBT_PROFILES_DIR": str(self.path),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "RECLOCK_PORT": str(self.port),
        }


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with (
        Database(tmp_path / "state", ModelEngine(), background=True) as db,
        serving(db, Options(port=0, trusts_local=True, grace=1)) as server,
    ):
        yield server.port


@pytest.fixture
def shop(dbt: Path, tmp_path: Path, port: int) -> Project:
    """The example."""
    return Project(dbt, shutil.copytree(ROOT / "examples/dbt", tmp_path / "shop"), port)


@pytest.fixture
def empty(shop: Project) -> Project:
    """A project without models."""
    for made in ("models", "seeds", "tests"):
        shutil.rmtree(shop.path / made)
        (shop.path / made).mkdir()
    return shop


def test_the_example_is_built_tested_and_documented(shop: Project) -> None:
    shop.run("seed")
    built = shop.run("run")
    assert built == {
        "orders": ("success", "CREATE SOURCE"),
        "bought": ("success", "CREATE VIEW"),
        "sales": ("success", "CREATE MATERIALIZED VIEW"),
        "first_sales": ("success", built["first_sales"][1]),
        "sales_by_total": ("success", "CREATE INDEX"),
    }
    assert {status for status, _ in shop.run("test").values()} == {"pass"}
    shop.run("docs", "generate")
    catalog = json.loads((shop.path / "target/catalog.json").read_text())
    assert catalog["errors"] is None
    kinds = {
        name.split(".")[2]: node["metadata"]["type"] for name, node in catalog["nodes"].items()
    }
    assert kinds["sales"] == "MATERIALIZED VIEW"
    assert kinds["bought"] == "VIEW"
    assert set(catalog["nodes"]["model.shop.sales"]["columns"]) == {"region", "orders", "total"}


def test_what_is_as_it_was_is_left_alone(shop: Project) -> None:
    shop.run("build")
    before = shop.ask("SELECT id, name FROM reclock.objects ORDER BY name")
    again = shop.run("run")
    assert {m for n, (_, m) in again.items() if n in {"orders", "bought", "sales"}} == {"UNCHANGED"}
    assert shop.ask("SELECT id, name FROM reclock.objects ORDER BY name") == before
    assert {status for status, _ in shop.run("seed").values()} == {"success"}
    assert {status for status, _ in shop.run("build", "--full-refresh").values()} <= {
        "success",
        "pass",
    }
    assert shop.ask("SELECT id, name FROM reclock.objects ORDER BY name") != before


def test_a_table_is_filled_again_under_the_views_over_it(empty: Project) -> None:
    empty.write("n", "{{ config(materialized='table') }} select 1 as a")
    empty.write("s", "select sum(a) as s from {{ ref('n') }}")
    empty.run("run")
    assert empty.ask("SELECT s FROM s") == [(1,)]
    empty.write("n", "{{ config(materialized='table') }} select 41 as a union all select 1")
    assert empty.run("run")["s"] == ("success", "UNCHANGED")
    assert empty.ask("SELECT s FROM s") == [(42,)]
    empty.write("n", "{{ config(materialized='table') }} select 'x' as a")
    failed = empty.run("run", "--select", "n", fails=True)
    assert "--full-refresh" in failed["n"][1]
    assert empty.ask("SELECT s FROM s") == [(42,)], "nothing half done"
    empty.write("s", "select max(a) as s from {{ ref('n') }}")
    empty.run("run", "--full-refresh")
    assert empty.ask("SELECT s FROM s") == [("x",)]


def test_a_view_that_is_another_is_replaced(empty: Project) -> None:
    empty.write("v", "{{ config(materialized='view') }} select 1 as a")
    empty.run("run")
    empty.write("v", "-- other\n{{ config(materialized='view') }} select 2 as a")
    assert empty.run("run")["v"] == ("success", "CREATE VIEW")
    assert empty.ask("SELECT a FROM v") == [(2,)]
    empty.write("v", "{{ config(materialized='table') }} select 3 as a")
    empty.run("run")
    assert empty.ask("SELECT a FROM v") == [(3,)], "of another kind"


def test_a_materialized_view_is_replaced_under_what_reads_it_and_granted(empty: Project) -> None:
    empty.ask("SELECT 1")
    with psycopg.connect(host="127.0.0.1", port=empty.port, user="me", autocommit=True) as c:
        c.execute("CREATE ROLE reader; CREATE ROLE other")
    empty.write("n", "{{ config(materialized='table') }} select 1 as a")
    kept = "{{ config(materialized='materialized_view', grants={'select': ['%s']}) }} select "
    empty.write("m", kept % "reader" + "a from {{ ref('n') }}")
    empty.write(
        "s", "{{ config(materialized='materialized_view') }} select sum(a) as s from {{ ref('m') }}"
    )
    empty.run("run")
    ids = empty.ask("SELECT name, id FROM reclock.objects WHERE name IN ('m', 's') ORDER BY name")
    empty.write("m", kept % "other" + "a + 1 as a from {{ ref('n') }}")
    again = empty.run("run", "--select", "m", "s")
    assert again["m"] == ("success", "CREATE MATERIALIZED VIEW")
    assert again["s"] == ("success", "UNCHANGED")
    assert empty.ask("SELECT s FROM s") == [(2,)]
    now = empty.ask("SELECT name, id FROM reclock.objects WHERE name IN ('m', 's') ORDER BY name")
    assert now == ids
    for role, may in (("reader", False), ("other", True)):
        assert empty.ask(f"SELECT has_table_privilege('{role}', 'm', 'SELECT')") == [(may,)]


def test_what_would_be_wrong_here_is_refused_with_the_reason(empty: Project) -> None:
    empty.write("i", "{{ config(materialized='incremental') }} select 1 as a")
    (empty.path / "snapshots").mkdir()
    (empty.path / "snapshots/s.sql").write_text(
        "{% snapshot s %}{{ config(target_schema='public', unique_key='a', strategy='check',"
        " check_cols='all') }} select 1 as a{% endsnapshot %}"
    )
    assert "kept up by every change" in empty.run("run", fails=True)["i"][1]
    assert "AS OF" in empty.run("snapshot", fails=True)["s"][1]


def test_sinks_write_what_a_model_has(dbt: Path, tmp_path: Path) -> None:
    outside = tmp_path / "out"
    outside.mkdir()
    files = FileRoots.of([outside])
    with (
        Database(tmp_path / "state", ModelEngine(), background=True) as db,
        serving(db, Options(port=0, trusts_local=True, grace=1, files=files)) as server,
    ):
        path = shutil.copytree(ROOT / "examples/dbt", tmp_path / "shop")
        project = Project(dbt, path, server.port)
        project.write(
            "told",
            "{{ config(materialized='sink') }} from {{ ref('sales') }}"
            " into file 'sales.jsonl' format json envelope materialize",
        )
        assert project.run("build")["told"] == ("success", "CREATE SINK")
        assert project.run("run", "--select", "told")["told"] == ("success", "UNCHANGED")
        assert project.ask("SELECT name FROM reclock.objects WHERE kind = 'sink'") == [("told",)]


def test_fifty_models_take_little_more_than_dbt_itself(empty: Project) -> None:
    """What 50 models take beyond that is printed; the bound is for a busy machine."""
    empty.write("m0", "select 1 as a")
    for n in range(1, 50):
        kind = "view" if n % 2 else "materialized_view"
        query = f"select a + 1 as a from {{{{ ref('m{n // 2}') }}}}"
        empty.write(f"m{n}", f"{{{{ config(materialized='{kind}') }}}} {query}")
    empty.run("compile")
    own = empty.seconds
    empty.run("run")
    print(f"dbt compile {own:.1f} s, dbt run {empty.seconds:.1f} s, load {os.getloadavg()[0]:.0f}")
    assert empty.seconds - own < 30
