"""The rows of each catalog relation; unlisted relations have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.server.pg_catalog import (
    classes,
    functions,
    information_schema,
    listings,
    server,
    types,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reclock.server.pg_catalog.objects import Objects
    from reclock.server.pg_catalog.row import Row

_PG_CATALOG: Final[Mapping[str, Callable[[Objects], Iterable[Row]]]] = {
    "pg_aggregate": functions.pg_aggregate,
    "pg_am": types.pg_am,
    "pg_attrdef": classes.pg_attrdef,
    "pg_attribute": classes.pg_attribute,
    "pg_authid": server.pg_roles,
    "pg_class": classes.pg_class,
    "pg_collation": types.pg_collation,
    "pg_constraint": classes.pg_constraint,
    "pg_database": server.pg_database,
    "pg_depend": classes.pg_depend,
    "pg_description": classes.pg_description,
    "pg_foreign_data_wrapper": classes.pg_foreign_data_wrapper,
    "pg_foreign_server": classes.pg_foreign_server,
    "pg_foreign_table": classes.pg_foreign_table,
    "pg_get_keywords": server.pg_get_keywords,
    "pg_index": classes.pg_index,
    "pg_indexes": listings.pg_indexes,
    "pg_language": server.pg_language,
    "pg_matviews": listings.pg_matviews,
    "pg_namespace": server.pg_namespace,
    "pg_opclass": types.pg_opclass,
    "pg_proc": functions.pg_proc,
    "pg_rewrite": classes.pg_rewrite,
    "pg_roles": server.pg_roles,
    "pg_sequence": classes.pg_sequence,
    "pg_sequences": listings.pg_sequences,
    "pg_settings": server.pg_settings,
    "pg_stat_activity": server.pg_stat_activity,
    "pg_stat_user_tables": listings.pg_stat_user_tables,
    "pg_tables": listings.pg_tables,
    "pg_tablespace": server.pg_tablespace,
    "pg_type": types.pg_type,
    "pg_user": server.pg_user,
    "pg_views": listings.pg_views,
}
_INFORMATION_SCHEMA: Final[Mapping[str, Callable[[Objects], Iterable[Row]]]] = {
    "check_constraints": information_schema.check_constraints,
    "columns": information_schema.columns,
    "constraint_column_usage": information_schema.key_column_usage,
    "constraint_table_usage": information_schema.table_constraints,
    "enabled_roles": information_schema.enabled_roles,
    "information_schema_catalog_name": information_schema.catalog_name,
    "key_column_usage": information_schema.key_column_usage,
    "role_table_grants": information_schema.table_privileges,
    "schemata": information_schema.schemata,
    "sequences": information_schema.sequences,
    "table_constraints": information_schema.table_constraints,
    "table_privileges": information_schema.table_privileges,
    "tables": information_schema.tables,
    "views": information_schema.views,
}
ROWS: Final[Mapping[tuple[str, str], Callable[[Objects], Iterable[Row]]]] = {
    **{("pg_catalog", name): rows for name, rows in _PG_CATALOG.items()},
    **{("information_schema", name): rows for name, rows in _INFORMATION_SCHEMA.items()},
}
"""The rows of relations, by schema and name."""
