# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What ``check-config`` notes about a valid configuration, whose author may have meant it otherwise. Pure."""

from __future__ import annotations

import ipaddress
from typing import Callable, Iterator, List

from ..checks.settings import Check
from ..config.fields import MILLION
from .settings import Instance, Settings, other_interfaces


def notes(found: Settings, has_interface: Callable[[str], bool]) -> List[str]:
    """Return a sentence for each.

    :param has_interface: whether this host has an interface of a name now
    """
    of_instances = [note for each in found.instances for note in _of_instance(each, has_interface)]
    return of_instances + [note for check in found.checks for note in _of_check(check)]


def _of_instance(instance: Instance, has_interface: Callable[[str], bool]) -> Iterator[str]:
    for interface in (instance.interface, *other_interfaces(instance)):
        if not has_interface(interface):
            yield f"{instance.name}: this host has no interface {interface} now; until it has, this is a FAULT."
    first = instance.addresses[0].partition("/")[0]
    if instance.family == 6 and not ipaddress.ip_address(first).is_link_local:
        yield f"{instance.name}: the first address is {first}; RFC 9568, 5.2.9 requires a link-local one there."


def _of_check(check: Check) -> Iterator[str]:
    if check.timeout > check.interval:
        yield (
            f"{check.name}: its timeout of {check.timeout / MILLION:g} s is longer than its interval of "
            f"{check.interval / MILLION:g} s; a run that hangs delays the next one."
        )
