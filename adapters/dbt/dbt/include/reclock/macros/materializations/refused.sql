{# What dbt would do by and by, a materialized view does at once. #}

{% materialization incremental, adapter='reclock' %}
  {{ exceptions.raise_compiler_error(
    "dbt-reclock has no incremental models: a materialized view is kept up by every change, and is never wrong about "
    "rows that came late or were changed. Write materialized='materialized_view', without is_incremental().") }}
{% endmaterialization %}

{% materialization snapshot, adapter='reclock' %}
  {{ exceptions.raise_compiler_error(
    "dbt-reclock has no snapshots: one sees only what is there when dbt runs, and reclock has every change, with its "
    "time. Read the past with AS OF, follow it with SUBSCRIBE, or keep it in a topic with a sink model.") }}
{% endmaterialization %}
