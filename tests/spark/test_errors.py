"""Exceptions of PySpark as errors of reclock."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from reclock.errors import Corrupt, Error, ExpressionFailed, SparkError
from reclock.spark.errors import CarriedError, carried, spark_errors, translate


def test_an_error_carried_as_text_is_the_error_it_was():
    with pytest.raises(CarriedError) as packed, carried():
        raise Corrupt("corrupt run", detail="batch 3", hint="restore it")
    jvm = RuntimeError(f"Traceback …\n  pyspark.zip …\nCarriedError: {packed.value}\n\tat org…")
    error = translate(jvm)
    assert type(error) is Corrupt
    assert (error.message, error.detail, error.hint) == ("corrupt run", "batch 3", "restore it")
    pickle.dumps(error)


def test_other_errors_in_a_task_are_not_packed():
    with pytest.raises(ZeroDivisionError), carried():
        _ = 1 / 0


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "kind", "code", "message"),
    [
        ("SELECT raise_error('21000|two | rows')", ExpressionFailed, "21000", "two | rows"),
        ("SELECT 1 / (id - id) FROM range(2)", ExpressionFailed, "22012", "division by zero"),
        ("SELECT CAST('x' AS INT) FROM range(1)", ExpressionFailed, "22P02", None),
        ("SELECT raise_error('no code') FROM range(1)", SparkError, "58000", "a Spark job failed"),
        ("SELECT * FROM nothing_of_that_name", SparkError, "58000", "a Spark job failed"),
    ],
)  # fmt: skip
def test_an_exception_has_its_state_and_one_line(spark, text, kind, code, message):
    with pytest.raises(Error) as raised, spark_errors():
        spark.session.sql(text).toArrow()
    assert type(raised.value) is kind
    assert raised.value.code == code
    assert message is None or raised.value.message == message
    assert "\tat " not in str(raised.value)
    assert raised.value.__cause__ is not None


@pytest.mark.spark
def test_what_goes_wrong_in_a_task_is_in_the_detail(spark):
    def fail(batches):
        del batches
        yield from [1 / 0]

    with pytest.raises(SparkError) as raised, spark_errors():
        spark.session.range(0, 1, 1, 1).mapInArrow(fail, "x INT").toArrow()
    assert raised.value.detail


def test_translating_needs_no_spark():
    code = "import sys, reclock.spark.errors; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("o1.x\n: java.lang.OutOfMemoryError: Java heap space\n\tat a", "Java heap space"),
        (
            "Job aborted: Total size of serialized results of 9 tasks (1 GiB) is more\n\tat a",
            "Total size of serialized results of 9 tasks (1 GiB) is more",
        ),
    ],
    ids=["heap", "results"],
)
def test_what_needs_too_much_memory_says_so(text, detail):
    error = translate(Exception(text))
    assert (error.code, error.detail) == ("53200", detail)
