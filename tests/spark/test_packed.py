"""Executors without any of our packages run in the environment that was packed for them."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from reclock.cli.pack import packed
from standalone import standalone_cluster

pytestmark = pytest.mark.slow(seconds=120)  # and not spark: its Spark is in another process

NEEDED = (
    "confluent_kafka*", "dateutil", "fastavro", "numpy*", "pandas", "pandas-*", "pandas.libs",
    "polars*", "_polars*", "pyarrow*", "pyspark", "pytz", "six.py", "tzdata", "attr*",
)  # fmt: skip

SCRIPT = """
import json, sys
import reclock
conf = json.loads(sys.argv[2])
with reclock.open("state", background=False, master=sys.argv[1], conf=conf) as db:
    db.execute("ALTER SYSTEM SET execution = 'spark'")
    db.execute("CREATE TABLE t (k INT, x INT)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT k, sum(x) AS s FROM t GROUP BY k")
    db.execute("INSERT INTO t SELECT i % 3, i FROM generate_series(1, 100) AS g(i)")
    print(sorted(db.execute("SELECT * FROM v").rows))

    def where(batches):
        import pyarrow as pa
        for _ in batches:
            yield pa.RecordBatch.from_pylist([{"at": sys.prefix + " " + pa.__file__}])

    frame = db.dataframe("SELECT k FROM t").repartition(4)
    print(*{row.at for row in frame.mapInArrow(where, "at string").collect()}, sep="\\n")
"""


def test_executors_run_in_the_packed_environment(tmp_path):
    environment = tmp_path / "env"
    venv.create(environment, symlinks=True)
    (target,) = environment.glob("lib/python*/site-packages")
    for packages in map(Path, site.getsitepackages()):
        for pattern in NEEDED:
            for found in packages.glob(pattern):
                _linked(found, target / found.name)
    archive = tmp_path / "environment.tar.gz"
    packed(environment, archive)
    shutil.rmtree(environment)
    conf = {
        "spark.archives": f"{archive}#environment",
        "spark.pyspark.python": "./environment/bin/python",
    }
    with standalone_cluster(tmp_path / "cluster") as cluster:
        made = subprocess.run(
            [sys.executable, "-c", SCRIPT, cluster.master_url, json.dumps(conf)],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=170,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr + cluster.log()
        rows, *places = made.stdout.splitlines()
        assert rows == "[(0, 1683), (1, 1717), (2, 1650)]"
        homes = [str(home / "work") for home in cluster.homes]
        assert places
        for place in places:
            prefix, _, library = place.partition(" ")
            assert any(prefix.startswith(home) for home in homes), place
            assert library.startswith(prefix), place


def _linked(source: Path, target: Path) -> None:
    """Have the files of a package in another place, without copying them."""
    if source.is_file():
        os.link(source, target)
        return
    for path in source.rglob("*"):
        if path.is_file() and "jars" not in path.relative_to(source).parts:
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, place)
