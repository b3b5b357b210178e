"""Layer 1: orders, frontiers, and every rule about time, as pure functions and values.

Nothing here does input or output or reads a clock. Start with ``order``, then
``antichain``, ``frontier``, ``description``, ``timeline``; the rules (``oracle``, ``holds``,
``policy``, ``select``, ``expiry``) stand on those.
"""
