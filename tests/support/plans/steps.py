# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a run that changes a living layout, as `roles/layout` takes them, and the play of all of them."""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterator, List, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._plan.change import order
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines

from support.plans.runs import BETWEEN, NEW, Run, on_the_way, serving

Steps = Iterator[Tuple[str, Callable[[], Any]]]  # what each is, and what does it


def play(run: Run) -> List[str]:
    """Play a run to its end, and return what was wrong on its way, after an undo at each step, and at its end."""
    for what, step in steps(run):
        step()
        run.judge(what)
        wrong = [*run.wrong, *([] if run.wrong else _not_undone(run.fork(), what))]
        if wrong:
            return wrong
    return [*run.wrong, *_unverified(run)]


def _not_undone(run: Run, what: str) -> List[str]:
    """Return what is wrong once the members have returned to what they ran before, as `undoing` lets them."""
    undo, after = run.plan.undo, f"undo after {what}"
    others = [name for name in undo.members if name != undo.first]
    for name in others if undo.first else []:
        run.stop(name)
    run.passes()  # the first one comes later: see `undoing.LATER_S`
    for name in [*([undo.first] if undo.first else []), *others]:
        run.returns(name)
        run.judge_return(after)
    held = {vip: run.who_holds(vip) for vip in (run.holders if undo.members else {})}
    return [*run.wrong, *(f"{after}: {vip} has the holders {some}" for vip, some in held.items() if len(some) != 1)]


def steps(run: Run) -> Steps:
    """Yield what a run does, one after the other. What comes at one time comes in the order of the members."""
    plan, every = run.plan, [*run.members]
    for wave in order.waves([as_data(plan)], [name for name in every if run.members[name].changes()]):
        yield from _wave(run, wave)
    if plan.routers_together:
        yield from _together(run)
    yield from _each("migrates", _migrate, run, plan.migration_order)
    yield from _each("joins", _router, run, [name for name in plan.joining if not plan.members[name].replaces])
    yield from _each("redirects", _redirect, run, every)
    yield from _each("asks", _ask, run, every)
    yield from _each("has its balancer alone", _serve, run, every)


def _each(what: str, step: Callable[[Run, str], None], run: Run, names: List[str]) -> Steps:
    for name in names:
        yield f"{name} {what}", functools.partial(step, run, name)


def _wave(run: Run, wave: order.Wave) -> Steps:
    plan = run.plan
    for name in wave.proves:
        left = " and ".join(wave.members)
        run.wrong += [f"Fix that, and repeat the run: before {left} {name}: {why}" for why in run.is_proved(name)]
    yield from _each("hands over", Run.stop, run, wave.hands_over)
    here = [name for name in wave.members if not plan.members[name].replaces]
    native = [name for name in here if plan.members[name].engine == engines.NATIVE]
    yield from _each("has its balancer", _balancer, run, native)
    if not plan.routers_together:
        yield from _each("has its router", _router, run, [name for name in here if name not in plan.joining])


def _together(run: Run) -> Steps:
    plan, alone = run.plan, run.plan.sole_router
    yield from _each("leaves", Run.stop, run, plan.leaving)
    if alone:
        yield from _each("stops", Run.stop, run, [name for name in run.members if name != alone])
        yield from _each("runs alone", _alone, run, [alone])
    others = [name for name in run.members if name not in (alone, *plan.joining)]
    others = [name for name in others if not plan.members[name].replaces]
    yield from _each("has its router, with the others", _router, run, others)


def _balancer(run: Run, name: str) -> None:
    """Configure a balancer, which loads the first redirect. One that goes does so at the end."""
    member = run.members[name]
    member.serving = on_the_way(member.after) or member.serving
    member.redirect = member.redirect or member.after.balancer.redirect


def _router(run: Run, name: str) -> None:
    """Configure a router; the agent's comes with its balancer."""
    if run.members[name].after.engine == engines.AGENT:
        _balancer(run, name)
    run.load(name, NEW)


def _alone(run: Run, name: str) -> None:
    """Configure the sole router, and that of the engine which it still has."""
    if run.members[name].after.replaces:
        run.load(name, BETWEEN)
    else:
        _router(run, name)


def _migrate(run: Run, name: str) -> None:
    run.stop(name)
    run.passes()
    _balancer(run, name)
    run.members[name].questions = run.members[name].after.questions
    run.load(name, NEW)


def _redirect(run: Run, name: str) -> None:
    member = run.members[name]
    member.redirect = member.after.balancer.redirect


def _ask(run: Run, name: str) -> None:
    member = run.members[name]
    member.questions = member.after.questions


def _serve(run: Run, name: str) -> None:
    """Have the planned balancer and no more: nobody asks for anything else by now."""
    member = run.members[name]
    member.serving = serving(member.after)


def _unverified(run: Run) -> List[str]:
    """Return what the verification at the end would find."""
    held = {vip.address: run.who_holds(vip.address) for vip in run.plan.vips}
    found = [
        f"{vip} has the holders {', '.join(names) or 'none'} at the end"
        for vip, names in held.items()
        if len(names) != 1
    ]
    for vip, port in run.own(run.plan.targets):
        found += [f"{vip} port {port} is refused at the end" for name in held[vip] if not run.serves(name, vip, port)]
    return found
