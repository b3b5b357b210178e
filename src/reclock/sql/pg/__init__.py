"""Queries over PostgreSQL's catalog: which they are, and what they are in DuckDB.

psql, drivers and tools describe a database by queries over ``pg_catalog`` and
``information_schema``, in a dialect that is larger than ours. ``recognise`` tells them from other
queries, ``translate`` makes DuckDB's text of them, ``reclock.server.pg_catalog`` answers them. Why:
design note 0009.

Tests: tests/sql/pg.
"""

from __future__ import annotations
