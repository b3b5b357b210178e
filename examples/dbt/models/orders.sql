{{ config(materialized='source') }}
FROM LOAD GENERATOR COUNTER
