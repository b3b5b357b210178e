"""Layer 4: the indexed state of operators and collections, on Arrow and numpy alone.

An arrangement is a multiset of updates ``(key, value, time, diff)``, split into shards by
a hash of the key. A shard is a few immutable sorted *runs*; runs are packed into *segment*
files; which runs make up a shard is written in the manifest, which is ``durable``'s.

Read from the bottom: ``layout`` (the columns), ``column``, ``row``, ``fingerprint`` (exact
equality of any Arrow type), ``consolidate`` (sort, sum, drop zeros), ``stream`` (the same
over runs larger than memory), ``run`` and ``segment`` (bytes), ``store``, ``held``, ``remote``
(where the bytes are), ``file`` and ``cache`` (what is open of them), ``probe`` and ``shard``
(reading), ``build`` and ``merge`` (writing), ``gc`` (forgetting).
"""
