"""Rewrites: one rule per file, each of which leaves the result as it was.

A rule is a function from a plan to a plan. ``pipeline`` puts them in order. Rules move only
expressions that cannot fail to places where more rows are seen, so no rewrite makes a query fail;
it may make one succeed that computed an unused error.
"""
