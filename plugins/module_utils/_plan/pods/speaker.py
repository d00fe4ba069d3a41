# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is in the router's pod of a member that announces its VIPs: the health gate, and FRR. Pure.

The gate is the daemon of the hosts' units. FRR is that of any image with its programs in /usr/lib/frr, as FRR's own and
Debian's package have them.
"""

from __future__ import annotations

from typing import List

from ..._shared.engines import ANYCAST, FRR
from ..._shared.pods import FIRST
from ..model.plan import MemberPlan
from . import configurations, held, paths, probes
from .manifests import Container, Options, Volume
from .paths import AGENT, AGENT_COMMAND, PARTS

ADDRESSES = ("NET_ADMIN",)
PROGRAMS = ("SETUID", "SETGID", "KILL")  # to run a check's program as another user, and to end it
# zebra, bgpd and bfdd do not start without the first four, whether they use them or not. They become the user frr, and
# watchfrr, which stays root, tells them by their sockets and signals.
SPEAKER = (
    *("NET_ADMIN", "NET_RAW", "NET_BIND_SERVICE", "SYS_ADMIN"),
    *("SETUID", "SETGID", "CHOWN", "DAC_OVERRIDE", "KILL"),
)
# FRR ends its sessions meanwhile, so that no router sends to a VIP that has left.
LEAVES_AFTER = 1.0  # seconds

# The unit of FRR's package does the same. The daemons log to the standard output, because there is no syslog here. A
# pod's folders outlive its containers, in which another process soon has the number that a PID file of before names,
# and not every container runtime gives them to everybody.
SCRIPT = """\
log_success_msg() { echo "$@"; }
log_warning_msg() { echo "$@" >&2; }
log_failure_msg() { echo "$@" >&2; }
export frr_global_options="--log stdout"
trap 'exit 0' TERM
. /usr/lib/frr/frrcommon.sh
rm -rf /var/run/frr/* /var/tmp/frr
chown "$FRR_USER:$FRR_GROUP" /var/run/frr /var/lib/frr
chmod 1777 /var/tmp
/usr/lib/frr/watchfrr $(daemon_list) &
watchfrr=$!
trap 'kill $watchfrr; all_stop; exit 0' TERM
wait $watchfrr
"""
FOLDERS = [
    Volume("frr-run", "/var/run/frr", read_only=False),
    Volume("frr-state", "/var/lib/frr", read_only=False),
    Volume("frr-tmp", "/var/tmp", read_only=False),
]


def containers(plan: MemberPlan, options: Options) -> List[Container]:
    return [_gate(plan, options), _frr(options)]


def _gate(plan: MemberPlan, options: Options) -> Container:
    program = [*AGENT_COMMAND, ANYCAST, "--config", paths.GATE_CONFIG]
    down_file = configurations.down_file(plan)
    return Container(
        name=ANYCAST,
        image=options.agent_image,
        command=held.command(program, paths.ROUTER_FIFO, paths.GATE_CONFIG, LEAVES_AFTER, down_file),
        volumes=[PARTS[AGENT].volume(), PARTS[ANYCAST].volume(), paths.RUN, paths.own_runtime(ANYCAST)],
        capabilities=(*ADDRESSES, *(PROGRAMS if configurations.runs_programs(configurations.gate(plan)) else ())),
        alive=probes.touches(f"{paths.RUN.path}/{ANYCAST}"),
    )


def _frr(options: Options) -> Container:
    return Container(
        name=FRR,
        image=options.frr_image,
        command=[*FIRST, SCRIPT, FRR],
        volumes=[PARTS[FRR].volume(), *FOLDERS],
        capabilities=SPEAKER,
        alive=probes.BY_WATCHFRR,
        memory="100Mi",
    )
