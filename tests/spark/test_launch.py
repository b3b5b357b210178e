"""The settings that a Spark of ours gets where its user has none."""

from __future__ import annotations

import pytest

from reclock.spark.launch import _of_machine


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local[2]", "false"),
        ("local-cluster[2,1,1024]", "false"),
        ("spark://127.0.0.1:7077", "false"),
        ("spark://10.0.0.1:7077", None),  # over a network: Spark compresses
        ("yarn", None),
    ],
)
def test_messages_are_compressed_where_a_network_is(tmp_path, master, expected):
    made = _of_machine(master, tmp_path, python=False)
    assert made.get("spark.shuffle.compress") == expected
