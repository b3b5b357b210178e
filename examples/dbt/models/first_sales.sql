{{ config(materialized='table') }}
select region, orders from {{ ref('sales') }}
