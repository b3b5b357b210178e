{{ config(indexes=[{'columns': ['region']}]) }}
select r.region, count(*) as orders, sum(b.amount) as total
from {{ ref('bought') }} b join {{ ref('regions') }} r on r.code = b.code
group by r.region
