"""Servers for development and tests, real ones, fetched when first used.

``kafka`` is an Apache Kafka on loopback; its jars come through the Ivy that pyspark carries
(``jars``). Nothing of reclock needs these to run: a user has servers of their own.
"""
