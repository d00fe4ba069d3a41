# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether this host needs a reboot, for what has been updated to be in force; and when it had the last one."""

from __future__ import annotations

import os
import re
from typing import List

from .reader import Reader, show

FLAG = "/run/reboot-required"  # of Debian and Ubuntu
KERNELS = "/lib/modules"


def reason(reader: Reader, flag: str = FLAG, kernels: str = KERNELS) -> str:
    """Return why it needs one; '' if nothing says so."""
    if os.path.exists(flag):
        return f"{flag} is there"
    program = reader.find("needs-restarting")  # of Red Hat's family, in dnf-utils
    if program and reader.run([program, "-r"])[0] == 1:
        return "needs-restarting -r says so"
    running = os.uname().release
    newest = _newest(os.listdir(kernels) if os.path.isdir(kernels) else [], running)
    return f"it runs Linux {running}, and {newest} is installed" if newest != running else ""


def booted(reader: Reader) -> str:
    """Return when systemd has started, which is another time after each boot, also of a container; '' if unknown."""
    return show(reader.run, [], ["UserspaceTimestamp"])[0].get("UserspaceTimestamp", "")


def _newest(installed: List[str], running: str) -> str:
    """Return the newest kernel of the kind that runs, such as those whose names end with -amd64."""
    alike = [name for name in installed if _kind(name) == _kind(running)]
    return max([*alike, running], key=_version)


def _kind(release: str) -> str:
    return re.sub(r"\d+", "0", release)


def _version(release: str) -> List[int]:
    return [int(number) for number in re.findall(r"\d+", release)]
