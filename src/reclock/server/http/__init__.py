"""HTTP: metrics and health for machines, SQL for programs, and the console for people.

One server (``server``) in a thread of its own, with an event loop of its own: neither ticks nor
the PostgreSQL port wait for it. What it shows comes from published facts (``session.facts``),
or from SQL in a session of the role that asks: data has one way out, and one set of rights.
"""
