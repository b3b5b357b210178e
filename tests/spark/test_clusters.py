"""Every Spark that a user may have: given, submitted, standalone, without what tasks need.

The cluster's workers have neither our package nor its libraries on their path: what tasks find
there is what reclock takes along, or says is missing. Scripts run in processes of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from standalone import standalone_cluster

pytestmark = pytest.mark.slow(seconds=60)  # and not spark: its Spark is in another process

PIPELINE = """
import json, os, sys, urllib.request
import reclock
from reclock.errors import SparkError

def pipeline(db):
    db.execute("ALTER SYSTEM SET execution = 'spark'")
    db.execute("CREATE TABLE t (id INT, k INT, x INT)")
    db.execute("INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 100) AS g(i)")
    db.execute("CREATE MATERIALIZED VIEW sales AS SELECT k, sum(x) AS s FROM t GROUP BY k")
    db.execute("CREATE MATERIALIZED VIEW texts AS SELECT upper('x' || x) AS t FROM t")
    db.execute("INSERT INTO t SELECT i, i % 3, i FROM generate_series(101, 200) AS g(i)")
    assert sorted(db.execute("SELECT * FROM sales").rows) == [(0, 6633), (1, 6700), (2, 6767)]
    found = db.execute("SELECT a.k, max(b.x) FROM t a JOIN t b ON a.k = b.k GROUP BY a.k")
    assert sorted(found.rows) == [(0, 198), (1, 199), (2, 200)]

def failure(db):
    try:
        pipeline(db)
    except SparkError as error:
        return {"code": error.code, "message": error.message,
                "detail": error.detail, "hint": error.hint}
"""


def run(tmp_path, body, *arguments, program=(sys.executable,), **environment):
    """Run a script that knows the pipeline; return what it printed as JSON."""
    import os  # noqa: PLC0415

    script = tmp_path / "script.py"
    script.write_text(PIPELINE + body)
    made = subprocess.run(
        [*program, str(script), *map(str, arguments)], cwd=tmp_path,
        env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=170,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    return json.loads(made.stdout.splitlines()[-1])


def spark_submit():
    import pyspark  # noqa: PLC0415

    return str(Path(pyspark.__file__).parent / "bin" / "spark-submit")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


GIVEN = """
from pyspark.sql import SparkSession
mine = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
with reclock.open("state", background=False, spark=mine) as db:
    pipeline(db)
assert mine.range(3).count() == 3
db = reclock.open("state", background=False, spark=mine)
db.execute("DROP MATERIALIZED VIEW texts")  # expressions that are Spark's
mine.stop()
db.execute("INSERT INTO t VALUES (201, 0, 1)")
try:
    db.tick()
    raise AssertionError("it was to run in Spark")
except SparkError as error:
    said = {"code": error.code, "message": error.message, "hint": error.hint}
db.execute("ALTER SYSTEM SET execution = 'auto'")
assert (0, 6634) in db.execute("SELECT * FROM sales").rows
db.close()
print(json.dumps(said))
"""


def test_a_given_session_is_used_never_stopped_and_missed(tmp_path):
    said = run(tmp_path, GIVEN, PYSPARK_PYTHON=sys.executable)
    assert said["code"] == "08003"
    assert "is stopped" in said["message"]
    assert "open the database again" in said["hint"]


SETTINGS = """
from pyspark import SparkContext
conf = {"spark.app.name": "mine", "spark.reclock.secret": "do not show", "spark.a.b": "x = y"}
with reclock.open("state", background=False, master="local[2]", conf=conf) as db:
    pipeline(db)
    context = SparkContext._active_spark_context
    process = context._gateway.proc.pid
    shown = open(f"/proc/{process}/cmdline").read()
    assert "do not show" not in shown
    found = dict(context._conf.getAll())
    context._jsc.sc().stop()  # as when its master gives up on it
    db.execute("INSERT INTO t VALUES (201, 0, 1)")
    assert (0, 6634) in db.execute("SELECT * FROM sales").rows
    try:
        other = reclock.open("other", background=False, conf={"spark.a.b": "z"})
        pipeline(other)
    except SparkError as error:
        other.close()
        found["refused"] = error.message
with reclock.open("state", background=False) as db:
    db.dataframe("SELECT * FROM sales").collect()
    after = dict(SparkContext._active_spark_context._conf.getAll())
print(json.dumps([found, after]))
"""


def test_settings_are_the_users_then_sparks_then_ours(tmp_path):
    (tmp_path / "conf").mkdir()
    defaults = "spark.a.b lost\nspark.executor.heartbeatInterval 7s\nspark.ui.enabled true\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults)
    found, after = run(tmp_path, SETTINGS, SPARK_CONF_DIR=str(tmp_path / "conf"))
    assert found["spark.master"] == "local[2]"
    assert found["spark.app.name"] == "mine"
    assert found["spark.a.b"] == "x = y"
    assert found["spark.reclock.secret"] == "do not show"
    assert found["spark.executor.heartbeatInterval"] == "7s"
    assert found["spark.ui.enabled"] == "true"
    assert found["spark.scheduler.mode"] == "FAIR"
    assert found["refused"] == "Spark already runs in this process with spark.a.b x = y"
    assert after["spark.master"] == "local[*]"
    assert after["spark.app.name"] == "reclock"
    assert after["spark.executor.heartbeatInterval"] == "7s"
    assert "spark.a.b" not in after


SUBMITTED = """
from pyspark import SparkContext
with reclock.open("state", background=False) as db:
    pipeline(db)
    context = SparkContext._active_spark_context
    print(json.dumps({"master": context.master, "name": context.appName,
                      "x": context.getConf().get("spark.x.y")}))
