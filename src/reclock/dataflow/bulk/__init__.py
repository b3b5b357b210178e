"""First loads of many rows: the steps of a graph, run from nothing, in parts side by side.

``hydrate`` gives the contents of new arrangements exactly as ``dataflow.hydrate`` does, and
by the same operators, but in *parts*: a part is a range of key hashes (``parts``), a task
computes one part. Tasks are Spark's; on this machine alone they are threads, which start
at once and share its memory maps. ::

    stage 0 ─ exchange ─ stage 1 ─ exchange ─ … ─ runs of the new arrangements

Inside a stage a task runs, for its part, every step whose inputs are there: steps that look
at one update at a time on whatever rows it has, operators with a key on all rows whose key
is in its range (``schedule``). What another task needs is exchanged through the segment
store: a task writes what it made arranged by the key that the next stage wants, sorted by
hash, and each task of the next stage maps its range of all those runs. Rows never pass
through the driver, and through the JVM only for expressions, general aggregates and window
functions (``ask``), which Spark evaluates beside their errors as in any tick: an error row
is an error row here too, and no row fails a job.

The new arrangements get one run per part, with disjoint ranges of hashes. Runs are
consolidated, so a task that is run again writes the same file. What was exchanged is
removed at the end; after a crash it is garbage like any segment that nothing names.

Cost: one job per stage, every row once through each exchange. Memory of a task: its part.
Keeps P3 and P5; tests: tests/dataflow/test_bulk.py compares with ``dataflow.hydrate``.
"""
