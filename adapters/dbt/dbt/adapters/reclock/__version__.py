"""The version that ``dbt --version`` shows."""

version = "0.2.0"
