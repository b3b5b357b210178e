"""First loads and ticks of many rows: the steps of a graph, in parts side by side.

``hydrate`` gives the contents of new arrangements exactly as ``dataflow.hydrate`` does,
``tick`` the updates of a tick as ``dataflow.maintain`` does, both by the same operators, but
in *parts*: a part is a range of key hashes (``parts``), computed by one worker. Workers are
threads of this process or Spark tasks (``workers``). ::

    stage 0 ─ exchange ─ stage 1 ─ exchange ─ … ─ runs of the arrangements

Inside a stage a worker runs, for its part, every step whose inputs are there: steps that look
at one update at a time on whatever rows it has, operators with a key on all rows whose key
is in its range (``schedule``), with the state of a tick looked up in the runs that are kept.
What another worker needs is exchanged through the segment store: each writes what it made
arranged by the key that the next stage wants, sorted by hash, and each worker of the next
stage maps its range of all those runs. Between tasks rows never pass through the driver;
Spark evaluates expressions, general aggregates and window functions beside their errors as
in any tick (``answers``, ``ask``): an error row is an error row here too, and no row fails a
job.

Every arrangement gets one run per part, with disjoint ranges of hashes, at all the times of
the tick. Runs are consolidated, so a part that is run again, after a failure or beside
itself, writes the same file under the same name. What was exchanged is removed at the end;
after a crash it is garbage like any segment that nothing names.

Cost: one job per stage, every row once through each exchange. Memory of a worker: its part.
Keeps P3 and P5; tests: tests/dataflow/test_bulk.py compares whole databases with the
driver's path, test_bulk_tick.py random plans at every time.
"""
