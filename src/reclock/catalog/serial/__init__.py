"""Sequences: numbers that are given once, for keys that nobody makes up.

``item`` is a sequence and its arithmetic, ``define`` makes one of a statement, ``values`` gives
the numbers, durably.
"""
