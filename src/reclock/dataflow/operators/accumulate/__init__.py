"""Aggregates as sums of integers, exact under retraction.

An aggregate names the *terms* it is computed from and reads its result off their totals. A
term is a sum over the rows of a group, of exact integers: a count, a total, a total of
squares; of floats as integers times a power of two. Sums are linear: what a row adds when
it is inserted it takes away when it is deleted, and nothing remains.

``exact`` (arrays of exact numbers), ``term`` (what is summed and how it is stored), then
one file per family: ``count``, ``total``, ``average``, ``variance``, ``truth``.
"""
