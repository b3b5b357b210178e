"""What dbt finds under ``type: reclock``: PostgreSQL's adapter with other ways to make models."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.reclock.connections import ReclockCredentials
from dbt.adapters.reclock.impl import ReclockAdapter
from dbt.include import reclock

Plugin = AdapterPlugin(
    adapter=ReclockAdapter,
    credentials=ReclockCredentials,
    include_path=reclock.PACKAGE_PATH,
    dependencies=["postgres"],
)
