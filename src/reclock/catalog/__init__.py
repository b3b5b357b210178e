"""The catalog: objects, roles, settings, and the names by which queries find them.

``item`` says what an object is and how a record keeps it; ``catalog`` is all of them at one
version, a frozen fold over durable records. ``roles`` and ``settings`` are kept with them.
``system_relation`` is the shape of a relation whose rows the system makes (``system``). Nothing
here runs: sources, sinks and views are values, which the packages above put to work.

Tests: tests/catalog.
"""
