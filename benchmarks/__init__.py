"""Measurements that print ratios of one run; kept, with machine and date, in docs/performance.md.

``make bench`` runs them all, ``python -m benchmarks reclock_batch`` one of them. They share engines
and servers with the tests: tests/support is on their path.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
