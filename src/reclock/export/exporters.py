"""The exporters of all sinks: made and ended with them, each in a thread of its own.

In the background a thread writes a sink whenever the world has moved. Without it, a tick writes
before it returns: after a tick the topics have what the tick has closed.

Tests: tests/export/test_sinks.py.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from reclock.catalog.item import Sink
from reclock.engine.supervisor import pause
from reclock.export.connect import encoder_of, outlet_of
from reclock.export.exporter import Exporter

if TYPE_CHECKING:
    from reclock.engine.core import Core
    from reclock.engine.world import World
    from reclock.export.connect import Outlets
    from reclock.ids import ObjectId
    from reclock.time.pace import Pace

_PATIENCE: Final = 5.0
_LOOK_SECONDS: Final = 0.5


class Exporters:
    """One exporter for each sink."""

    def __init__(self, core: Core, outlets: Outlets) -> None:
        self._core = core
        self.outlets = outlets
        self._exporters: dict[ObjectId, Exporter] = {}
        self._threads: dict[ObjectId, _Writer] = {}
        self._background = False
        self.follow(core.world)

    def __getitem__(self, sink: ObjectId) -> Exporter:
        return self._exporters[sink]

    def start(self) -> None:
        """Write in the background from now on."""
        self._background = True
        self.follow(self._core.world)

    def follow(self, world: World) -> None:
        """Have an exporter for every sink of a world, and no others."""
        sinks = {sink.id: sink for sink in world.catalog.of_kind(Sink)}
        for gone in self._exporters.keys() - sinks.keys():
            exporter = self._exporters.pop(gone)
            writer = self._threads.pop(gone, None)
            if writer is None:
                exporter.close()
            else:
                writer.stop()
        for sink in sinks.values():
            if sink.id not in self._exporters:
                outlet = outlet_of(sink, self.outlets)
                self._exporters[sink.id] = Exporter(self._core, sink, outlet, encoder_of)
            elif sink.linked.options and self._exporters[sink.id].reached_by is not sink.statement:
                self._exporters[sink.id].reach(sink, outlet_of(sink, self.outlets))
            if self._background and sink.id not in self._threads:
                self._threads[sink.id] = _Writer(self._core, self._exporters[sink.id])

    def write(self, pace: Pace) -> None:
        """Write the sinks of ``pace``, unless threads do."""
        paces = self._core.world.catalog.paces
        for item, exporter in list(self._exporters.items()):
            if item not in self._threads and paces.get(item) == pace:
                while exporter.step():
                    pass

    def close(self) -> None:
        """Stop writing."""
        for writer in self._threads.values():
            writer.stop()
        for writer in self._threads.values():
            writer.join(_PATIENCE)
        for item, exporter in self._exporters.items():
            if item not in self._threads:
                exporter.close()


class _Writer:
    """A thread that writes one sink until it is stopped."""

    def __init__(self, core: Core, exporter: Exporter) -> None:
        self._core = core
        self._exporter = exporter
        self._stopped = False
        name = f"reclock-{exporter.sink.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Have it end after the transaction under way."""
        with self._core.moved:
            self._stopped = True
            self._core.moved.notify_all()

    def join(self, seconds: float) -> None:
        """Wait for the thread, but not for ever."""
        self._thread.join(seconds)

    def _run(self) -> None:
        failed = 0
        while not self._stopped and self._exporter.failure is None:
            seen = self._core.world
            more = self._exporter.step()
            failed = failed + 1 if self._exporter.stall is not None else 0
            if failed:
                self._wait(None, pause(failed))
            elif not more:
                self._wait(seen, _LOOK_SECONDS)
        self._exporter.close()

    def _wait(self, seen: World | None, seconds: float) -> None:
        """Wait until the world has moved, or for some time."""
        with self._core.moved:
            self._core.moved.wait_for(
                lambda: self._stopped or (seen is not None and self._core.world is not seen),
                seconds,
            )
