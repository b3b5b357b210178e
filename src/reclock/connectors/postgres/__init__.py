"""PostgreSQL as a source: a replication slot, an exported snapshot, and pgoutput.

``connection`` opens connections and says what went wrong; ``describe`` asks the catalog which
tables a publication has; ``slot`` makes and drops slots; ``snapshot`` copies tables; ``stream``
reads the log; ``pgoutput`` decodes its messages; ``rows`` and ``values`` make records of them.
"""
