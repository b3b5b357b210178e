{# Views and materialized views. One whose query is as it was is left alone: it is up to date, and what
   follows it goes on. Another query replaces it; --full-refresh drops it, and all that depends on it. #}

{% materialization view, adapter='reclock' %}
  {{ return(reclock_view('view')) }}
{% endmaterialization %}

{% materialization materialized_view, adapter='reclock' %}
  {{ return(reclock_view('materialized_view')) }}
{% endmaterialization %}

{% macro reclock_view(type) %}
  {%- set target_relation = this.incorporate(type=type) -%}
  {%- set word = 'materialized view' if type == 'materialized_view' else 'view' -%}
  {%- set query = sql | trim -%}
  {%- set grant_config = config.get('grants') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set existing = reclock_existing(target_relation) -%}
  {%- if existing is not none and (should_full_refresh() or existing.type != type) -%}
    {%- do reclock_drop(target_relation, existing.type) -%}
    {%- set existing = none -%}
  {%- endif -%}

  {%- if existing is not none and adapter.is_same_query(existing.definition, query) -%}
    {%- do store_raw_result(name='main', message='UNCHANGED', code='UNCHANGED', rows_affected=-1) -%}
  {%- else -%}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(query) }}
    {%- endif -%}
    {% call statement('main') -%}
      create {% if existing is not none %}or replace {% endif %}{{ word }} {{ target_relation }} as
{{ query }}
    {%- endcall %}
  {%- endif -%}

  {%- do create_indexes(target_relation) -%}
  {%- do apply_grants(target_relation, grant_config, should_revoke=should_revoke(existing, full_refresh_mode=True)) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {%- do adapter.commit_if_begun() -%}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmacro %}
