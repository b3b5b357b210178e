"""The progress of a long job: how many of its tasks are done.

A thread asks Spark now and then, by the group of the job (``pool.titled``).
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

    from reclock.dataflow.job.load import Load

_PAUSE: Final = 0.25


@contextmanager
def watched(context: SparkContext, group: str, load: Load | None, tasks: int) -> Iterator[None]:
    """Keep ``load`` up to date with the tasks of the jobs of a group, in the block."""
    if load is None:
        yield
        return
    over = threading.Event()
    load.begin(tasks)

    def watch() -> None:
        tracker = context.statusTracker()
        while not over.wait(_PAUSE):
            done = 0
            for job in tracker.getJobIdsForGroup(group):
                info = tracker.getJobInfo(job)
                for stage in info.stageIds if info is not None else ():
                    seen = tracker.getStageInfo(stage)
                    done += 0 if seen is None else seen.numCompletedTasks
            load.reach(min(done, tasks))

    thread = threading.Thread(target=watch, name="reclock-watch", daemon=True)
    thread.start()
    try:
        yield
        load.reach(tasks)
    finally:
        over.set()
        thread.join()
