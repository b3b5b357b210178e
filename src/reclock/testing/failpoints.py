"""Failpoints for tests: every name with the step it guards, and how to arm them.

See ``reclock.failpoints`` for the actions and the environment variable.
"""

from reclock.failpoints import NAMES, FailpointRaised, arm, armed, disarm

__all__ = ["NAMES", "FailpointRaised", "arm", "armed", "disarm"]
