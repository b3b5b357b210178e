"""Layer 3: the durable map from time to source positions, as a value.

``trace`` is the map itself; ``follow`` says when a position lands, ``batch`` the same of many at
once; ``supplied`` reads bindings that users bring. Ticks extend it (``engine.tick``), and
``durable.remap_store`` keeps it. No module here does input or output.
"""
