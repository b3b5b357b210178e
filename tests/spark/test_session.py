"""One quiet Spark per process: shared, stopped by the last, and neither heard nor seen."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from reclock.errors import SparkError
from reclock.spark.session import Spark

pytestmark = pytest.mark.spark


def test_sessions_compute_as_expressions_rely_on(spark):
    for session in (spark.session, spark.bulk):
        assert session.conf.get("spark.sql.ansi.enabled") == "true"
        assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.session.conf.get("spark.sql.codegen.wholeStage") == "false"
    assert spark.bulk.conf.get("spark.sql.codegen.wholeStage") == "true"
    assert spark.parallelism == os.cpu_count()


def test_users_share_one_context_of_one_master(spark):
    other = Spark()
    assert other.session.sparkContext is spark.session.sparkContext
    other.close()
    other.close()
    assert spark.session.range(3).count() == 3
    with pytest.raises(SparkError, match=r"already runs .* local\[\*\]"):
        _ = Spark("local[1]").session


ALONE = """
import os, sys
from reclock.spark.session import Spark
one, two = Spark("local[1]"), Spark("local[1]")
assert "pyspark" not in sys.modules
assert one.session.range(3).count() == 3
context = two.session.sparkContext
one.close()
assert two.session.range(3).count() == 3
two.close()
from pyspark import SparkContext
assert SparkContext._active_spark_context is None
os.environ["PYSPARK_PYTHON"] = sys.executable  # a user's tasks need what this process has
mine = SparkContext("local[1]", "user's own")
again = Spark()
assert again.session.sparkContext is mine
assert again.session.conf.get("spark.sql.ansi.enabled") == "true"
again.close()
assert mine.parallelize([1, 2]).count() == 2
mine.stop()
assert os.listdir(".") == [], os.listdir(".")
"""


@pytest.mark.slow(seconds=20)
def test_spark_is_silent_leaves_nothing_and_respects_the_users_own(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        cwd=tmp_path / "here",
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not [left for left in (tmp_path / "tmp").iterdir() if "reclock" in left.name]


def test_a_master_that_cannot_be_had_is_an_error(spark):
    del spark  # it runs: a second context cannot be tried, only refused
    with pytest.raises(SparkError, match="already runs") as raised:
        _ = Spark("spark://nowhere:7077").session
    assert raised.value.hint
