# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The scripts that liveness probes run. Pure.

Each is a file, because podman takes the command of a probe apart at its spaces.
"""

from __future__ import annotations

from ..model.plan import MemberPlan
from . import paths

NAME = "alive.sh"
DATA = f"{paths.TMP.path}/keepalived.data"
STALE = 30  # seconds

KEEPALIVED = """\
# Managed by Ansible, onprem.lb. keepalived's VRRP process writes what it does, unless it hangs, and each instance of
# its configuration is in that. Their states say nothing about keepalived.
rm -f {data}
kill -USR1 "$(cat {pid})" || exit 1
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ "$(grep -c 'VRRP Instance = ' {data} 2>/dev/null)" = {count} ] && exit 0
    sleep 0.2
done
exit 1
"""
SIDECAR = """\
# Managed by Ansible, onprem.lb. The sidecar touches this file every few seconds, unless it hangs.
test $(($(date +%s) - $(stat -c %Y {file}))) -lt {stale}
"""


def of_keepalived(plan: MemberPlan) -> str:
    return KEEPALIVED.format(data=DATA, pid=paths.PID_FILE, count=len(plan.router.instances))


def of_sidecar() -> str:
    return SIDECAR.format(file=paths.ALIVE, stale=STALE)
