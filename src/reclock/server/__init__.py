"""Servers: SQL over PostgreSQL's wire protocol.

``codec`` turns bytes into messages and values, and back; ``protocol`` is the conversation,
without sockets; the rest owns sockets and threads. There is no well-kept library for the
server's side of this protocol in Python, so it is ours.
"""
