{# Sources, sinks and indexes: the model is what stands behind CREATE … name. One that exists is left
   alone, whatever the model says now; --full-refresh drops it and makes it again. None can be in a
   transaction. #}

{% materialization source, adapter='reclock' %}
  {%- set target_relation = this.incorporate(type='external') -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {%- set existing = reclock_existing(target_relation) -%}
  {%- if existing is not none and (should_full_refresh() or existing.type != 'external') -%}
    {%- do reclock_alone('drop ' ~ ('source' if existing.type == 'external' else existing.type | replace('_', ' '))
        ~ ' ' ~ target_relation ~ ' cascade') -%}
    {%- set existing = none -%}
  {%- endif -%}
  {{ reclock_made('source', target_relation, existing is not none) }}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
  {%- do persist_docs(target_relation, model) -%}
  {%- do adapter.commit_if_begun() -%}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{% materialization sink, adapter='reclock' %}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {%- set found = run_query("select name from reclock.objects where kind = 'sink' and name = '" ~ this.identifier ~ "'") -%}
  {%- set exists = found.rows | length > 0 -%}
  {%- if exists and should_full_refresh() -%}
    {%- do reclock_alone('drop sink ' ~ this) -%}
    {%- set exists = false -%}
  {%- endif -%}
  {{ reclock_made('sink', this, exists) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': []}) }}
{% endmaterialization %}

{% materialization index, adapter='reclock' %}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {%- if should_full_refresh() -%}
    {%- do reclock_alone('drop index if exists ' ~ this) -%}
  {%- endif -%}
  {%- do reclock_alone('create index if not exists "' ~ this.identifier ~ '" ' ~ sql | trim) -%}
  {%- do store_raw_result(name='main', message='CREATE INDEX', code='CREATE INDEX', rows_affected=-1) -%}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': []}) }}
{% endmaterialization %}

{% macro reclock_made(word, relation, exists) %}
  {%- if exists -%}
    {%- do store_raw_result(name='main', message='UNCHANGED', code='UNCHANGED', rows_affected=-1) -%}
  {%- else -%}
    {% call statement('main', auto_begin=False) -%}
      create {{ word }} {{ relation }}
{{ sql | trim }}
    {%- endcall %}
  {%- endif -%}
{% endmacro %}

{# Run a statement that cannot be in a transaction. #}
{% macro reclock_alone(statement_sql) %}
  {% call statement('alone', auto_begin=False) %}{{ statement_sql }}{% endcall %}
{% endmacro %}
