"""SQL: sessions, transactions, statements, and the database that users hold.

``database`` is what users hold, ``session`` one conversation with it, with settings and a
transaction of its own (``transaction``). ``statements`` has one file per statement; ``dml`` says
what INSERT, UPDATE, DELETE and MERGE are as a query, ``definition`` what CREATE makes.
``plans``, ``prepared`` and ``look_up`` make the second run of a text shorter than the first.
``pipeline`` compares a file of statements with what there is.

Tests: tests/session.
"""
