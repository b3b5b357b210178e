"""A transaction: the draft of what it did, whether what it was told still holds, and its append."""
