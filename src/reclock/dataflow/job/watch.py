"""How far a job is, and what Spark's pages call it.

Jobs have a title (``titled``), the description that Spark shows, and a group of their own. Who
waits for a long one sees how many tasks are done (``watched``): a thread asks Spark now and then.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from reclock.dataflow.stop import new_tag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

    from reclock.dataflow.job.load import Load

_DESCRIPTION: Final = "spark.job.description"
_GROUP: Final = "spark.jobGroup.id"
_PAUSE: Final = 0.25


@contextmanager
def titled(context: SparkContext, title: str) -> Iterator[str]:
    """Have Spark call the jobs of the block, which this thread begins, so; give their group."""
    group = new_tag()
    made = {_DESCRIPTION: title, _GROUP: group}
    before = {name: context.getLocalProperty(name) for name in made}
    for name, value in made.items():
        context.setLocalProperty(name, value)
    try:
        yield group
    finally:
        for name, known in before.items():
            context.setLocalProperty(name, known)  # type: ignore[arg-type]  # None is none


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
