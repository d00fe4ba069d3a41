# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""/etc/resolv.conf as a run finds it: whose it is, and which of two files says whom the host asks. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ..._agent.resolver.resolv_conf import MARK, STUB, is_generated, nameservers


class ResolvConf(NamedTuple):
    """The file, and the one that this collection keeps from before, as `component_info` returns them."""

    text: str = ""
    target: str = ""  # where a symbolic link leads
    kept: bool = False  # whether one is kept
    kept_text: str = ""
    kept_target: str = ""
    mounted: bool = False  # it is a mount point, as in a container

    @property
    def is_ours(self) -> bool:
        return self.text.startswith(MARK)

    @property
    def is_foreign(self) -> bool:
        """Whether somebody has written it after this collection, and names a name server there.

        An interrupted run leaves the same one twice.
        """
        same = (self.text, self.target) == (self.kept_text, self.kept_target)
        return self.kept and not self.is_ours and not same and bool(nameservers(self.text))

    @property
    def is_from_before(self) -> bool:
        """Whether the kept one says whom the host asks: what is there is ours, or names nobody."""
        return self.is_ours or (self.kept and not nameservers(self.text))

    @property
    def original(self) -> str:
        return self.kept_text if self.is_from_before else self.text

    @property
    def original_target(self) -> str:
        return self.kept_target if self.is_from_before else self.target


def is_of_resolved(here: ResolvConf) -> bool:
    return here.original_target.startswith("/run/systemd/resolve/") or STUB in nameservers(here.original)


def is_of_network_manager(here: ResolvConf) -> bool:
    return here.original_target.startswith("/run/NetworkManager/") or is_generated(here.original)
