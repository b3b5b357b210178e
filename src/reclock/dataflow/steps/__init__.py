"""The steps of a graph, one family per file: an operator wired to its inputs and state."""
