"""Errors of Spark jobs as errors of reclock, readable, with their SQLSTATE.

An expression that has no value raises ``SQLSTATE|message`` (``batch.relation``) and becomes
``ExpressionFailed``; so does every error of Spark's own in class 22, data exceptions. An
error of reclock inside a Python task (a corrupt run) crosses the JVM as text: ``carried``
packs it, and it comes out as the error it was. What is left is ``SparkError``: a failed
job, with the cause in one line; stack traces stay behind in the chained exception.

Tests: tests/spark/test_errors.py.
"""

from __future__ import annotations

import pickle
import re
from base64 import b64decode, b64encode
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from reclock.dataflow.error_rows import hint_of
from reclock.errors import Error, ExpressionFailed, SparkError

if TYPE_CHECKING:
    from collections.abc import Iterator

_RAISED: Final = re.compile(r"([0-9A-Z]{5})\|(.*)", re.DOTALL)
_CARRIED: Final = re.compile(r"reclock-error:([A-Za-z0-9+/=]+)")
_CONDITION: Final = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_STATE: Final = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}.*", re.DOTALL)
_MEMORY: Final = re.compile(
    r"(?<=java\.lang\.OutOfMemoryError: )[^\n]*|total size of serialized results[^\n]*",
    re.IGNORECASE,
)
_POSTGRES: Final = {"22018": "22P02"}
"""SQLSTATEs that PostgreSQL has under another number."""


class CarriedError(Exception):
    """An error of reclock as text, on its way from a task to the driver."""


@contextmanager
def carried() -> Iterator[None]:
    """Pack errors of reclock so that they survive the way through the JVM; for tasks."""
    try:
        yield
    except Error as error:
        packed = b64encode(pickle.dumps(error)).decode()
        message = f"reclock-error:{packed}"
        raise CarriedError(message) from error


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raise what goes wrong in Spark as an error of reclock; for the driver."""
    from py4j.protocol import (  # type: ignore[import-untyped]  # noqa: PLC0415 - when it is used
        Py4JError,
        Py4JJavaError,
    )
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except Py4JJavaError as cause:
        raise translate(_known(cause)) from cause
    except (Py4JError, ConnectionError) as cause:  # not of Java: of the way to it
        message, hint = "the Java of Spark has ended", "try again: what comes next starts another"
        raise SparkError(message, detail=str(cause) or None, hint=hint) from cause
    except PySparkException as cause:
        raise translate(_known(cause)) from cause


def _known(cause: Exception) -> Exception:
    """Return the first exception that PySpark has a class for, of a chain of Java's."""
    from pyspark.errors.exceptions.captured import (  # noqa: PLC0415
        UnknownException,
        convert_exception,
    )

    at = getattr(cause, "java_exception", None)
    while at is not None:
        found = convert_exception(at)
        if not isinstance(found, UnknownException):
            return found
        at = at.getCause()
    return cause


def translate(cause: Exception) -> Error:
    """Return the error of reclock that ``cause``, an exception of PySpark, stands for."""
    text = str(cause)
    packed = _CARRIED.search(text)
    if packed is not None:
        error = pickle.loads(b64decode(packed[1]))
        if isinstance(error, Error):
            return error
    condition, state, parameters = _facts(cause)
    if condition == "USER_RAISED_EXCEPTION":
        raised = _RAISED.fullmatch(parameters.get("errorMessage", ""))
        if raised is not None:
            return ExpressionFailed(raised[2], code=raised[1], hint=hint_of(raised[1]))
    memory = _MEMORY.search(text)
    if memory is not None:
        message, hint = "a Spark job needs too much memory", "ask for less, or for smaller groups"
        return SparkError(message, code="53200", detail=memory[0], hint=hint)
    line = _first_line(text)
    if state is not None and state.startswith("22"):
        code = _POSTGRES.get(state, state)
        return ExpressionFailed(line, code=code, hint=hint_of(code))
    return SparkError("a Spark job failed", detail=line)


def _facts(cause: Exception) -> tuple[str | None, str | None, dict[str, str]]:
    """Return Spark's name for an error, its SQLSTATE and its parameters."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    if not isinstance(cause, PySparkException):
        return None, None, {}
    return cause.getCondition(), cause.getSqlState(), cause.getMessageParameters() or {}


def _first_line(text: str) -> str:
    """Return what an exception says first, as our messages are written.

    >>> _first_line("[DIVIDE_BY_ZERO] Division by zero. Use `try_divide`. SQLSTATE: 22012")
    'division by zero'
    """
    line = _CONDITION.sub("", _STATE.sub("", text.strip()).split("\n", 1)[0])
    sentence = line.split(". ", 1)[0].rstrip(".: ")
    return sentence[:1].lower() + sentence[1:]
