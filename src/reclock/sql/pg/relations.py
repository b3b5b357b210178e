"""The columns of PostgreSQL's catalog, as clients of PostgreSQL 15 expect them.

A relation is ``name: column type, …``; its rows are made by ``reclock.server.pg_catalog``. Many
have
none: reclock has no triggers or foreign keys, and tools ask for them all the same.

Invariant: a relation is called by its name alone or after its schema, as in PostgreSQL, where
``pg_catalog`` is looked at before everything else.

Tests: tests/sql/pg/test_relations.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.sql.pg.types import ColumnType, column_type

if TYPE_CHECKING:
    from collections.abc import Mapping

PG_CATALOG: Final = "pg_catalog"
INFORMATION_SCHEMA: Final = "information_schema"

_PG_CATALOG: Final = """
pg_aggregate: aggfnoid oid, aggkind char, aggnumdirectargs int2, aggtransfn oid, aggfinalfn oid
pg_am: oid oid, amname name, amhandler oid, amtype char
pg_attrdef: oid oid, adrelid oid, adnum int2, adbin text
pg_attribute: attrelid oid, attname name, atttypid oid, attstattarget int4, attlen int2,
  attnum int2, attndims int4, attcacheoff int4, atttypmod int4, attbyval bool, attalign char,
  attstorage char, attcompression char, attnotnull bool, atthasdef bool, atthasmissing bool,
  attidentity char, attgenerated char, attisdropped bool, attislocal bool, attinhcount int4,
  attcollation oid, attacl text[], attoptions text[], attfdwoptions text[], attmissingval text[]
pg_auth_members: roleid oid, member oid, grantor oid, admin_option bool
pg_authid: oid oid, rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool,
  rolcreatedb bool, rolcanlogin bool, rolreplication bool, rolbypassrls bool, rolconnlimit int4,
  rolpassword text, rolvaliduntil timestamptz
pg_available_extensions: name name, default_version text, installed_version text, comment text
pg_cast: oid oid, castsource oid, casttarget oid, castfunc oid, castcontext char, castmethod char
pg_class: oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, relowner oid,
  relam oid, relfilenode oid, reltablespace oid, relpages int4, reltuples float4,
  relallvisible int4, reltoastrelid oid, relhasindex bool, relisshared bool, relpersistence char,
  relkind char, relnatts int2, relchecks int2, relhasrules bool, relhastriggers bool,
  relhassubclass bool, relrowsecurity bool, relforcerowsecurity bool, relispopulated bool,
  relreplident char, relispartition bool, relrewrite oid, relfrozenxid int8, relminmxid int8,
  relacl text[], reloptions text[], relpartbound text
pg_collation: oid oid, collname name, collnamespace oid, collowner oid, collprovider char,
  collisdeterministic bool, collencoding int4, collcollate text, collctype text,
  colliculocale text, collversion text
pg_constraint: oid oid, conname name, connamespace oid, contype char, condeferrable bool,
  condeferred bool, convalidated bool, conrelid oid, contypid oid, conindid oid, conparentid oid,
  confrelid oid, confupdtype char, confdeltype char, confmatchtype char, conislocal bool,
  coninhcount int4, connoinherit bool, conkey int2[], confkey int2[], conpfeqop oid[],
  conppeqop oid[], conffeqop oid[], confdelsetcols int2[], conexclop oid[], conbin text
pg_conversion: oid oid, conname name, connamespace oid, conowner oid, condefault bool
pg_cursors: name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool,
  creation_time timestamptz
pg_database: oid oid, datname name, datdba oid, encoding int4, datlocprovider char,
  datistemplate bool, datallowconn bool, datconnlimit int4, datfrozenxid int8, datminmxid int8,
  dattablespace oid, datcollate text, datctype text, daticulocale text, datcollversion text,
  datacl text[]
pg_db_role_setting: setdatabase oid, setrole oid, setconfig text[]
pg_default_acl: oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char, defaclacl text[]
pg_depend: classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, refobjsubid int4,
  deptype char
pg_description: objoid oid, classoid oid, objsubid int4, description text
pg_enum: oid oid, enumtypid oid, enumsortorder float4, enumlabel name
pg_event_trigger: oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid,
  evtenabled char, evttags text[]
pg_extension: oid oid, extname name, extowner oid, extnamespace oid, extrelocatable bool,
  extversion text, extconfig oid[], extcondition text[]
