"""Kafka as a source.

``source`` has all that can be decided without a broker; what it asks one is the protocol
of ``cluster``, which ``client`` and ``fetch`` implement with confluent-kafka, and
``reclock.testing.kafka_log`` in memory.
"""