"""


@pytest.mark.parametrize("master", ["local[2]", "standalone"])
def test_a_submitted_script_has_the_spark_it_was_submitted_to(tmp_path, cluster, master):
    url = cluster.master_url if master == "standalone" else master
    options = ["--name", "mine", "--conf", "spark.x.y=z", "--conf", "spark.ui.enabled=false"]
    program = (spark_submit(), "--master", url, *options)
    environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    said = run(tmp_path, SUBMITTED, program=program, **environment)
    assert said == {"master": url, "name": "mine", "x": "z"}


SHOWN = """
from pyspark import SparkContext
conf = {"spark.ui.enabled": "true", "spark.ui.port": "0"}
with reclock.open("state", background=False, master=sys.argv[1], conf=conf) as db:
    pipeline(db)
    context = SparkContext._active_spark_context
    assert context.defaultParallelism == 2
    context._jsc.sc().listenerBus().waitUntilEmpty()
    pages = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    pages = pages.replace(pages.split("/")[2].rsplit(":", 1)[0], "127.0.0.1")
    asked = [json.load(urllib.request.urlopen(f"{pages}/{what}")) for what in ("jobs", "stages")]
    jobs = [[job.get("description"), job.get("jobGroup")] for job in asked[0]]
    pools = sorted({stage["schedulingPool"] for stage in asked[1]})
    link = [db.facts.spark_ui(), context.uiWebUrl]
    sales = db.facts.operators("sales")
print(json.dumps({"jobs": jobs, "pools": pools, "link": link, "sales": sales}))
"""


def test_a_standalone_cluster_needs_nothing_and_its_pages_say_what_runs(tmp_path, cluster):
    said = run(tmp_path, SHOWN, cluster.master_url)
    titles = [title for title, _ in said["jobs"]]
    groups = [group for _, group in said["jobs"]]
    assert "preflight" in titles
    assert any(t.startswith("tick ") and t.endswith(" · sales, texts") for t in titles), titles
    assert any(t.startswith("first load ") and t.endswith(" · sales") for t in titles), titles
    assert "query · t" in titles
    assert all(titles), titles
    assert all(groups), groups
    assert {"queries", "ticks"} <= set(said["pools"]) <= {"merges", "queries", "ticks"}
    assert said["link"][0] == said["link"][1]
    assert said["link"][0].startswith("http://")
    assert said["sales"]["ticks"]["spark"] >= 1
    took = {o["operator"]: o["millis"]["spark"] for o in said["sales"]["operators"]}
    assert took["Accumulate"] > 0, took


WRONG = """
conf = json.loads(sys.argv[2])
with reclock.open("state", background=False, master=sys.argv[1], conf=conf) as db:
    said = failure(db)
    db.execute("ALTER SYSTEM SET execution = 'auto'")
    db.execute("CREATE TABLE small (x INT)")
    db.execute("INSERT INTO small VALUES (1)")
    assert db.execute("SELECT * FROM small").rows == [(1,)]
print(json.dumps(said))
"""


def test_packages_that_executors_lack(tmp_path, cluster):
    venv.create(tmp_path / "bare", symlinks=True)
    python = str(tmp_path / "bare" / "bin" / "python")
    conf = {"spark.pyspark.python": python}
    said = run(tmp_path, WRONG, cluster.master_url, json.dumps(conf))
    assert said["message"] == "the executors lack what tasks need"
    for package in ("pyarrow", "numpy", "polars", "confluent_kafka"):
        assert f"cannot import {package}" in said["detail"]
    assert "reclock pack" in said["hint"]
    assert "spark.archives" in said["hint"]


def test_a_python_that_executors_lack(tmp_path, cluster):
    conf = {"spark.pyspark.python": "/nowhere/python"}
    said = run(tmp_path, WRONG, cluster.master_url, json.dumps(conf))
    assert said["detail"] == "127.0.0.1: there is no Python /nowhere/python"
    assert "spark.pyspark.python" in said["hint"]


def test_a_cluster_without_executors(tmp_path, cluster):
    conf = {"spark.executor.memory": "900g", "spark.reclock.executorTimeout": "3"}
    said = run(tmp_path, WRONG, cluster.master_url, json.dumps(conf))
    assert said["code"] == "53000"
    assert said["message"] == "Spark has no executors after 3 seconds"
    assert "900g" in said["detail"]
    assert "spark.reclock.executorTimeout" in said["hint"]
