"""Tests that run as they are, but with all work as jobs.

``--execution=loop``: databases over the model engine or over the operators in this process
(``ModelEngine``, ``LocalEngine``) get ``LoopEngine`` instead, which computes as Spark's tasks do.
``--execution=spark``: databases over Spark have the setting execution = spark unless they say
otherwise. ``--master``: which master they have unless they say otherwise.

A test says with the mark ``placed`` that it is about one engine, or about where work runs.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

EXECUTIONS: Final = ("loop", "spark")


@contextmanager
def forced(execution: str | None, master: str | None) -> Iterator[None]:
    """Have databases of the block run their work so."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        if execution == "loop":
            _on_a_loop(patch)
        elif execution == "spark":
            from reclock.catalog import settings  # noqa: PLC0415 - most tests do without

            made = replace(settings.SETTINGS["execution"], default="spark")
            patch.setitem(settings.SETTINGS, "execution", made)
        if master is not None:
            from reclock.spark.session import Spark  # noqa: PLC0415

            begin = Spark.__init__
            patch.setattr(
                Spark,
                "__init__",
                lambda self, given=None, *more: begin(self, given or master, *more),
            )
        yield


def _on_a_loop(patch: pytest.MonkeyPatch) -> None:
    from engines.local_engine import LocalEngine  # noqa: PLC0415
    from engines.model_engine import ModelEngine  # noqa: PLC0415
    from engines.task_engine import LoopEngine  # noqa: PLC0415
    from reclock.session import database  # noqa: PLC0415

    class System(database.System):
        def __init__(self, store: Any, segments: Any, engine: Any, *rest: Any, **more: Any) -> None:
            if type(engine) in (ModelEngine, LocalEngine):
                engine = LoopEngine(segments)
            super().__init__(store, segments, engine, *rest, **more)

    patch.setattr(database, "System", System)
