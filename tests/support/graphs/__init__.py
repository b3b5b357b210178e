"""Graphs and arrangements that tests fill and read, tick by tick, with no database around them."""
