"""The incremental operators: one file each, its rule in the header.

``join``, ``reduce`` (with ``accumulate``), ``threshold``, ``groups`` and, on top of it,
``topk`` and ``minmax``; ``flatmap``. Union, negate, permute and mask are so small that they
live with ``reclock.dataflow.delta``. Every one is compared with the model
(tests/support/model) at every time.
"""
