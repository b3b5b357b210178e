"""SUBSCRIBE: chooses the first time, and holds history for it.

The time is chosen as that of a read is (``time.select``). An object is held at it. A query is
kept from now on, or already is; asked for AS OF a time before that, its inputs are held there
until the subscription has caught up.

Tests: tests/subscribe/test_subscribe.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from reclock.catalog.item import RelationItem
from reclock.engine.leaves import leaves
from reclock.engine.read import read_time
from reclock.errors import HoldViolation, InvalidValue, NotSupported
from reclock.session.background_ddl import beside
from reclock.sql.as_of import asked, time_of
from reclock.subscribe.subscribers import Query, Transient
from reclock.subscribe.subscription import Span, Subscription
from reclock.subscribe.target import plan_target
from reclock.time.select import AsOf, select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.catalog.item import Index, Item
    from reclock.engine.preparation import Prepared
    from reclock.engine.world import World
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Subscribe
    from reclock.subscribe.subscribers import Grip
    from reclock.subscribe.target import Target
    from reclock.time.select import Choice
    from reclock.time.timestamp import Timestamp


def subscribe(context: Context, statement: Subscribe) -> NoReturn:
    """Refuse: a result has an end, what a subscription gives need not have one."""
    del context, statement
    message = "SUBSCRIBE cannot be executed for a result"
    raise NotSupported(message, hint="use subscribe(…), or copy(…) with COPY (SUBSCRIBE …)")


def open_subscription(
    context: Context, statement: Subscribe, timeout: float | None
) -> Subscription:
    """Begin to follow what a statement says."""
    core = context.core
    core.subscribers.sweep()
    grip = core.subscribers.grip()
    try:
        while True:
            with core.reading() as world:
                target = plan_target(statement, context.parameters, world.catalog)
                if target.timeline is None:
                    choice = _choose(context, target, world, [])
                    return _opened(context, target, Span(None, choice.timestamp), grip, timeout)
                if target.item is None:
                    break
                item = world.catalog[target.item]
                assert isinstance(item, RelationItem)
                choice = _choose(context, target, world, [item])
                try:
                    grip.holds.append(core.hold(grip.holder, [item.id], choice.timestamp))
                except HoldViolation:
                    continue  # forgotten just now: the next choice is later, or refused
                return _opened(context, target, Span(item.id, choice.timestamp), grip, timeout)
        return _follow_query(context, target, grip, timeout)
    except BaseException:
        grip.release()
        core.subscribers.let_go()
        raise


def _follow_query(
    context: Context, asked_for: Target, grip: Grip, timeout: float | None
) -> Subscription:
    """Keep a query, and follow that."""
    core, statement = context.core, asked_for.statement
    exact = _hold_exact(context, statement, grip)
    number = core.subscribers.number()

    def make(world: World) -> Item:
        target = plan_target(statement, context.parameters, world.catalog)
        return core.subscribers.view(Query.followed(target), number, world)

    def follow(world: World, view: Item, prepared: Prepared | None) -> Subscription:
        assert isinstance(view, Transient)
        target = plan_target(statement, context.parameters, world.catalog)
        grip.lease = core.subscribers.lease(Query.followed(target), view, prepared)
        since = core.world.of(view).sinces[view.id].element()
        if exact is not None and exact < since:
            grip.holds.append(core.hold(grip.holder, [view.id], since))
            return _opened(context, target, Span(view.id, exact, kept_from=since), grip, timeout)
        while grip.holds:
            grip.holds.pop().release()
        as_of = _choose(context, target, core.world, [view]).timestamp
        grip.holds.append(core.hold(grip.holder, [view.id], as_of))
        return _opened(context, target, Span(view.id, as_of), grip, timeout)

    opened = beside(context, make, follow, transient=True)
    assert opened is not None
    return opened


def _hold_exact(context: Context, statement: Subscribe, grip: Grip) -> Timestamp | None:
    """Hold what a query reads at the time that AS OF says, and return that, if it says one."""
    core = context.core
    while True:
        with core.reading() as world:
            target = plan_target(statement, context.parameters, world.catalog)
            wanted = asked(statement.as_of, target.timeline)
            if not isinstance(wanted, AsOf):
                return None
            inputs = leaves(world, target.asked)
            _choose(context, target, world, inputs)  # refuses what is forgotten
            try:
                grip.holds.append(core.hold(grip.holder, [i.id for i in inputs], wanted.time))
            except HoldViolation:
                continue  # forgotten just now
            return wanted.time


def _choose(
    context: Context, target: Target, world: World, items: Sequence[RelationItem | Index]
) -> Choice:
    timeline = target.timeline
    bounds = [world.of(item).bounds(item) for item in items]
    return select(
        bounds,
        isolation=context.settings.isolation,
        read_ts=read_time(world, timeline),
        as_of=asked(target.statement.as_of, timeline),
    )


def _opened(
    context: Context, target: Target, span: Span, grip: Grip, timeout: float | None
) -> Subscription:
    if target.statement.up_to is not None:
        up_to = time_of(target.statement.up_to, target.timeline)
        if up_to < span.as_of:
            message = f"UP TO {up_to} is before the time it begins at, {span.as_of}"
            raise InvalidValue(message, hint="leave UP TO out, or give an earlier AS OF")
        span = replace(span, up_to=up_to)
    rights = context.session.rights(target.statement, context.parameters)
    role = context.session.role
    subscription = Subscription(
        context.core.subscribers, target, span, grip, rights, role=role, timeout=timeout
    )
    context.session.opened(subscription)
    return subscription
