# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How the kubelet learns that a program is dead, and not only late. Pure.

On a node that is starved of CPU a probe that starts an interpreter fails where its program serves. So none does:

- haproxy and the agent's proxy answer at a port of their own, which the kubelet itself asks.
- The agent's other programs touch a file. The probe is a shell, and compares the file with what it was at the probe
  before. It counts probes and no seconds, so neither a kubelet that is late nor a clock that is set makes it fail.
- keepalived has no probe. The sidecar beside it ends one that stands still (`_agent.sidecar.standstill`).
- FRR has none either. Its own watchfrr asks each daemon, and starts one anew that is dead.

A program that is dead ends its container, which the kubelet notices without a probe. So a probe may be patient. What it
does not know is no failure: a file that is not there, or a folder that cannot be written.
"""

from __future__ import annotations

from typing import Any, Dict

from . import held, paths
from .manifests import Alive
from .paths import AGENT, PARTS

PERIOD = 10  # seconds
ANSWERS = {"timeoutSeconds": 10, "failureThreshold": 12}  # a balancer may have all the connections that it may have
TOUCHES = {"timeoutSeconds": 30, "failureThreshold": 4}  # the start of a shell may take long
BY_THE_SIDECAR = BY_WATCHFRR = Alive()
# A file, because podman takes the command of a probe apart at its spaces.
SCRIPT = """\
# Managed by Ansible, onprem.lb. A program touches this file every other second. Was it touched since the last probe?
file=$1
[ -e "$file" ] || exit 0
if [ -e "$file.seen" ] && ! [ "$file" -nt "$file.seen" ] && ! [ "$file" -ot "$file.seen" ]; then
    exit 1
fi
touch -r "$file" "$file.seen"
exit 0
"""


def answers(port: int, path: str) -> Alive:
    """The kubelet asks a port of the host's own."""
    return Alive(_probe({"httpGet": {"host": "127.0.0.1", "port": port, "path": path, "scheme": "HTTP"}}, ANSWERS))


def touches(program: str) -> Alive:
    """A shell in the container looks at a file that a program touches.

    :param program: the path of the file, without its ending
    """
    file = f"{program}.alive"
    command = [held.SHELL, f"{PARTS[AGENT].inside}/{paths.ALIVE_SCRIPT}", file]
    return Alive(_probe({"exec": {"command": command}}, TOUCHES), file)


def _probe(handler: Dict[str, Any], patience: Dict[str, int]) -> Dict[str, Any]:
    return {**handler, "initialDelaySeconds": 30, "periodSeconds": PERIOD, **patience}
