"""PostgreSQL's catalog, for the versions of ours that were requested last.

One is shared by all, but for queries over what shows each one his own (``objects.Viewer``).

Transactions may ask for older ones than others do. DuckDB is loaded when the first query over the
catalog is asked. It is the extra ``server``: without it, these queries are refused, and no others.

Tests: tests/server/pg_catalog/test_answer.py.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

from reclock.errors import NotSupported
from reclock.server.pg_catalog.objects import Objects, Viewer

if TYPE_CHECKING:
    from reclock.engine.world import World
    from reclock.server.pg_catalog.engine import PgCatalog

_Known = OrderedDict[tuple[int, int, int, Viewer], "tuple[PgCatalog, Any]"]
_KEPT: Final = 8


class PgCatalogs:
    """The catalogs of the versions that were requested last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: _Known = OrderedDict()
        self._end = finalize(self, _close, self._known)  # at the end of the process, too

    def at(self, world: World, viewer: Viewer) -> PgCatalog:
        """Return the catalog that belongs to a world, as a role sees it."""
        parts = (world.catalog, world.roles, world.settings)
        if viewer.reach is not None:  # of this moment: not kept
            return _made(Objects(*parts, viewer))
        key = (id(parts[0]), id(parts[1]), id(parts[2]), viewer)
        with self._lock:
            found = self._known.get(key)
            if found is None:
                found = _made(Objects(*parts, viewer)), parts  # which stay, so their ids do
                self._known[key] = found
            self._known.move_to_end(key)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)  # who asks it still has it
            return found[0]

    def close(self) -> None:
        """Let go of everything."""
        with self._lock:
            _close(self._known)


def _made(objects: Objects) -> PgCatalog:
    try:
        from reclock.server.pg_catalog.engine import PgCatalog  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        if error.name != "duckdb":
            raise
        message = "queries over PostgreSQL's catalog need DuckDB"
        detail = "the package duckdb is not installed"
        raise NotSupported(message, detail=detail, hint="pip install 'reclock[server]'") from error
    return PgCatalog(objects)


def _close(known: _Known) -> None:
    while known:
        known.popitem()[1][0].close()
