"""One Spark job per tick, first load or catch-up: tasks touch rows, the driver sees references.

A job runs the steps of a graph in *parts*. A part is a range of key hashes (``parts``), one
task per stage. ::

    stage 0 ── shuffle ── stage 1 ── shuffle ── … ── references of the runs that were written

Inside a stage (``schedule``) a task runs, for its part, every step whose inputs are there:
steps that look at one update at a time on the rows it has, operators with a key on all rows
whose key is in its range, with state looked up in the runs that are kept (``reader``,
``part``). What another part needs travels through Spark's own shuffle as *messages*: Arrow
IPC bytes, one cell per (arrangement, target part), so rows never become rows of the JVM
(``message``). Expressions that are Spark's are a projection, general aggregates and window
functions a query, inside the same job (``question``, ``chain``).

The chain of DataFrames depends on the graph and on what changes, not on the changes: it is
built once and executed again with another *errand* (``errand``), which travels as a property
of the job.

Every arrangement gets one run per part, with disjoint ranges of hashes. Runs are consolidated
and named by their contents, so a task that is retried, or runs twice at once, writes the same
file under the same name.

Cost: every row once through each exchange. Memory of a worker: its part. Keeps P3 and P5.
Tests: tests/dataflow/test_job.py compares whole databases with the driver's path,
test_job_tick.py random plans at every time.
"""
