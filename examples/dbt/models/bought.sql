{{ config(materialized='view') }}
-- every counted number is an order of one of two regions
select counter as id, case when counter % 2 = 0 then 'n' else 's' end as code, counter % 10 as amount
from {{ ref('orders') }}
