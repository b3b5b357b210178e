"""The query net: random whole queries, asked of PostgreSQL and of every path of ours.

``tree`` is the text of a query as a tree that can be shrunk and that knows an equal way to say
it; ``generate`` draws one; ``tables`` has the relations and their random histories; ``judge`` is
PostgreSQL; ``paths`` are ours; ``run`` compares them (``tolerated`` has the errors
that are decided), and ``shrink`` makes a failing case small.
"""
