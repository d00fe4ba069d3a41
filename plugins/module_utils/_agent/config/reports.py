# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the reports of the agent's daemons have, as far as others rely on it.

A daemon of another version answers at the same socket, and something else may: who asks judges the answer first.
"""

from __future__ import annotations

from typing import Any, Mapping

from . import file
from .records import flag, judge, maybe, number, record, records, text, texts
from .schema import Faults, Field

Schema = Mapping[str, Field]

NAMED = Field(text, required=True)
SAID = Field(maybe(text))
CHECK: Schema = {"name": NAMED, "type": Field(text), "up": Field(maybe(flag)), "detail": SAID}
INSTANCE: Schema = {
    "name": NAMED,
    "state": NAMED,
    "since": Field(number, required=True),
    "reason": NAMED,
    "interface": Field(text),
    **dict.fromkeys(("addresses", "held"), Field(texts)),
}
SERVER: Schema = {**dict.fromkeys(("name", "state", "address"), NAMED), "certain": Field(flag)}
SERVICE: Schema = {"name": NAMED, "servers": Field(records(SERVER), required=True)}
OWNED: Schema = {
    **SERVER,
    "owner": Field(flag, required=True),
    "second_chances": Field(maybe(flag)),
    "unanswered_attempts": Field(number),
    "path_fault": SAID._replace(required=True),
}
PLANE: Schema = {
    **dict.fromkeys(("name", "new_connections"), NAMED),
    "bind": Field(texts, required=True),
    "port": Field(number, required=True),
    "servers": Field(records(OWNED), required=True),
}
TABLE: Schema = {"in_force": Field(flag, required=True), "fault": SAID._replace(required=True)}
VIP: Schema = {"address": NAMED, "reason": Field(text), "detail": SAID, "elsewhere": Field(texts)}
OUTPUT: Schema = {"name": NAMED, "fault": SAID._replace(required=True)}
KEPT: Schema = dict.fromkeys(("name", "address", "why"), NAMED)
API: Schema = {"fault": SAID._replace(required=True)}

# Of each process, and of each daemon by the key that only its report has.
PROCESS: Schema = {
    **dict.fromkeys(("agent", "version", "config", "config_sha256"), Field(text)),
    "since": Field(number),
    "config_fault": SAID,
    "limits": Field(texts),
    "checks": Field(records(CHECK)),
}
DAEMONS: Mapping[str, Schema] = {
    "balancers": {
        "balancers": Field(records(OUTPUT)),
        "problem": SAID._replace(required=True),
        "api": Field(record(API), required=True),
        "without_address": Field(texts, required=True),
        "kept": Field(records(KEPT)),
    },
    "table": {
        "table": Field(record(TABLE)),
        "mtu_fault": SAID,
        "interface": NAMED,
        "services": Field(records(PLANE), required=True),
    },
    "vips": {"vips": Field(records(VIP))},
    "instances": {"instances": Field(records(INSTANCE))},
    "services": {"services": Field(records(SERVICE))},
}
# By the daemon's name.
KEYS = {
    file.VRRP: "instances",
    file.PROXY: "services",
    file.FOLLOW: "balancers",
    file.DIRECT: "table",
    file.ANYCAST: "vips",
}
# What a part raises that is not judged, because only who shows it relies on it.
STRANGE = (LookupError, TypeError, AttributeError, ValueError)
OF_ITSELF = ("version", "config_fault", "limits")  # what a daemon says besides


def faults(report: Any) -> Faults:
    """Return what in a report nobody could rely on."""
    if not isinstance(report, dict):
        return ["it is no mapping."]
    kind = next((key for key in DAEMONS if key in report), "")
    needed = {key: PROCESS[key]._replace(required=True) for key in OF_ITSELF} if kind else {}
    return judge({**PROCESS, **needed, **DAEMONS.get(kind, {})}, report, "its report")
