"""Spark at work: the only package that imports pyspark.

``session`` starts Spark, or takes the one that is there; ``engine`` has it compute ticks, loads,
merges and answers: by ``job`` in one chain of stages, by ``tasks`` where parts do not meet, by
``peek`` for a query. ``evaluator`` computes the expressions of a wave of steps; ``batch`` and the
modules named ``…_text`` write plans as Spark SQL with PostgreSQL's meaning.

What tasks run is in ``dataflow``, which knows Arrow alone. Tests: tests/spark.
"""
