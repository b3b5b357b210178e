"""What executors lack is one error that names them, what is missing, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - of a dataclass

import pytest

from reclock.arrangement.store import LocalStore
from reclock.errors import SourceUnavailable, SparkError
from reclock.spark import checkup, preflight
from reclock.spark.preflight import Preflight, check, explained

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Moved(LocalStore):
    """A directory that is another one for tasks."""

    there: Path

    def __reduce__(self):
        return LocalStore, (self.there,)


def unreachable():
    message = "no broker answers"
    raise SourceUnavailable(message, detail="10.0.0.1:9092: timed out")


def missing(context, store=None, visits=None):
    with pytest.raises(SparkError) as raised:
        check(context, store, visits or {})
    assert raised.value.message == "the executors lack what tasks need"
    assert raised.value.code == "58000"
    return raised.value.detail, raised.value.hint


def test_what_is_there_is_found_and_nothing_is_left(spark, tmp_path):
    context, store = spark.session.sparkContext, LocalStore(tmp_path)
    visited = tmp_path / "visited"
    visited.mkdir()
    visits = {"a directory": (visited / "here").touch}
    seen = Preflight()
    assert not seen.passed(context)
    assert seen.require(context, store, visits)
    assert seen.passed(context)
    assert [path.name for path in tmp_path.iterdir()] == ["visited"]
    (visited / "here").unlink()
    assert not seen.require(context, store, visits)
    assert not list(visited.iterdir())


def test_a_store_that_tasks_do_not_reach(spark, tmp_path):
    context = spark.session.sparkContext
    (tmp_path / "here").mkdir()
    detail, hint = missing(context, Moved(tmp_path / "here", tmp_path / "nowhere"))
    assert f"{os.uname().nodename}: cannot read what the driver wrote to the store" in detail
    assert "--store" in hint
    assert not list((tmp_path / "here").iterdir())


def test_a_store_whose_writes_the_driver_does_not_see(spark, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    hide = preflight._Probe.lost
    monkeypatch.setattr(
        preflight._Probe, "lost",
        lambda self, found: hide(self, [{**one, "file": "elsewhere"} for one in found]),
    )  # fmt: skip
    detail, _ = missing(spark.session.sparkContext, LocalStore(tmp_path / "here"))
    assert "what a task writes to the store is not there for the driver" in detail


def test_a_probe_that_is_collected_as_garbage_is_no_test(spark, tmp_path, monkeypatch):
    names = LocalStore.names
    collected = []

    def collecting(store):
        if not collected and names(store):
            collected.extend(names(store))
            for name in collected:
                store.remove(name)
        return names(store)

    monkeypatch.setattr(LocalStore, "names", collecting)
    check(spark.session.sparkContext, LocalStore(tmp_path), {})
    assert collected
    assert not list(tmp_path.iterdir())


def test_brokers_that_tasks_do_not_reach(spark):
    detail, hint = missing(spark.session.sparkContext, None, {"the brokers of s": unreachable})
    assert "cannot reach the brokers of s (no broker answers: 10.0.0.1:9092: timed out)" in detail
    assert "brokers" in hint


def test_packages_that_are_missing_or_others(spark, monkeypatch):
    here = checkup.version_of

    def other(module):
        return "1.2.3" if module.__name__ == "polars" else here(module)

    monkeypatch.setattr(checkup, "version_of", other)
    monkeypatch.setattr(
        checkup, "package_faults",
        lambda packages: [("package", f"polars is 2, the driver's is {packages['polars'][0]}"),
                          ("package", "cannot import fastavro (No module named 'fastavro')")],
    )  # fmt: skip
    detail, hint = missing(spark.session.sparkContext)
    assert detail.count(os.uname().nodename) == 2
    assert "polars is 2, the driver's is 1.2.3" in detail
    assert "fastavro" in detail
    assert "reclock pack" in hint


def test_faults_of_packages():
    import numpy as np  # noqa: PLC0415

    major = np.__version__.split(".", maxsplit=1)[0]
    faults = checkup.package_faults({
        "numpy": (f"{major}.999", 1), "pyarrow": ("1.0.0", 3), "no_such_package": ("1", 1),
    })  # fmt: skip
    assert [kind for kind, _ in faults] == ["package", "package"]
    assert "pyarrow is" in faults[0][1]
    assert "cannot import no_such_package" in faults[1][1]


IMPORTED = """
import sys
import reclock.spark.chain, reclock.spark.staging
import reclock.connectors.kafka.client, reclock.connectors.format.avro_decoder
import reclock.connectors.format.json_columns
found = {name.partition(".")[0] for name in sys.modules}
print(*sorted(found - set(sys.stdlib_module_names)))
"""


def test_what_tasks_import_is_looked_for():
    made = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    )
    theirs = {"pyspark", "pyarrow", "polars", "numpy", "confluent_kafka", "fastavro", "reclock"}
    assert theirs == set(made.stdout.split()) & (theirs | preflight.PACKAGES.keys())
    assert theirs | {"pandas"} == preflight.PACKAGES.keys()  # pyspark's Arrow functions ask for it


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Job aborted: Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): org.apache"
            ".spark.api.python.PythonException: [PYTHON_VERSION_MISMATCH] Python in worker has "
            "different version: 3.9 than that in driver: 3.11, PySpark cannot run with different",
            "10.0.0.7: Python is 3.9, the driver's is 3.11",
        ),
        (
            '… (TID 3) (w2 executor 1): java.io.IOException: Cannot run program "./e/bin/python":'
            " error=2, No such file or directory",
            "w2: there is no Python ./e/bin/python",
        ),
        (
            "(TID 3) (w2 executor 1): org.apache.spark.SparkException: \nError from python worker:"
            "\n  /usr/bin/python3: No module named pyspark\nPYTHONPATH was:",
            "w2: Python does not run (/usr/bin/python3: No module named pyspark)",
        ),
    ],
)
def test_a_python_that_does_not_run(spark, text, said):
    error = explained(spark.session.sparkContext, text)
    assert error.detail == said
    assert "spark.pyspark.python" in error.hint
