"""Rows as people and programs give and get them: Python tuples, Arrow, CSV, text tables.

``given`` turns rows from outside into columns of a table's types; ``result`` is what a statement
gives back, and ``text_table`` prints it; ``copy_text`` and ``copy_csv`` are PostgreSQL's formats.

Tests: tests/rows.
"""