pg_foreign_data_wrapper: oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid,
  fdwacl text[], fdwoptions text[]
pg_foreign_server: oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text,
  srvacl text[], srvoptions text[]
pg_foreign_table: ftrelid oid, ftserver oid, ftoptions text[]
pg_index: indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool,
  indnullsnotdistinct bool, indisprimary bool, indisexclusion bool, indimmediate bool,
  indisclustered bool, indisvalid bool, indcheckxmin bool, indisready bool, indislive bool,
  indisreplident bool, indkey int2[], indcollation oid[], indclass oid[], indoption int2[],
  indexprs text, indpred text
pg_indexes: schemaname name, tablename name, indexname name, tablespace name, indexdef text
pg_inherits: inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool
pg_get_keywords: word text, catcode char, barelabel bool, catdesc text, baredesc text
pg_language: oid oid, lanname name, lanowner oid, lanispl bool, lanpltrusted bool,
  lanplcallfoid oid, laninline oid, lanvalidator oid, lanacl text[]
pg_largeobject_metadata: oid oid, lomowner oid, lomacl text[]
pg_locks: locktype text, database oid, relation oid, pid int4, mode text, granted bool
pg_matviews: schemaname name, matviewname name, matviewowner name, tablespace name,
  hasindexes bool, ispopulated bool, definition text
pg_namespace: oid oid, nspname name, nspowner oid, nspacl text[]
pg_opclass: oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid,
  opcintype oid, opcdefault bool, opckeytype oid
pg_operator: oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind char,
  oprcanmerge bool, oprcanhash bool, oprleft oid, oprright oid, oprresult oid, oprcom oid,
  oprnegate oid, oprcode oid, oprrest oid, oprjoin oid
pg_opfamily: oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid
pg_partitioned_table: partrelid oid, partstrat char, partnatts int2, partdefid oid,
  partattrs int2[], partclass oid[], partcollation oid[], partexprs text
pg_policy: oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, polroles oid[],
  polqual text, polwithcheck text
pg_policies: schemaname name, tablename name, policyname name, permissive text, roles name[],
  cmd text, qual text, with_check text
pg_prepared_statements: name text, statement text, prepare_time timestamptz, from_sql bool
pg_proc: oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost float4,
  prorows float4, provariadic oid, prosupport oid, prokind char, prosecdef bool,
  proleakproof bool, proisstrict bool, proretset bool, provolatile char, proparallel char,
  pronargs int2, pronargdefaults int2, prorettype oid, proargtypes oid[], proallargtypes oid[],
  proargmodes char[], proargnames text[], proargdefaults text, protrftypes oid[], prosrc text,
  probin text, proconfig text[], proacl text[]
pg_publication: oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool,
  pubupdate bool, pubdelete bool, pubtruncate bool, pubviaroot bool
pg_publication_namespace: oid oid, pnpubid oid, pnnspid oid
pg_publication_rel: oid oid, prpubid oid, prrelid oid, prqual text, prattrs int2[]
pg_publication_tables: pubname name, schemaname name, tablename name
pg_range: rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid
pg_rewrite: oid oid, rulename name, ev_class oid, ev_type char, ev_enabled char, is_instead bool
pg_roles: rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool,
  rolcanlogin bool, rolreplication bool, rolconnlimit int4, rolpassword text,
  rolvaliduntil timestamptz, rolbypassrls bool, rolconfig text[], oid oid
pg_rules: schemaname name, tablename name, rulename name, definition text
pg_seclabel: objoid oid, classoid oid, objsubid int4, provider text, label text
pg_seclabels: objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid,
  objname text, provider text, label text
pg_sequence: seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8,
  seqmin int8, seqcache int8, seqcycle bool
pg_sequences: schemaname name, sequencename name, sequenceowner name, data_type text,
  start_value int8, min_value int8, max_value int8, increment_by int8, cycle bool,
  cache_size int8, last_value int8
pg_settings: name text, setting text, unit text, category text, short_desc text, extra_desc text,
  context text, vartype text, source text, min_val text, max_val text, enumvals text[],
  boot_val text, reset_val text, sourcefile text, sourceline int4, pending_restart bool
pg_shdescription: objoid oid, classoid oid, description text
pg_shdepend: dbid oid, classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid,
  deptype char
