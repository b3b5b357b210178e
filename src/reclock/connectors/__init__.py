"""Connectors: sources in two halves, without Spark.

``source`` is the protocol, ``stamp`` gives records their times; each source has a package
of its own, and they do not know each other.
"""
