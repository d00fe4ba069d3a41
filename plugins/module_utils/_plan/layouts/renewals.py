# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What has haproxy serve a certificate that something else, such as certbot, has renewed in its file. Pure.

It knows what haproxy has loaded from the record that haproxy's unit writes. So it does nothing where haproxy has the
files as they are, as after a run, and nothing where it cannot tell, or where haproxy's configuration has changed as
well: whoever has changed that has it loaded.

It looks again and again. systemd's path units do not see a link that leads elsewhere, and lose events where several
paths are watched, one of which does not exist; inotify sees nothing that another host writes.
"""

from __future__ import annotations

import shlex
from typing import Any, Iterable, List, Mapping

from ..._shared import quoting
from ..._shared.engines import HAPROXY, NATIVE, UNITS
from ..._shared.load_records import record_of
from ..._shared.paths import CERTIFICATES

BALANCER, RECORD = UNITS[NATIVE].balancer, record_of(HAPROXY)
EVERY = 5  # seconds


def watched(services: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return the files and folders of certificates that services name, but for those that a run alone writes."""
    tls = [service["tls"] for service in services if service.get("tls")]
    named = [path for each in tls for path in (*each["certificate"], each["ca"], each["crl"]) if path]
    return [path for path in dict.fromkeys(named) if not path.startswith(f"{CERTIFICATES}/")]


def command(files: Iterable[str], config: str) -> str:
    """Return the command line of the unit that follows.

    :param files: as `watched` returns them
    :param config: of haproxy
    """
    return quoting.systemd_shell(script(files, config, RECORD))


def script(files: Iterable[str], config: str, record: str) -> str:
    """Return what it has a shell do: look every few seconds, and reload once nothing has changed since the last look.

    What is wrong is said once, until the files change again. A reload that had no effect is not repeated.
    """
    quoted = [shlex.quote(path.rstrip("/")) for path in files]
    words = " ".join(f"{path} {path}.*" for path in quoted)
    own = "|".join(f"{path}|{path}.*|{path}/*" for path in quoted)
    left = 'case "$file" in %s) test -e "$file" || echo gone;; esac'
    loaded = f"sed -n '3,$s/^[0-9a-f]*  //p' {record}"
    steps = [
        f"now() {{ find -L {words} -maxdepth 1 -type f -exec sha256sum {{}} + 2>/dev/null | sort; }}",
        f"gone() {{ {loaded} | while read -r file; do {left % own}; done; }}",
        f'renewed() {{ echo "$seen" | grep -vxF -f {record} 2>/dev/null; test $? -lt 2 || echo unknown; }}',
        'say() { test "$said" != "$1$seen" && said="$1$seen" && echo "$1"; }',
        "tried=none",
        f'while sleep {EVERY}; do before="$seen"; seen=$(now)',
        'test "$seen" = "$before" || continue',
        f"systemctl --quiet is-active {BALANCER} || continue",
        'test -n "$(renewed; gone 2>/dev/null)" || { said=; tried=none; continue; }',
        f"head -n 1 {record} 2>&1 | sha256sum --status --check 2>/dev/null || {{ {_said(4, _CHANGED)}; continue; }}",
        f'test "$seen" != "$tried" || {{ {_said(3, _NOT_LOADED)}; continue; }}',
        f"verdict=$(haproxy -c -f {shlex.quote(config)} 2>&1) || "
        f'{{ {_said(3, _REFUSED)} && echo "$verdict"; continue; }}',
        f'tried="$seen"; systemctl reload {BALANCER} && {_said(5, _RELOADED)}',
        "done",
    ]
    return "; ".join(steps)


_CHANGED = "Nothing is reloaded: haproxy has not loaded its configuration as it is, or nobody knows what it has loaded."
_NOT_LOADED = "A reload was tried, and haproxy has not loaded the certificates as they are."
_REFUSED = "haproxy refuses its configuration with the changed certificates, and goes on with those of before."
_RELOADED = "haproxy has loaded the certificates that have changed."


def _said(priority: int, sentence: str) -> str:
    """Return the command that writes a line to the journal, once for what is there; see sd-daemon(3)."""
    return f'say "<{priority}>{sentence}"'
