"""What functions and operators a PostgreSQL has, as src/…/functions/postgres.txt lists them.

Left out are those that nobody writes in a query about data: implementations of operators, of
types and of indexes, and what asks about the server (``pg_…``, ``has_…``, ``lo_…``, XML of whole
schemas). To write the list again, say that of a newer PostgreSQL::

    python -m tests.functions.catalogued
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import psycopg

from reclock.sql.plan import functions
from reclock.testing.postgres import running_postgres

PATH: Final = Path(functions.__file__).with_name("postgres.txt")
HEAD: Final = "# PostgreSQL's functions and operators; written by tests/functions/catalogued.py\n"

_FUNCTIONS: Final = r"""
SELECT proname, pronargs - pronargdefaults, provariadic <> 0,
       ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS u (t, n)
             ORDER BY n)
FROM pg_proc AS p
WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a', 'w')
  AND proname !~ '^(pg_|has_|lo_|txid_|binary_upgrade|brin_|gin_|currtid|amvalid|shobj_|acl|inet_)'
  AND proname !~ '(_to_xml|_to_xmlschema|_canonical|_subdiff|_and_xmlschema|^lo[a-z]*(read|write))'
  AND coalesce(obj_description(oid, 'pg_proc'), '') NOT LIKE 'implementation of %operator'
  AND coalesce(obj_description(oid, 'pg_proc'), '') !~
      '^(I/O|internal|join select|restriction select|aggregate (trans|final|serial|deser))'
  AND NOT proargtypes::oid[] && ARRAY['internal', 'cstring', 'pg_ddl_command']::regtype[]::oid[]
  AND prorettype <> ALL (ARRAY['internal', 'cstring', 'trigger', 'event_trigger',
                               'index_am_handler', 'table_am_handler', 'language_handler',
                               'fdw_handler', 'tsm_handler']::regtype[])
  AND NOT EXISTS (SELECT FROM pg_amproc WHERE amproc = p.oid)
  AND NOT EXISTS (SELECT FROM pg_cast WHERE castfunc = p.oid)
  AND NOT EXISTS (
      SELECT FROM pg_aggregate
      WHERE p.oid IN (aggtransfn, aggfinalfn, aggcombinefn, aggmtransfn, aggminvtransfn))
"""
_OPERATORS: Final = """
SELECT oprname, CASE WHEN oprleft = 0 THEN ARRAY[format_type(oprright, NULL)]
                ELSE ARRAY[format_type(oprleft, NULL), format_type(oprright, NULL)] END
FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace
"""
_NAMES: Final = {
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "jsonb": "json",
    "character varying": "text",
    "character": "text",
}


def _name(kind: str) -> str:
    base = kind.removesuffix("[]")
    return _NAMES.get(base, base) + kind[len(base) :]


def catalogued(connection: Any) -> list[str]:
    """Return one line for each version of a function or operator: its name and its types."""
    found = set()
    for name, least, variadic, kinds in connection.execute(_FUNCTIONS).fetchall():
        given = [_name(k) for k in kinds]
        for count in range(least, len(given) + 1):
            inside = given[:count]
            if variadic and count == len(given):
                inside[-1] += " ..."
            found.add(f"{name} {', '.join(inside)}".rstrip())
    for name, kinds in connection.execute(_OPERATORS).fetchall():
        found.add(f"{name} {', '.join(map(_name, kinds))}")
    return sorted(found)


def main() -> None:
    """Write the list again."""
    with running_postgres() as url, psycopg.connect(url) as connection:
        PATH.write_text(HEAD + "\n".join(catalogued(connection)) + "\n")


if __name__ == "__main__":
    main()
