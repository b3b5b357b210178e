"""From a failing case to the smallest one that fails on the same path.

The query first, greatest steps first, then the history, then single rows. A step is taken if our
answer still is not PostgreSQL's in the same way (wrong rows, or that error); a step that makes the
query invalid changes both, and is not.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from net.run import Case, Net
from net.tables import POSTGRES, SCHEMA
from net.tree import smaller

if TYPE_CHECKING:
    from net.tables import Contents
    from net.tree import Node

_PATIENCE = 600


def shrunk(net: Net, case: Case, patience: int = _PATIENCE) -> Case:
    """Return the smallest case that was found in ``patience`` trials."""
    trials = 0

    def fails(query: Node, past: list[Contents]) -> Case | None:
        nonlocal trials
        trials += 1
        once = Net(net.judge, net.spark, net.evaluator, wide=net.wide)
        once.run([query], past, only=case.path)
        alike = (c for c in once.report.cases if (c.path, c.code) == (case.path, case.code))
        return next(alike, None)

    best = fails(case.query, case.past) or case
    going = True
    while going and trials < patience:
        going = False
        for query in smaller(best.query):
            if trials >= patience:
                break
            if len(str(query)) < len(str(best.query)) and (found := fails(query, best.past)):
                best, going = found, True
                break
    for past in ([best.past[-1]], best.past[-2:]):
        if len(past) < len(best.past) and (found := fails(best.query, past)):
            best = found
    for name in SCHEMA:
        for row in list(best.past[-1][name]):
            fewer = [
                {**c, name: Counter({r: n for r, n in c[name].items() if r != row})}
                for c in best.past
            ]
            if trials < patience and (found := fails(best.query, fewer)):
                best = found
    return best


def script(case: Case) -> str:
    """Return the case as a script of tests/slt; PostgreSQL fills in the answer."""
    parts = [f"# {case.path}: {case.said.splitlines()[-1][:90] if case.said else ''}"]
    used = [name for name in SCHEMA if f"{name} r" in case.text]
    for name in used:
        columns = ", ".join(f"{c} {POSTGRES[k]}" for c, k in SCHEMA[name])
        parts.append(f"table\nCREATE TABLE {name} ({columns})")
    for name in used:
        rows = [", ".join(map(_literal, row)) for row in case.past[-1][name].elements()]
        if rows:
            parts.append(f"rows\nINSERT INTO {name} VALUES " + ", ".join(f"({r})" for r in rows))
    parts.append(f"query\n{case.text}\n----")
    return "\n\n".join(parts) + "\n"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, tuple):
        inside = ",".join("NULL" if v is None else str(v) for v in value)
        return f"'{{{inside}}}'"
    return "'" + str(value).replace("'", "''") + "'"
