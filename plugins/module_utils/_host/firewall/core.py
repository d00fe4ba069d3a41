# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Selects the firewall manager that is active on the host."""

from __future__ import annotations

from typing import Sequence

from . import firewalld, nftables, ufw
from .model import ChangeSet, FirewallError, Opening, in_order
from .system import Host

MANAGERS = ("firewalld", "ufw", "nftables")


def plan(
    host: Host, manager: str, wanted: Sequence[Opening], interfaces: Sequence[str] = (), keep: bool = False
) -> ChangeSet:
    """Return the changes after which exactly the wanted openings are ours. Changes nothing itself.

    firewalld and ufw come first, because both write their rules into the kernel's nftables.

    :param keep: whether those of an earlier call stay as well
    """
    wanted = in_order(set(wanted))
    if manager in ("auto", "firewalld") and firewalld.is_running(host):
        return firewalld.plan(host, wanted, interfaces, keep)
    if manager in ("auto", "ufw") and ufw.is_active(host):
        return ufw.plan(host, wanted, keep)
    if manager in ("auto", "nftables"):
        found = nftables.find(host)
        # If it is asked for by name, an nftables without rules is a firewall that refuses nothing.
        if nftables.is_active(found, wanted) or (manager == "nftables" and not found.error):
            return nftables.plan(host, wanted, found, keep)
        if "JSON" in found.error:
            raise FirewallError(found.error)
    if manager in MANAGERS:
        raise FirewallError(f"{manager} was asked for, but is not active on this host.")
    reason = "Told to leave the firewall alone" if manager == "none" else "No firewall is active"
    return ChangeSet("none", [], [], [], [], reason + "; nothing to open.")


def may_refuse(host: Host) -> bool:
    """Return whether a firewall is active, or one that cannot be read. Without one `plan` has nothing to do."""
    try:
        return firewalld.is_running(host) or ufw.is_active(host) or nftables.may_refuse(nftables.find(host))
    except FirewallError:
        return True
