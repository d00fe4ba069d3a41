# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Switches a running daemon to other settings, without a late Advertisement or a missing address.

A Virtual Router is known by what other routers see of it (``settings.identity``). One that has the same identity before
and after goes on in its state, whatever else has changed; the others are stopped and started.
"""

from __future__ import annotations

from typing import Any, Iterable, List, NamedTuple

from . import settings
from .core import machine, sync_group
from .router import ADDRESSES, Router
from .settings import Instance, Settings, identity

CONFIGURATION_READING = "the configuration"  # updated at a reload, after which other trackers may count


class Changes(NamedTuple):
    """What other settings mean for the Virtual Routers."""

    removed: List[Instance]
    changed: List[Instance]  # as they are to be
    added: List[Instance]


def changes(before: Settings, after: Settings) -> Changes:
    """Compare two settings. Pure."""
    old, new = (_identities(each.instances) for each in (before, after))
    return Changes(
        removed=[each for each in before.instances if identity(each) not in new],
        changed=[each for each in after.instances if identity(each) in old and _differs(each, before, after)],
        added=[each for each in after.instances if identity(each) not in old],
    )


def _identities(instances: Iterable[Instance]) -> List[settings.Identity]:
    return [identity(each) for each in instances]


def _differs(instance: Instance, before: Settings, after: Settings) -> bool:
    groups = [settings.group_of(each, instance.name) for each in (before, after)]
    return instance not in before.instances or groups[0] != groups[1]


def apply(daemon: Any, new: Settings) -> None:
    """Switch a ``daemon.Daemon`` to other settings."""
    before, planned = daemon.settings, changes(daemon.settings, new)
    running = {router.identity: router for router in daemon.routers.values()}
    for instance in planned.removed:
        daemon.step(running[identity(instance)], machine.Stop())
    daemon.use(new, {each.name: running.get(identity(each)) or Router(each, daemon.wall) for each in new.instances})
    _apply_checks(daemon, before)
    changed = [daemon.routers[each.name] for each in planned.changed]
    for router, instance in zip(changed, planned.changed):
        _reconfigure(daemon, router, instance)
    daemon.transport.listen_for(daemon.routers.values())
    daemon.follow_links()
    for router in changed:
        _resume(daemon, router)
    for instance in planned.added:
        daemon.start_router(daemon.routers[instance.name])
    daemon.report_groups()


def _apply_checks(daemon: Any, before: Settings) -> None:
    """Forget the results of checks that have changed."""
    daemon.results.keep(check for check in daemon.settings.checks if check in before.checks)
    daemon.checks.apply(daemon.settings.checks, daemon.settings.script_user)


def _reconfigure(daemon: Any, router: Router, new: Instance) -> None:
    """Give a router its new settings, and forget readings that counted only under the old ones."""
    old = router.instance
    kept = settings.virtual_addresses(new)
    changed = (router.addresses, old.virtual_routes) != (kept, new.virtual_routes)
    if router.has_addresses:
        daemon.routes.remove(router, [route for route in old.virtual_routes if route not in new.virtual_routes])
        daemon.addresses.remove(router, [address for address in router.addresses if address not in kept])
    router.configure(new)
    counting = router.names | {sync_group.GROUP} | (set() if changed else {ADDRESSES})
    readings = {name: reading for name, reading in router.state.readings.items() if name in counting}
    router.state = machine.reconfigured(router.machine, router.state._replace(readings=readings), daemon.loop.now())


def _resume(daemon: Any, router: Router) -> None:
    """Go on with new settings, once every router of its sync group has them."""
    daemon.update_trackers(router)
    daemon.step(router, machine.TrackerUpdate(CONFIGURATION_READING, 0))  # may end a wait or a fault
    if router.active:
        daemon.restore(router, "new")
        daemon.addresses.reschedule_announcement(router)
