"""Layer 4: what must survive a crash, behind one primitive: compare-and-append.

``store`` says what a durable collection is and what every store promises; ``sqlite``
(default) and ``postgres`` keep that promise, checked by one suite
(tests/support/conformance/store). The typed stores stand on it and add only names and
record formats: ``catalog_store``, ``manifest_store``, ``oracle_store``, ``remap_store``.
"""
