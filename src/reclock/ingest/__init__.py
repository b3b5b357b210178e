"""Sources in the running system: what they are made of, how they are read, how they do.

``define`` and ``connect`` make a source of a statement; ``intake`` reads one, ahead of its
bindings, into ``staging``, in a thread of its own (``pump``) or within the tick;
``intakes`` has those of all sources, and is what the engine knows of them (``engine.parts``).
"""
