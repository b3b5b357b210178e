"""PostgreSQL's catalog: ``pg_catalog`` and ``information_schema``, made of ours.

``objects`` says what there is, with numbers (``oids``); each other module gives the rows of some
relations. ``engine`` has those that a query names in an embedded DuckDB, in memory, and
``answer`` asks it: all of a query at one version of the catalog, in a transaction always the
same. Passwords and the secrets of sources and sinks are in none of it.

Tests: tests/server/pg_catalog, tests/server/test_pg_clients.py.
"""

from __future__ import annotations
