"""SUBSCRIBE: which time it begins at, and what is held for it.

The time is chosen as that of a read is (``time.select``). An object is held at it. A query is
kept from now on, or already is; asked for AS OF a time before that, its inputs are held there
until the subscription has caught up.

Tests: tests/coordinator/test_subscribe.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from reclock.coordinator.as_of import asked, time_of
from reclock.coordinator.item import RelationItem
from reclock.coordinator.read import leaves, read_time
from reclock.coordinator.subscribe.subscription import Span, Subscription
from reclock.coordinator.subscribe.target import plan_target
from reclock.errors import HoldViolation, InvalidValue, NotSupported
from reclock.time.select import AsOf, select

if TYPE_CHECKING:
    from reclock.coordinator.sequence.context import Context
    from reclock.coordinator.subscribe.subscribers import Grip
    from reclock.coordinator.subscribe.target import Target
    from reclock.coordinator.world import World
    from reclock.sql.statement import Subscribe
    from reclock.time.select import Choice


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
        with context.writing() as world:
            target = plan_target(statement, context.parameters, world.catalog)
            return _follow_query(context, target, world, grip, timeout)
    except BaseException:
        grip.release()
        core.subscribers.let_go()
        raise


def _follow_query(
    context: Context, target: Target, world: World, grip: Grip, timeout: float | None
) -> Subscription:
    """Keep a query; hold the lock of the core."""
    core, timeline = context.core, target.timeline
    assert timeline is not None
    wanted = asked(target.statement.as_of, timeline)
    exact = wanted.time if isinstance(wanted, AsOf) else None
    if exact is not None:
        inputs = leaves(world, target.asked)
        _choose(context, target, world, inputs)  # refuses what is forgotten
        grip.holds.append(core.hold(grip.holder, [i.id for i in inputs], exact))
    grip.lease = core.subscribers.lease(target)
    view = grip.lease.view
    since = core.world.of(view).sinces[view.id].element()
    if exact is not None and exact < since:
        grip.holds.append(core.hold(grip.holder, [view.id], since))
        return _opened(context, target, Span(view.id, exact, kept_from=since), grip, timeout)
    while grip.holds:
        grip.holds.pop().release()
    as_of = _choose(context, target, core.world, [view]).timestamp
    grip.holds.append(core.hold(grip.holder, [view.id], as_of))
    return _opened(context, target, Span(view.id, as_of), grip, timeout)


def _choose(context: Context, target: Target, world: World, items: list[RelationItem]) -> Choice:
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
    subscription = Subscription(context.core, target, span, grip, rights, timeout=timeout)
    context.session.opened(subscription)
    return subscription
