"""The failures after which a pipeline cannot continue by itself.

A source or sink that has failed for good leaves the others running, and is reported; a timeline
that does not tick any more, or a sink that another instance writes now, ends the process: it could
do nothing correct any more. Tests: tests/session/pipeline/test_plan.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog.item import Sink
from reclock.errors import Fenced

if TYPE_CHECKING:
    from reclock.errors import Error
    from reclock.session.system import System


def fatal(core: System) -> Error | None:
    """Return the error that ends a process which only keeps a pipeline running."""
    if core.loop is not None:
        for failure in core.loop.failures.values():
            if failure.permanent:
                return failure.told()
    for sink in core.world.catalog.of_kind(Sink):
        ended = core.exporters[sink.id].failure
        if isinstance(ended, Fenced):
            return ended
    return None
