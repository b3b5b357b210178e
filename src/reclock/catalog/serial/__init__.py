"""Sequences: numbers that are given once, for generated keys.

``item`` is a sequence and its arithmetic, ``define`` makes one of a statement, ``values`` gives
the numbers, durably.
"""
