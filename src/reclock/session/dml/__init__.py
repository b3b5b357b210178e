"""INSERT, UPDATE, DELETE and MERGE as queries.

Each is planned (``update``, ``insert``, ``conflict``, ``merge``) as one query over the state before
the statement. A row of its answer is a deleted row, an added row, or both, with its RETURNING
values (``written``). So a write is answered like a read, in the cheapest way, and happens at one
time; in a transaction it runs again if something has changed.

Tests: tests/session/test_dml.py; against PostgreSQL: test_dml_postgres.py; histories of
sessions: test_isolation.py.
"""

from __future__ import annotations
