"""Tests that run as they are, but with all work as jobs.

``--execution=loop``: databases over the model engine or over the operators in this process
(``ModelEngine``, ``LocalEngine``) get ``LoopEngine`` instead, which computes as Spark's tasks do.
``--execution=spark``: they get Spark's engine, and databases over Spark have the setting
execution = spark unless they say otherwise. ``--master``: which master they have unless they say
otherwise.

A test says with the mark ``placed`` that it is about one engine, or about where work runs.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXECUTIONS: Final = ("loop", "spark")


@contextmanager
def forced(execution: str | None, master: str | None) -> Iterator[None]:
    """Have databases of the block run their work so."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        if execution == "loop":
            from engines.task_engine import LoopEngine  # noqa: PLC0415 - here and below

            _by(LoopEngine, patch)
        elif execution == "spark":
            from reclock.catalog import settings  # noqa: PLC0415
            from reclock.spark.engine import SparkEngine  # noqa: PLC0415

            made = replace(settings.SETTINGS["execution"], default="spark")
            patch.setitem(settings.SETTINGS, "execution", made)
            _by(SparkEngine, patch)
        if master is not None:
            from reclock.spark.session import Spark  # noqa: PLC0415

            begin = Spark.__init__
            patch.setattr(
                Spark,
                "__init__",
                lambda self, given=None, *more: begin(self, given or master, *more),
            )
        if execution == "spark":
            from reclock.spark.session import Spark  # noqa: PLC0415

            stays = Spark()  # else it would be stopped with each database, and started for the next
            stack.callback(stays.close)
            _ = stays.session
        yield


def _by(engine: Callable[[Any], Any], patch: pytest.MonkeyPatch) -> None:
    """Have another engine instead of the model, and of the operators in this process."""
    from engines.local_engine import LocalEngine  # noqa: PLC0415
    from engines.model_engine import ModelEngine  # noqa: PLC0415
    from reclock.session import database  # noqa: PLC0415

    class System(database.System):
        def __init__(self, store: Any, segments: Any, given: Any, *rest: Any, **more: Any) -> None:
            if type(given) in (ModelEngine, LocalEngine):
                given = engine(segments)
            super().__init__(store, segments, given, *rest, **more)

    patch.setattr(database, "System", System)
