"""Layer 5: the pieces of exactly-once sinks, which ``export`` drives; no Spark.

Read in this order. ``log`` is the contract: an ``Unfenced`` producer can do nothing but fence,
and only the ``Fenced`` one it becomes can read progress and send. ``consistency`` is what is
written down about progress, ``progress`` how it is found again, ``producer`` one Kafka
transaction, ``failure`` what each error of the broker means for the sink. ``topics`` makes and
checks topics, ``encode`` makes messages of changes, ``gather`` puts closed timestamps into groups,
and ``export`` brings these together: from closed timestamps to committed ones, with no thread, no
loop and no clock. What talks to a real cluster is in ``connect`` and ``admin``; ``files`` is a log
without transactions, for CDCv2.
"""