pg_stat_activity: datid oid, datname name, pid int4, usesysid oid, usename name,
  application_name text, client_addr text, client_port int4, backend_start timestamptz,
  query_start timestamptz, state text, query text, backend_type text
pg_stat_user_tables: relid oid, schemaname name, relname name, seq_scan int8, n_live_tup int8,
  n_dead_tup int8
pg_statio_user_tables: relid oid, schemaname name, relname name
pg_statistic_ext: oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid,
  stxstattarget int4, stxkeys int2[], stxkind char[], stxexprs text
pg_stats: schemaname name, tablename name, attname name, inherited bool, null_frac float4,
  avg_width int4, n_distinct float4
pg_subscription: oid oid, subdbid oid, subname name, subowner oid, subenabled bool,
  subbinary bool, substream bool, subtwophasestate char, subdisableonerr bool,
  subconninfo text, subslotname name, subsynccommit text, subpublications text[], subskiplsn text
pg_tables: schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool,
  hasrules bool, hastriggers bool, rowsecurity bool
pg_tablespace: oid oid, spcname name, spcowner oid, spcacl text[], spcoptions text[]
pg_timezone_names: name text, abbrev text, utc_offset text, is_dst bool
pg_trigger: oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2,
  tgenabled char, tgisinternal bool, tgconstrrelid oid, tgconstrindid oid, tgconstraint oid,
  tgdeferrable bool, tginitdeferred bool, tgnargs int2, tgattr int2[], tgargs text, tgqual text,
  tgoldtable name, tgnewtable name
pg_ts_config: oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid
pg_ts_dict: oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid,
  dictinitoption text
pg_ts_parser: oid oid, prsname name, prsnamespace oid
pg_ts_template: oid oid, tmplname name, tmplnamespace oid
pg_type: oid oid, typname name, typnamespace oid, typowner oid, typlen int2, typbyval bool,
  typtype char, typcategory char, typispreferred bool, typisdefined bool, typdelim char,
  typrelid oid, typsubscript oid, typelem oid, typarray oid, typinput oid, typoutput oid,
  typreceive oid, typsend oid, typmodin oid, typmodout oid, typanalyze oid, typalign char,
  typstorage char, typnotnull bool, typbasetype oid, typtypmod int4, typndims int4,
  typcollation oid, typdefaultbin text, typdefault text, typacl text[]
pg_user: usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool,
  usebypassrls bool, passwd text, valuntil timestamptz, useconfig text[]
pg_group: groname name, grosysid oid, grolist oid[]
pg_user_mapping: oid oid, umuser oid, umserver oid, umoptions text[]
pg_user_mappings: umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text[]
pg_views: schemaname name, viewname name, viewowner name, definition text
"""

_INFORMATION_SCHEMA: Final = """
check_constraints: constraint_catalog name, constraint_schema name, constraint_name name,
  check_clause text
column_privileges: grantor name, grantee name, table_catalog name, table_schema name,
  table_name name, column_name name, privilege_type text, is_grantable text
columns: table_catalog name, table_schema name, table_name name, column_name name,
  ordinal_position int4, column_default text, is_nullable text, data_type text,
  character_maximum_length int4, character_octet_length int4, numeric_precision int4,
  numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type text,
  interval_precision int4, character_set_catalog name, character_set_schema name,
  character_set_name name, collation_catalog name, collation_schema name, collation_name name,
  domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name,
  udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4,
  dtd_identifier name, is_self_referencing text, is_identity text, identity_generation text,
  identity_start text, identity_increment text, identity_maximum text, identity_minimum text,
  identity_cycle text, is_generated text, generation_expression text, is_updatable text
constraint_column_usage: table_catalog name, table_schema name, table_name name,
  column_name name, constraint_catalog name, constraint_schema name, constraint_name name
constraint_table_usage: table_catalog name, table_schema name, table_name name,
  constraint_catalog name, constraint_schema name, constraint_name name
domains: domain_catalog name, domain_schema name, domain_name name, data_type text
enabled_roles: role_name name
applicable_roles: grantee name, role_name name, is_grantable text
element_types: object_catalog name, object_schema name, object_name name, object_type text,
  collection_type_identifier name, data_type text
