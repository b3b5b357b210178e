"""Plans into graphs: one file per family of plan nodes.

``build`` is the way in; ``builder`` shares steps and arrangements; ``nodes`` says which
steps a node becomes, ``reduce`` how aggregates are divided among operators.
"""
