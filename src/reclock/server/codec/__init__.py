"""Bytes ⇄ messages and values of PostgreSQL's protocol, version 3.

``frontend`` has the messages that clients send, ``backend`` those that servers send; both are
tables of ``field`` layouts, so whatever can be written can be read. ``frames`` cuts a stream of
bytes into messages. ``oid`` says which SQL type is which on the wire, ``text`` and ``binary``
read and write single values, ``rows`` whole batches of them. Nothing here does input or output.

Tests: tests/server/codec.
"""
