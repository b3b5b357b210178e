"""ALTER of objects that others are made of.

``table`` says what becomes of a table, ``rebuild`` of what depends on it; how views go on reading
columns by the names they had is ``reclock.catalog.seen``.
"""
