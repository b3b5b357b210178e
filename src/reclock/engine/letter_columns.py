"""The columns of the dead letters of a source, as SQL shows them (``dead_letters``)."""

from __future__ import annotations

from typing import Final

from reclock.sql.schema import Column, Schema
from reclock.sql.types import BIGINT, BYTEA, TEXT

SCHEMA: Final = Schema(
    (
        Column("number", BIGINT, nullable=False),
        Column("timestamp", BIGINT, nullable=False),
        Column("part", TEXT, nullable=False),
        Column("offset", BIGINT, nullable=False),
        Column("key", BYTEA),
        Column("value", BYTEA),
        Column("code", TEXT, nullable=False),
        Column("reason", TEXT, nullable=False),
    )
)
KEY: Final = (0,)
