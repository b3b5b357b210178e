"""From which time a dataflow starts, or starts again, so that nothing is skipped or repeated.

Definition. A dataflow started ``as_of`` a first shows each input accumulated at a, then
every change at later times. An output that is durable up to ``{u}`` drops what the
dataflow shows at times before u, because it has been written, and takes the rest.

Hard constraints. For inputs i with sinces ``{s_i}`` and outputs o written up to ``{u_o}``::

    (1)  s_i ≤ a            for every input: before since, accumulations are wrong
    (2)  a ≤ u_o - 1        for every output with u_o > 0: the accumulation at a must lie in
                            what is written, since only changes can continue a change log

An output's first write must therefore pass a: one that stops at or before it, empty, would be found
by the restart as written, and the accumulation would be dropped as known. With a ≥ u the change
between u - 1 and a would be inside the accumulation, inseparable from the rest: skipped if dropped,
repeated if not. An output at ``{0}`` was never written, and a finished one (``{}``) takes nothing
more: neither constrains a.

Soft constraint. As late as (1) and (2) allow, but not beyond the largest time C complete in
all inputs, so that the accumulation needs no wait and covers the least history::

    a  =  max(S, min(C, U - 1))      S = max s_i,   U = min u_o over written outputs

A new dataflow thus starts at C; a resumed one exactly at U - 1 when the inputs are at
least as far as the output, which is the normal case. Over closed inputs C is without
bound; a new dataflow then starts at S, so that its output is readable at the timeline's
present, wherever that is. If every output is finished there is nothing to run.

Why restart cannot fail when holds were kept. Claim: S ≤ U - 1, so (1) and (2) can be met.
A dataflow acquires a hold on all its inputs before its as-of is chosen (so s_i ≤ a), and
downgrades it to ``{u - 1}`` only after upper u of every output is durable, which by
induction keeps ``hold ≤ U - 1`` for the durable U: at the start hold ≤ a ≤ U - 1 by (2), or
no output is written; a step that makes U grow keeps it; a downgrade restores equality.
Stored data is compacted only to ``since ≤ permitted ≤ hold`` (``holds``, ``policy``). A
crash loses the token but no durable since or upper, so what the restart finds satisfies
s_i ≤ hold ≤ U - 1 for every i, whatever the order in which dataflows are restarted: each
constraint names durable bounds only, never another dataflow's choice. Conversely,
``CompactedPastResume`` means that the hold was lost or that inputs and outputs were
restored from different moments; going on would be a silent gap, so it is an error.

Cost O(n). Always within its constraints, and the proof as a simulation with crashes:
tests/time/test_as_of.py; cases: tests/datadriven/as_of.txt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reclock.errors import CompactedPastResume
from reclock.time.antichain import meet_all
from reclock.time.frontier import (
    BEGINNING,
    CLOSED,
    Bounds,
    Frontier,
    at,
    common_upper,
    describe_sinces,
    last_complete,
    readable_since,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Output:
    """Something a dataflow writes, and the upper that is durable for it."""

    object: str
    upper: Frontier


def choose_as_of(inputs: Iterable[Bounds], outputs: Iterable[Output]) -> Frontier:
    """Return the frontier to start from, ``{}`` when every output is finished.

    >>> orders = Bounds("orders", since=at(100), upper=at(150))
    >>> choose_as_of([orders], [Output("new view", at(0))])
    {149}
    >>> choose_as_of([orders], [Output("sink", at(120))])
    {119}
    >>> choose_as_of([orders], [Output("sink", at(80))])
    Traceback (most recent call last):
    reclock.errors.CompactedPastResume: sink cannot resume from 79: its inputs have forgotten it
    detail: orders has since {100}, the needed time is 79
    hint: drop and recreate sink, or restore its inputs and outputs from the same backup
    """
    read = tuple(inputs)
    wrote = tuple(outputs)
    if wrote and all(output.upper.is_closed for output in wrote):
        return CLOSED
    started = [o for o in wrote if not o.upper.is_closed and o.upper != BEGINNING]
    for output in started:
        _check_kept(output, read)
    since = readable_since(read)
    limit = meet_all([common_upper(read), *(output.upper for output in started)])
    latest = None if limit.is_closed else last_complete(limit)
    return at(since if latest is None else since.join(latest))


def _check_kept(output: Output, inputs: Sequence[Bounds]) -> None:
    """Refuse to resume where an input has forgotten what the output needs."""
    needed = output.upper.element().back()
    forgetful = [i for i in inputs if not i.kept_at(needed)]
    if forgetful:
        name = output.object
        message = f"{name} cannot resume from {needed}: its inputs have forgotten it"
        detail = f"{describe_sinces(forgetful)}, the needed time is {needed}"
        hint = f"drop and recreate {name}, or restore its inputs and outputs from the same backup"
        raise CompactedPastResume(message, detail=detail, hint=hint)
