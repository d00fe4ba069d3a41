# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a container starts its program, so that the sidecar learns at once of its end: see `_agent.sidecar`. Pure."""

from __future__ import annotations

from typing import List, Sequence

from ..._shared.pods import FIRST, HOLDER

# The first process of the container. It alone holds the FIFO, and the container ends with it. A signal to it reaches
# its program: SIGTERM once the sidecar could react, SIGHUP as a reload. A pod's folders outlive its containers, in
# which another process soon has the number that a PID file of before names: keepalived would take it for one that runs.
# The sidecar cannot see the program, and ends one that stands still by a line in another FIFO.
SCRIPT = """\
fifo=$1 config=$2 pause=$3 file=$4
shift 4
loads() { sha256sum "$config" > "$fifo.loaded"; cat /proc/uptime >> "$fifo.loaded"; }
trap 'exit 0' TERM
mkdir -p "${fifo%/*}"
rm -f "${fifo%/*}"/*.pid "$fifo.loaded" "$ONPREM_LB_ALIVE"
for each in "$fifo" "$fifo.end"; do [ -p "$each" ] || mkfifo -m 600 "$each"; done
exec 9<>"$fifo"
until [ -z "$file" ] || [ -e "$file" ]; do sleep 0.1; done
loads
"$@" 9>&- &
pid=$!
{ until read -r end < "$fifo.end"; do :; done; kill -KILL $pid; } 9>&- &
ender=$!
trap 'echo stopping >&9; sleep "$pause"; kill -TERM $pid' TERM
trap 'loads; kill -HUP $pid' HUP
echo started >&9
until wait $pid; code=$?; ! kill -0 $pid 2>/dev/null; do :; done
kill -KILL $ender
wait $ender 2>/dev/null
exit $code
"""
SHELL = FIRST[0]
PAUSE = 0.2  # seconds from the sign to SIGTERM, as the balancer's unit has it


def command(program: Sequence[str], fifo: str, config: str, pause: float = 0, file: str = "") -> List[str]:
    """Return the command of a container.

    :param program: that it is to run
    :param config: the file that it loads at its start and at SIGHUP, of which a record beside the FIFO has the checksum
    :param pause: seconds between the sign that it stops and SIGTERM
    :param file: the program starts once this is there; '' for at once
    """
    return [*FIRST, SCRIPT, HOLDER, fifo, config, f"{pause:g}", file, *program]
