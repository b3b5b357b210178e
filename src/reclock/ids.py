"""Names that must not be mixed up, as distinct types.

Ids are durable and never reused; names are what users type and may be given to another
object after a drop. Anything written down (bindings, progress, files) is keyed by id.
"""

from __future__ import annotations

from typing import NewType

ObjectId = NewType("ObjectId", str)
"""A catalog object: ``u1``, ``u2``, … for users' objects, the full name for system relations."""

CollectionId = NewType("CollectionId", str)
"""A durable collection of updates: ``catalog``, ``remap/u1``, ``manifest/u7``, …"""

HolderId = NewType("HolderId", str)
"""Who keeps history: ``sink/u9``, ``subscribe/4``, ``transaction/2``."""
