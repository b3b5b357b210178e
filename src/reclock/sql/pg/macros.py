"""Functions of PostgreSQL's catalog, as macros of DuckDB.

Macros bind names late, so the columns of what they read, the look-up tables, begin with two
underscores, which no query over the catalog has.

Tests: tests/sql/pg/test_translate.py, tests/server/test_pg_clients.py.
"""

from __future__ import annotations

from typing import Final

_FOLDED: Final = """CASE WHEN contains(a, '"') THEN a ELSE lower(a) END"""


def _in(lookup: str, kind: str, code: str) -> str:
    """Return how a name or a number becomes an oid; a name that nothing has is an error."""
    return (
        f"CASE WHEN CAST(a AS VARCHAR) IS NULL THEN NULL ELSE "
        f"coalesce(try_cast(CAST(a AS VARCHAR) AS UINTEGER), {_found(lookup)}, CAST(error("
        f"'{code}:{kind} \"' || CAST(a AS VARCHAR) || '\" does not exist') AS UINTEGER)) END"
    )


def _found(lookup: str) -> str:
    folded = _FOLDED.replace("(a", "(CAST(a AS VARCHAR)").replace(
        "THEN a", "THEN CAST(a AS VARCHAR)"
    )
    return f"(SELECT __v FROM lookup.{lookup} WHERE __k = {folded})"


def _out(lookup: str, otherwise: str = "CAST(a AS VARCHAR)") -> str:
    return (
        f"CASE WHEN a IS NULL THEN NULL WHEN a = 0 THEN '-' ELSE "
        f"coalesce((SELECT __v FROM lookup.{lookup} WHERE __k = a), {otherwise}) END"
    )


_OF_ROLE: Final = (
    "coalesce((SELECT __v FROM lookup.role_name WHERE __k = try_cast(r AS UINTEGER)), r)"
)
_TABLE_PRIVILEGE: Final = (
    "CASE WHEN fn.class_in(a) IS NULL THEN NULL ELSE"
    f" EXISTS (SELECT 1 FROM lookup.super_role WHERE __r = {_OF_ROLE}) OR EXISTS ("
    f"SELECT 1 FROM lookup.privilege WHERE __k = fn.class_in(a) AND __r IN ({_OF_ROLE}, 'public')"
    " AND list_contains(string_split(replace(upper(p), ' ', ''), ','), __p)) END"
)
_CREATE_PRIVILEGE: Final = (
    f"EXISTS (SELECT 1 FROM lookup.super_role WHERE __r = {_OF_ROLE})"
    " OR NOT list_contains(['CREATE', 'TEMP', 'TEMPORARY'], trim(upper(p))) OR (upper(p) = 'CREATE'"
    f" AND EXISTS (SELECT 1 FROM lookup.privilege WHERE __k = 0 AND __r IN ({_OF_ROLE}, 'public')))"
)
_NULL: Final = "CAST(NULL AS VARCHAR)"
_QUOTED: Final = (
    "CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_$]*') THEN a"
    """ ELSE '"' || replace(a, '"', '""') || '"' END"""
)

_UNDEFINED: Final = (
    "pg_get_functiondef", "pg_get_function_sqlbody", "pg_get_partkeydef",
    "pg_get_partition_constraintdef", "pg_get_ruledef",
    "pg_get_statisticsobjdef", "pg_get_statisticsobjdef_columns", "pg_get_triggerdef",
)  # fmt: skip
_OF_TABLES: Final = ("has_table_privilege", "has_any_column_privilege", "has_sequence_privilege")
_ADDRESSES: Final = ("inet_client_addr", "inet_client_port", "inet_server_addr", "inet_server_port")

