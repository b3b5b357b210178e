"""What INSERT, UPDATE, DELETE and MERGE do, as a query.

Each is planned (``update``, ``insert``, ``conflict``, ``merge``) as one query over what there is
before the statement. A row of its answer is a row that is taken away, one that is added, or both,
and what RETURNING gives of it (``written``). So a write is answered like a read, wherever that is
cheapest, and is done at one time; in a transaction it is done again if something has changed.

Tests: tests/session/test_dml.py; against PostgreSQL: test_dml_postgres.py; histories of
sessions: test_isolation.py.
"""

from __future__ import annotations
