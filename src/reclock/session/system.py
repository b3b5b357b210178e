"""The owner of the state with all its parts: sources, sinks, readers, plans, sessions.

Tests: tests/engine/test_crash.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.connectors.kafka.client import KafkaCluster
from reclock.engine.catalog_change import reconcile
from reclock.engine.core import Core
from reclock.export.exporters import Exporters
from reclock.export.outlets import KAFKA_OUTLETS
from reclock.ingest.intakes import Intakes
from reclock.session.backends import Backends
from reclock.session.catalog_queries import catalog_queries
from reclock.session.definition import load_catalog
from reclock.session.plans import Plans
from reclock.subscribe.subscribers import Subscribers
from reclock.system import RELATIONS

if TYPE_CHECKING:
    from reclock.arrangement.store import Store as Segments
    from reclock.clock import Clock
    from reclock.durable.store import Store
    from reclock.engine.engine import Engine
    from reclock.export.connect import Outlets
    from reclock.ingest.connect import Clusters


class System(Core):
    """What sessions work with."""

    def __init__(
        self,
        store: Store,
        segments: Segments,
        engine: Engine,
        clock: Clock,
        *,
        clusters: Clusters = KafkaCluster,
        outlets: Outlets = KAFKA_OUTLETS,
        is_copy: bool = False,
    ) -> None:
        super().__init__(
            store,
            segments,
            engine,
            clock,
            system=RELATIONS,
            load_catalog=load_catalog,
            reconcile=reconcile,
            is_copy=is_copy,
        )
        self.intakes: Intakes = Intakes(self, clusters)
        self.exporters: Exporters = Exporters(self, outlets)
        self.subscribers = Subscribers(self)
        self.plans = Plans()
        """What is known of query texts."""
        self.pg = catalog_queries()
        """Our catalog as PostgreSQL's."""
        self.backends = Backends(clock)
        """Which sessions there are."""
