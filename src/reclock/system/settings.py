"""``reclock.settings``: the system's settings; a session may have set others for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.catalog import settings
from reclock.catalog.system_relation import Described, system_relation
from reclock.sql.types import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.catalog.system_relation import Row
    from reclock.engine.system_moment import Moment


def _rows(moment: Moment) -> Iterator[Row]:
    for name, setting in settings.SETTINGS.items():
        yield name, moment.world.settings.get(name), setting.description


SETTINGS = system_relation(
    "settings",
    "The settings that are in force for the system; `SHOW ALL` has those of the session.",
    (
        Described("name", TEXT, "the setting"),
        Described("value", TEXT, "its value, as ALTER SYSTEM SET takes it"),
        Described("description", TEXT, "what it is"),
    ),
    _rows,
)
