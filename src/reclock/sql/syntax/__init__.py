"""Syntax as frozen values: names are not resolved, types are not known.

``expression`` and ``query`` are all that planning sees of a parsed text, so the parser
behind them can be replaced. Positions count characters of the text from 1.
"""