foreign_tables: foreign_table_catalog name, foreign_table_schema name, foreign_table_name name
information_schema_catalog_name: catalog_name name
key_column_usage: constraint_catalog name, constraint_schema name, constraint_name name,
  table_catalog name, table_schema name, table_name name, column_name name,
  ordinal_position int4, position_in_unique_constraint int4
parameters: specific_catalog name, specific_schema name, specific_name name,
  ordinal_position int4, parameter_mode text, parameter_name name, data_type text
referential_constraints: constraint_catalog name, constraint_schema name, constraint_name name,
  unique_constraint_catalog name, unique_constraint_schema name, unique_constraint_name name,
  match_option text, update_rule text, delete_rule text
role_table_grants: grantor name, grantee name, table_catalog name, table_schema name,
  table_name name, privilege_type text, is_grantable text, with_hierarchy text
routines: specific_catalog name, specific_schema name, specific_name name, routine_catalog name,
  routine_schema name, routine_name name, routine_type text, data_type text,
  routine_definition text, external_language text
schemata: catalog_name name, schema_name name, schema_owner name,
  default_character_set_catalog name, default_character_set_schema name,
  default_character_set_name name, sql_path text
sequences: sequence_catalog name, sequence_schema name, sequence_name name, data_type text,
  numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, start_value text,
  minimum_value text, maximum_value text, increment text, cycle_option text
table_constraints: constraint_catalog name, constraint_schema name, constraint_name name,
  table_catalog name, table_schema name, table_name name, constraint_type text,
  is_deferrable text, initially_deferred text, enforced text, nulls_distinct text
table_privileges: grantor name, grantee name, table_catalog name, table_schema name,
  table_name name, privilege_type text, is_grantable text, with_hierarchy text
tables: table_catalog name, table_schema name, table_name name, table_type text,
  self_referencing_column_name name, reference_generation text, user_defined_type_catalog name,
  user_defined_type_schema name, user_defined_type_name name, is_insertable_into text,
  is_typed text, commit_action text
triggers: trigger_catalog name, trigger_schema name, trigger_name name, event_manipulation text,
  event_object_catalog name, event_object_schema name, event_object_table name,
  action_statement text, action_timing text
view_column_usage: view_catalog name, view_schema name, view_name name, table_catalog name,
  table_schema name, table_name name, column_name name
view_table_usage: view_catalog name, view_schema name, view_name name, table_catalog name,
  table_schema name, table_name name
views: table_catalog name, table_schema name, table_name name, view_definition text,
  check_option text, is_updatable text, is_insertable_into text, is_trigger_updatable text,
  is_trigger_deletable text, is_trigger_insertable_into text
"""


@dataclass(frozen=True, slots=True)
class PgRelation:
    """A relation of the catalog and its columns, by name."""

    schema: str
    name: str
    columns: Mapping[str, ColumnType]


def _read(schema: str, text: str) -> dict[tuple[str, str], PgRelation]:
    found = {}
    for line in text.replace("\n  ", " ").strip().split("\n"):
        name, _, columns = line.partition(": ")
        pairs = (column.split() for column in columns.split(","))
        types = {column: column_type(kind) for column, kind in pairs}
        found[schema, name] = PgRelation(schema, name, types)
    return found


PG_RELATIONS: Final[Mapping[tuple[str, str], PgRelation]] = {
    **_read(PG_CATALOG, _PG_CATALOG),
    **_read(INFORMATION_SCHEMA, _INFORMATION_SCHEMA),
}
"""All relations, by schema and name."""


def find_relation(schema: str | None, name: str) -> PgRelation | None:
    """Return the relation that a query calls by this name, if there is one.

    >>> find_relation(None, "pg_class").columns["relkind"].name
    'char'
    >>> find_relation(None, "tables") is None
    True
    """
    return PG_RELATIONS.get((schema or PG_CATALOG, name))


def type_of_column(name: str) -> ColumnType | None:
    """Return the type of columns of that name; where they differ, of one of them."""
    return _BY_COLUMN.get(name)


VECTORS: Final = frozenset(
    {"indclass", "indcollation", "indkey", "indoption", "proargtypes", "tgattr"}
)
"""Arrays that begin at 0, and are written as numbers with spaces between them."""

_BY_COLUMN: Final = {
    column: kind for relation in PG_RELATIONS.values() for column, kind in relation.columns.items()
}
CHARS: Final = frozenset(name for name, kind in _BY_COLUMN.items() if kind.name == "char")
"""Columns of the type ``"char"``."""
