"""Transactions of a source: their rows and numbers, what waits, and what a tick releases."""
