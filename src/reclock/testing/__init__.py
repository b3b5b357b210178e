"""What tests of programs that use reclock need; shipped with it.

``failpoints`` make a durable step fail. ``kafka_log`` is Kafka in memory, for sources and, by
``outlets``, for sinks; ``kafka`` and ``postgres`` start real servers, ``schema_registry`` one that
keeps its schemas in memory. Time is a ``reclock.ManualClock``. Nothing here needs Spark.
"""
