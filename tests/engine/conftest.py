from __future__ import annotations

from databases import Opener, _no_power_is_lost, db, make_opener, opener

__all__ = ["Opener", "_no_power_is_lost", "db", "make_opener", "opener"]
