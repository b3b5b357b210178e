"""Layer 3: the durable map from time to source positions, as a pure state machine.

``trace`` is the map itself, ``mint`` extends it, ``follow`` reads through it, ``resume``
inverts it; ``handle`` is all they ask of storage. No module here does input or output.
"""
