"""Layer 3: text → statement → relational plan → rewrites → explanation; pure, no Spark.

``parse`` turns text into frozen ``statement`` values; queries inside them are values of
``syntax``. ``plan.build`` resolves names against a read-only ``names.CatalogView`` and
gives a typed plan whose nodes check themselves and carry their timeline. ``rewrite``
improves plans without changing what they mean. ``explain`` prints them.

Only ``parse`` imports sqlglot, and none of its types leaves that package.
"""
