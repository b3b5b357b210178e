"""A PostgreSQL database as a source: one slot, one remap, a relation for each table.

``define`` makes the objects, ``intake`` reads, ``resolve`` finds what only the rows here can say,
``slots`` remembers which slots there are to drop. Why it is so:
docs/design/0013-postgresql-by-log-sequence-number.md.
"""
