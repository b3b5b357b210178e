"""Strictly consistent streaming SQL on Apache Spark."""

from reclock.clock import Clock, ManualClock, SystemClock
from reclock.errors import Error

__version__ = "0.1.0.dev0"

__all__ = ["Clock", "Error", "ManualClock", "SystemClock", "__version__"]
