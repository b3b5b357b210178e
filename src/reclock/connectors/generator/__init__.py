"""Load generators as sources: logs that reclock makes itself.

``model`` says what a generator is, ``draw`` and ``text`` where its numbers and words come
from, ``counter``, ``auction`` and ``bank`` are the generators, ``source`` makes them sources.
"""
