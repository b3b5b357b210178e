"""Which masters are this machine's, and which executors find its Python."""

from __future__ import annotations

import pytest

from reclock.spark.master import is_connect, is_here, is_loopback, is_own

TABLE = [
    # master                     own    here   loopback Connect
    ("local", True, True, False, False),
    ("local[*]", True, True, False, False),
    ("local[2,3]", True, True, False, False),
    ("local-cluster[2,1,1024]", False, True, False, False),
    ("spark://127.0.0.1:7077", False, True, True, False),
    ("spark://localhost:7077", False, True, True, False),
    ("spark://[2001:db8::1]:7077", False, False, False, False),
    ("spark://one.invalid:7077,two.invalid:7077", False, False, False, False),
    ("yarn", False, False, False, False),
    ("k8s://https://host:6443", False, False, False, False),
    ("sc://localhost:15002", False, False, False, True),
]


@pytest.mark.parametrize(("master", "own", "here", "loopback", "connect"), TABLE)
def test_what_a_master_says(master, own, here, loopback, connect):
    assert is_own(master) is own
    assert is_here(master) is here
    assert is_loopback(master) is loopback
    assert is_connect(master) is connect
