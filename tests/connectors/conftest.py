from __future__ import annotations

from reclock.testing.kafka import kafka

__all__ = ["kafka"]
