-- A query has one time, so this can be checked while orders come.
select a.total, b.total as of_orders
from (select sum(total) as total from {{ ref('sales') }}) a
cross join (select sum(amount) as total from {{ ref('bought') }}) b
where a.total <> b.total
