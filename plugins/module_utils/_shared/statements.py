# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which statements of an adopted keepalived.conf the new one lacks: they are named, because they are lost. Pure."""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Sequence

from .._agent.keepalived import conf
from .engines import HAPROXY

# What the new file has as well, in its own way. The plan shows where it differs.
SAID_OF_AN_INSTANCE = (
    *("state", "interface", "virtual_router_id", "version", "priority", "advert_int", "nopreempt", "preempt"),
    *("preempt_delay", "authentication", "unicast_peer", "garp_master_refresh", "track_script"),
    *(*conf.SOURCES, *conf.HELD),
)
SAID_OF_ALL = (
    *("router_id", "vrrp_version", "script_user", "enable_script_security", "reload_check_config"),
    "vrrp_higher_prio_send_advert",
)
# What replaces a statement: a variable of a layout, without its prefix, or one of the role keepalived.
NOTIFY = ("notify", "notify_master", "notify_backup", "notify_fault", "notify_stop", "notify_master_rx_lower_pri")
CHECKS = ("vrrp_script", "vrrp_track_process", "vrrp_track_file", "track_process", "track_file", "track_interface")
VARIABLES = {
    **dict.fromkeys(NOTIFY, "notify"),
    **dict.fromkeys(CHECKS, "checks"),
    "vrrp_sync_group": "sync",
    "dont_track_primary": "vrrp_interface",
    "vrrp_startup_delay": "keepalived_startup_delay",
}
OF_ALL, OF_A_BLOCK = "keepalived_global_lines", "keepalived_extra_lines"


class Lost(NamedTuple):
    """A statement that the new file lacks."""

    what: str
    variable: str  # that replaces it; '' for none


def lost(text: str) -> List[Lost]:
    """Return each statement that the new file lacks, in the order of the old one."""
    return list(dict.fromkeys(_every(conf.statements(text))))


def _every(given: List[conf.Statement]) -> Iterator[Lost]:
    for words, block in given:
        text = " ".join(words)
        if words[:1] == ["vrrp_instance"]:
            found = _beside(block, SAID_OF_AN_INSTANCE)
            yield from (Lost(f"{word} of {text}", VARIABLES.get(word, "")) for word in found)
        elif words == ["global_defs"]:
            yield from (Lost(word, VARIABLES.get(word, OF_ALL)) for word in _beside(block, SAID_OF_ALL))
        elif words and not (words[0] == "vrrp_script" and _asks_for_haproxy(block)):
            yield Lost(text, VARIABLES.get(words[0], OF_A_BLOCK))


def _beside(block: List[conf.Statement], said: Sequence[str]) -> Dict[str, None]:
    return dict.fromkeys(words[0] for words, _nested in block if words and words[0] not in said)


def _asks_for_haproxy(block: List[conf.Statement]) -> bool:
    """Whether a script looks after haproxy: so does each layout."""
    return any(HAPROXY in " ".join(words[1:]) for words, _nested in block if words[:1] == ["script"])
