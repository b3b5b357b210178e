"""Transactions: the draft of its effects, the check of its answers, and its append."""
