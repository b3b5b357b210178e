{{ config(materialized='index') }}
on {{ ref('sales') }} (total)
