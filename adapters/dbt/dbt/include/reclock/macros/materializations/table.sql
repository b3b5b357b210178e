{# A table has the rows that its query gave when dbt ran. If its columns are as they were, its rows are
   replaced at one timestamp, and views and sinks over it go on; else it is made again, and what depends
   on it must be too: --full-refresh. #}

{% materialization table, adapter='reclock' %}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set grant_config = config.get('grants') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set existing = reclock_existing(target_relation) -%}
  {%- if existing is not none and (should_full_refresh() or existing.type != 'table') -%}
    {%- do reclock_drop(target_relation, existing.type) -%}
    {%- set existing = none -%}
  {%- endif -%}

  {%- if existing is not none -%}
    {%- set wanted = reclock_columns(sql) -%}
    {%- if wanted != reclock_columns('select * from ' ~ target_relation) -%}
      {{ exceptions.raise_compiler_error(
        "the columns of " ~ target_relation ~ " are no longer those of its query; dbt run --full-refresh makes it again, "
        "and drops what depends on it") }}
    {%- endif -%}
    {% call statement('delete') -%}delete from {{ target_relation }}{%- endcall %}
    {% call statement('main') -%}
      insert into {{ target_relation }}
{{ sql | trim }}
    {%- endcall %}
  {%- else -%}
    {% call statement('main') -%}
      {{ get_create_table_as_sql(False, target_relation, sql) }}
    {%- endcall %}
  {%- endif -%}

  {%- do create_indexes(target_relation) -%}
  {%- do apply_grants(target_relation, grant_config, should_revoke=should_revoke(existing, full_refresh_mode=True)) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {%- do adapter.commit_if_begun() -%}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{# The names and types of what a query gives. #}
{% macro reclock_columns(query) %}
  {% set found = [] %}
  {% for column in adapter.get_column_schema_from_query(get_empty_subquery_sql(query)) %}
    {% do found.append(column.name ~ ' ' ~ column.dtype) %}
  {% endfor %}
  {{ return(found) }}
{% endmacro %}
