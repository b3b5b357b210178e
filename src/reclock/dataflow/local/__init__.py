"""Expressions that need no Spark: Arrow computes them where the rows are.

Definition. An expression is *local* if it is made of columns and constants, of AND, OR, CASE and
COALESCE, and of the functions and casts that the modules of this package have a kernel for, with
the types that they name::

    comparison    = <> < <= > >=, is [not] distinct from, is null/true/false, not, nullif,
                  greatest, least
    integers      + - * / % abs & | #            of one integer type
    decimals      + - * abs                      of numeric
    floats        + - * / abs                    of real or double precision
    moments       dates and times: + -, date_bin, date_trunc, extract, mz_timestamp
    texts         ||, length, left, substring and LIKE by constants
    series        generate_series by a constant step
    casts         between numbers, dates and times, and to text

A kernel gives each row the value that Spark gives it (``sql.plan.spark_text``), or its error: rows
do not change when the place changes where they are computed. Invariants: a kernel never raises,
whatever is in a row; the value of a row with an error is NULL; an operand that CASE, AND, OR or
COALESCE would not have looked at contributes no error.

Cost: a pass over the columns for each function. What an expression over millions of rows costs in
Spark is mostly the copy of the rows to the JVM and back, and a small change needs no job at all.

Compared with plain Python and with Spark: tests/dataflow/local.
"""

from reclock.dataflow.local.tree import evaluated, is_local

__all__ = ["evaluated", "is_local"]
