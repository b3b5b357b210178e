"""The conversation with a client, without sockets.

Everything here is a coroutine over a ``Wire``, which brings messages, takes bytes, and runs what
may take long elsewhere; no module imports asyncio or knows what a socket is. ``startup`` lets
somebody in (or not), ``conversation`` answers until they leave, ``extended`` has what they
prepared, ``portal`` and ``feed`` give rows bit by bit.

States, and what ends them::

    startup ──authenticated──▶ ready ──message──▶ busy ──done──▶ ready
                                 ▲                  │ error of an extended message
                                 └──────Sync────── skipping

Promises: whatever bytes come, the answer is a message that the protocol allows, or the end of the
connection; after an error nothing of the same group is run; every portal and what it holds is
let go when its transaction, or the connection, ends.

Tests: tests/server/protocol.
"""