BODIES: Final[dict[str, tuple[str, ...]]] = {
    # Names and numbers of objects.
    "class_in": (f"(a) AS {_in('class_oid', 'relation', '42P01')}",),
    "class_out": (f"(a) AS {_out('class_name')}",),
    "type_in": (f"(a) AS {_in('type_oid', 'type', '42704')}",),
    "type_out": (f"(a) AS {_out('type_name')}",),
    "namespace_in": (f"(a) AS {_in('namespace_oid', 'schema', '3F000')}",),
    "namespace_out": (f"(a) AS {_out('namespace_name')}",),
    "role_in": (f"(a) AS {_in('role_oid', 'role', '42704')}",),
    "role_out": (f"(a) AS {_out('role_name')}",),
    "proc_in": (f"(a) AS {_in('proc_oid', 'function', '42883')}",),
    "proc_out": (f"(a) AS {_out('proc_name')}",),
    "to_regclass": (f"(a) AS {_found('class_oid')}",),
    "to_regtype": (f"(a) AS {_found('type_oid')}",),
    "to_regnamespace": (f"(a) AS {_found('namespace_oid')}",),
    "to_regrole": (f"(a) AS {_found('role_oid')}",),
    "to_regproc": (f"(a) AS {_found('proc_oid')}",),
    "pg_get_userbyid": (f"(a) AS {_out('role_name', _NULL)}",),
    "format_type": (
        "(a, b) AS CASE WHEN a IS NULL THEN NULL"
        " WHEN a = 1700 AND b >= 4 THEN"
        " 'numeric(' || ((b - 4) >> 16) || ',' || ((b - 4) & 65535) || ')'"
        " WHEN a = 1042 AND b >= 4 THEN 'character(' || (b - 4) || ')'"
        " WHEN a = 1043 AND b >= 4 THEN 'character varying(' || (b - 4) || ')'"
        " ELSE coalesce((SELECT __v FROM lookup.type_name WHERE __k = a), '???') END",
    ),
    # What is seen without a schema.
    "pg_table_is_visible": (
        "(a) AS EXISTS (SELECT 1 FROM lookup.class_visible WHERE __k = fn.class_in(a))",
    ),
    **{
        f"pg_{what}_is_visible": ("(a) AS a IS NOT NULL",)
        for what in ("collation", "conversion", "function", "opclass", "operator", "opfamily",
                     "statistics_obj", "ts_config", "ts_dict", "ts_parser", "ts_template", "type")
    },
    # Definitions.
    "pg_get_viewdef": (
        "(a) AS (SELECT __v FROM lookup.view_text WHERE __k = fn.class_in(a))",
        "(a, b) AS (SELECT __v FROM lookup.view_text WHERE __k = fn.class_in(a))",
    ),
    "pg_get_indexdef": (
        "(a) AS (SELECT __v FROM lookup.index_text WHERE __k = a AND __n = 0)",
        "(a, b, c) AS (SELECT __v FROM lookup.index_text WHERE __k = a AND __n = b)",
    ),
    "pg_get_constraintdef": (
        "(a) AS (SELECT __v FROM lookup.constraint_text WHERE __k = a)",
        "(a, b) AS (SELECT __v FROM lookup.constraint_text WHERE __k = a)",
    ),
    "pg_get_serial_sequence": (
        "(a, b) AS (SELECT __v FROM lookup.serial_sequence"
        " WHERE __k = fn.class_in(a) AND __c = b)",
    ),
    "pg_get_expr": ("(a, b) AS a", "(a, b, c) AS a"),
    "pg_get_function_arguments": (
        "(a) AS (SELECT __v FROM lookup.function_arguments WHERE __k = a)",
    ),
    "pg_get_function_identity_arguments": (
        "(a) AS (SELECT __v FROM lookup.function_arguments WHERE __k = a)",
    ),
    "pg_get_function_result": ("(a) AS (SELECT __v FROM lookup.function_result WHERE __k = a)",),
    **dict.fromkeys(_UNDEFINED, (f"(a) AS {_NULL}", f"(a, b) AS {_NULL}")),
    "obj_description": (
        "(a) AS (SELECT __v FROM lookup.comment WHERE __k = a AND __n = 0)",
        "(a, b) AS (SELECT __v FROM lookup.comment WHERE __k = a AND __n = 0)",
    ),
    "col_description": ("(a, b) AS (SELECT __v FROM lookup.comment WHERE __k = a AND __n = b)",),
    "shobj_description": (f"(a, b) AS {_NULL}",),
    # Privileges; the role comes first.
    **dict.fromkeys(_OF_TABLES, (f"(r, a, p) AS {_TABLE_PRIVILEGE}",)),
    "has_column_privilege": (f"(r, a, c, p) AS {_TABLE_PRIVILEGE}",),
    **{
        f"has_{what}_privilege": (f"(r, a, p) AS {_CREATE_PRIVILEGE}",)
        for what in ("database", "schema")
    },
    **{
        f"has_{what}_privilege": ("(r, a, p) AS a IS NOT NULL",)
        for what in ("function", "language", "tablespace", "type")
    },
    "pg_has_role": (
        f"(r, a, p) AS EXISTS (SELECT 1 FROM lookup.super_role WHERE __r = {_OF_ROLE})"
        f" OR fn.role_in({_OF_ROLE}) = fn.role_in(a)",
    ),
    # Arrays and text.
    "array_lower": ("(a, b) AS CASE WHEN len(a) > 0 THEN 1 END",),
    "array_upper": ("(a, b) AS CAST(nullif(len(a), 0) AS INTEGER)",),
    "array_length": ("(a, b) AS CAST(nullif(len(a), 0) AS INTEGER)",),
    "array_remove": ("(a, b) AS list_filter(a, lambda __x: __x IS DISTINCT FROM b)",),
    "quote_ident": (f"(a) AS {_QUOTED}",),
    "quote_literal": ("(a) AS '''' || replace(CAST(a AS VARCHAR), '''', '''''') || ''''",),
    "parse_ident": (
        """(a) AS list_transform(string_split(a, '.'), lambda __x: trim(__x, '"'))""",
    ),
    "expandarray": (
        "(a) AS list_transform(a, lambda __x, __i: struct_pack(x := __x, n := __i))",
    ),
    # The server.
    "current_schemas": ("(a) AS CASE WHEN a THEN ['pg_catalog', 'public'] ELSE ['public'] END",),
    "setting": ("(a) AS (SELECT __v FROM lookup.setting WHERE __k = a)",),
    "pg_encoding_to_char": ("(a) AS 'UTF8'",),
    "pg_char_to_encoding": ("(a) AS 6",),
    "pg_client_encoding": ("() AS 'UTF8'",),
    "getdatabaseencoding": ("() AS 'UTF8'",),
    "pg_is_in_recovery": ("() AS false",),
    "pg_is_other_temp_schema": ("(a) AS false",),
    "pg_my_temp_schema": ("() AS CAST(0 AS UINTEGER)",),
    "pg_partition_ancestors": ("(a) AS fn.class_in(a)",),
    "pg_relation_is_publishable": ("(a) AS false",),
    "pg_tablespace_location": ("(a) AS ''",),
    "pg_indexam_has_property": ("(a, b) AS b IN ('can_order', 'can_multi_col')",),
    "pg_index_column_has_property": ("(a, b, c) AS c IN ('asc', 'nulls_last', 'orderable')",),
    "pg_sequence_last_value": ("(a) AS CAST(NULL AS BIGINT)",),
    **dict.fromkeys(_ADDRESSES, (f"() AS {_NULL}",)),
    # The size is unknown: rows are kept in runs that objects share.
    **{
        f"pg_{what}_size": ("(a) AS CAST(NULL AS BIGINT)", "(a, b) AS CAST(NULL AS BIGINT)")
        for what in ("database", "indexes", "relation", "table", "tablespace", "total_relation")
    },
    "pg_stat_get_numscans": ("(a) AS CAST(NULL AS BIGINT)",),
    "pg_size_pretty": ("(a) AS CAST(a AS VARCHAR) || ' bytes'",),
}  # fmt: skip
