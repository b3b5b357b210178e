{# What there is, sources and sinks too, in one look at the catalog. #}
{% macro reclock__list_relations_without_caching(schema_relation) %}
  {% call statement('list_relations_without_caching', fetch_result=True) -%}
    select
      '{{ schema_relation.database }}' as database,
      c.relname as name,
      n.nspname as schema,
      case c.relkind
        when 'v' then 'view' when 'm' then 'materialized_view' when 'f' then 'external' else 'table'
      end as type
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = '{{ schema_relation.schema }}' and c.relkind in ('r', 'v', 'm', 'f')
  {% endcall %}
  {{ return(load_result('list_relations_without_caching').table) }}
{% endmacro %}

{# What has the name of a relation now: its type, and its query if it is a view; none if nothing has.
   The cache does not know what a CASCADE of another model took away. #}
{% macro reclock_existing(relation) %}
  {% set asked %}
    select
      case c.relkind
        when 'v' then 'view' when 'm' then 'materialized_view' when 'f' then 'external' else 'table'
      end as type,
      case when c.relkind in ('v', 'm') then pg_get_viewdef(c.oid) end as definition
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = '{{ relation.schema }}' and c.relname = '{{ relation.identifier }}'
      and c.relkind in ('r', 'v', 'm', 'f')
  {% endset %}
  {% set rows = run_query(asked).rows %}
  {% if rows | length == 0 %}{{ return(none) }}{% endif %}
  {{ return({'type': rows[0][0], 'definition': rows[0][1]}) }}
{% endmacro %}

{% macro reclock_drop(relation, type) %}
  {% set word = {'materialized_view': 'materialized view', 'external': 'source'}.get(type, type) %}
  {% call statement('drop') -%}drop {{ word }} if exists {{ relation }} cascade{%- endcall %}
  {% do adapter.cache_dropped(relation) %}
{% endmacro %}

{% macro reclock__get_drop_sql(relation) -%}
  {%- set word = {'materialized_view': 'materialized view', 'external': 'source'}.get(relation.type, relation.type) -%}
  drop {{ word }} if exists {{ relation }} cascade
{%- endmacro %}

{# The name says what is indexed, so an index that is there is not made again. #}
{% macro reclock__get_create_index_sql(relation, index_dict) -%}
  {%- set index_config = adapter.parse_index(index_dict) -%}
  create {% if index_config.unique %}unique {% endif %}index if not exists
    "{{ relation.identifier }}_{{ index_config.columns | join('_') }}_idx"
  on {{ relation }} ({{ index_config.columns | join(', ') }})
{%- endmacro %}

{% macro reclock__rename_relation(from_relation, to_relation) -%}
  {{ exceptions.raise_compiler_error(
    "dbt-reclock renames nothing: what depends on " ~ from_relation ~ " depends on the object") }}
{%- endmacro %}
