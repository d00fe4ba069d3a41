# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A pair: what the balancer and the router of each member are, and what each failure moves. Pure."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from ..._agent.config.schema import Faults
from ..._shared import engines, events
from ..forecast import servers
from ..forecast.forecast import HANGING, HAPROXY, RELOADS, SLOW
from ..layouts import direct
from ..layouts.checked_vips import CheckedVips
from ..members import openings
from ..members.hosts import Member
from ..members.subnets import Placement
from ..model import answers, peers
from ..model.plan import Balancer, Router, Vip
from ..model.services import ANY, backends, listeners

ALIVE = "haproxy_alive"  # the script: killall -0 haproxy
DOWN = "haproxy_down"  # the track file that haproxy's unit writes
GROUP = "pair"  # the sync group of all VIPs
TRACKED = (ALIVE, answers.NAME, DOWN, direct.DOWN)  # what the pair itself tracks


class Pair(NamedTuple):
    """What all members share."""

    settings: Dict[str, Any]
    vips: List[Vip]
    placements: Dict[str, Dict[str, Placement]]
    services: List[Dict[str, Any]]
    checked: CheckedVips
    priorities: List[int]
    direct: Optional[direct.Direct] = None
    peers: Optional[Dict[str, Any]] = None  # as `peers.read` returns them
    senders: Dict[str, Dict[str, Placement]] = {}  # like the placements, where VRRP is on links of its own

    def sender(self, name: str, vip: Vip) -> Placement:
        return self.senders.get(name, {}).get(vip.address) or self.placements[name][vip.address]

    @property
    def down_file(self) -> str:
        """The track file; empty with a weight, which would count the same failure by the file and by the script."""
        settings = self.settings
        return settings["down_file"] if settings["track_events"] and not settings["track_weight"] else ""

    @property
    def answer_port(self) -> int:
        """Where the balancer is asked whether it hangs; 0 with a weight, for the same reason."""
        return 0 if self.settings["track_weight"] else int(self.settings["answer_port"])

    @property
    def asked(self) -> List[answers.Check]:
        return answers.of_balancer(self.answer_port)

    def balancer(self, _name: str, _engine: str) -> Balancer:
        known = self.peers or {"members": [], "port": self.settings["peers_port"]}
        own = {"peers": known["members"], "peers_port": known["port"]}
        return Balancer(self.services, down_file=self.down_file, answer_port=self.answer_port, **own)

    def listeners(self, name: str) -> List[Dict[str, Any]]:
        """Return where a member's balancer listens."""
        monitors = answers.monitors(self.answer_port)
        return [*listeners(self.services), *monitors, *peers.listening(self.peers, name)]

    def missing_programs(self, member: Member, engine: str) -> Faults:
        """Return which programs a member needs with an engine, and no role installs."""
        own = self.checked.missing_programs(member, engine)
        return [*own, *direct.missing_programs(self.direct, member, engine)]

    def clients(self) -> openings.Clients:
        """Return who may connect to which port. The peers are for the members alone."""
        members = {self.peers["port"]: [each["address"] for each in self.peers["members"]]} if self.peers else {}
        return {**members, **openings.of_listeners(listeners(self.services))}

    def router(self, name: str, engine: str) -> Router:
        """The balancer is tracked by a file, which its unit writes at once, by a script that polls, and by its answers.

        What the user has checked besides is tracked by every VIP.
        """
        script = {
            "name": ALIVE,
            "command": engines.ALIVE[engine],
            "interval": self.settings["track_interval"],
            "timeout": self.settings["track_interval"],
            "rise": self.settings["track_rise"],
            "fall": self.settings["track_fall"],
        }
        files = [{"name": DOWN, "path": self.down_file}] if self.down_file else []
        files += answers.track_files(engine, self.asked)
        files += self.direct.track_files if self.direct else []
        scripts = [script, *answers.scripts(engine, self.asked), *self.checked.scripts(name)]
        instances = [self._instance(name, vips, engine) for vips in self.instances.values()]
        return Router(instances, scripts, files, self._sync_groups)

    @property
    def instances(self) -> Dict[str, List[Vip]]:
        """The VIPs of each VRRP instance, by its name."""
        return {name: [vip for vip in self.vips if vip.name == name] for name in [vip.name for vip in self.vips]}

    @property
    def _sync_groups(self) -> List[Dict[str, Any]]:
        in_group = self.checked.in_group
        return [{"name": GROUP, "instances": [*self.instances]}] if in_group else []

    def _instance(self, name: str, vips: List[Vip], engine: str) -> Dict[str, Any]:
        settings, vip = self.settings, vips[0]
        rank = vip.order.index(name)
        lowered = 0 if self.checked.in_group else answers.weight(self.priorities, settings["preempt"])
        asked = answers.tracked(engine, self.asked, lowered)
        tracked = self.checked.tracked(name, vip)
        carrier, sender = self.placements[name][vip.address].interface, self.sender(name, vip)
        is_apart = carrier != sender.interface
        # With a preempt delay, or without preemption, every member starts as Backup.
        is_master = rank == 0 and settings["preempt"] and not settings["preempt_delay"]
        return {
            "name": vip.name,
            "state": "MASTER" if is_master else "BACKUP",
            "interface": sender.interface,
            "vrid": vip.vrid,
            "version": 3 if vip.version == 6 else settings["vrrp_version"],
            "priority": self.priorities[rank],
            "advert_interval": settings["advert_interval"],
            "preempt": settings["preempt"],
            "preempt_delay": settings["preempt_delay"],
            "multicast": settings["multicast"],
            "source": sender.address,
            "peers": [self.sender(other, vip).address for other in vip.order if other != name],
            "addresses": [
                f"{each.address}/{each.held_as} dev {carrier}" if is_apart else each.with_prefix for each in vips
            ],
            # Without the link of VRRP a member still serves: it may be a cable between the two, and one of them off.
            **({"dont_track_primary": True} if is_apart else {}),
            "track_scripts": [
                {"name": ALIVE, "weight": settings["track_weight"]},
                *asked["track_scripts"],
                *tracked["track_scripts"],
            ],
            "track_files": [
                *([{"name": DOWN, "weight": 0}] if self.down_file else []),
                *asked["track_files"],
                *(self.direct.tracked(vips, self.priorities[rank]) if self.direct else []),
            ],
            "track_interfaces": tracked["track_interfaces"],
            "notify": settings["notify"] or None,
        }

    @property
    def _back_up_ms(self) -> int:
        """How long it takes at most until a server is up again that could not be reached, with either engine."""
        every = [backend for service in self.services for _place, backend in backends(service, "")]
        rules = [servers.rules_of(each, engine, servers.Timeouts()) for each in every for engine in engines.UNITS]
        return round(1000 * max((each.back_after for each in rules), default=0))

    def watched(self) -> Dict[str, Dict[str, Any]]:
        """Return what each failure moves, as `forecast.forecast` takes it."""
        vips, others = [*self.instances], self.checked.names
        back_up = self._back_up_ms
        harmless = {**RELOADS, events.SLOW_BACKEND: SLOW + back_up, events.DISK_FULL: 0}
        # A member without a network has no server when it has one again, and its VIPs. One that is cut off has been
        # Active all the time, and so waits for no preempt_delay.
        preempting = max(0, back_up - round(1000 * self.settings["preempt_delay"]))
        returning = dict.fromkeys((events.PORT_DOWN, events.LINK_FLAPPING), preempting)
        cut_off = {events.HOST_CUT: back_up, **returning}
        own = {"instances": vips, "blind_trackers": [direct.DOWN, *others], "harmless": harmless, "back_later": cut_off}
        found: Dict[str, Dict[str, Any]] = {"haproxy": {**HAPROXY, **own}}
        if self.answer_port:
            found["haproxy hangs"] = {
                **HANGING,
                "fatal": [*HANGING["fatal"], events.CONNTRACK_FULL],  # its checks cannot connect either
                "back_later": {events.CONNTRACK_FULL: preempting},
                "instances": vips,
                "blind_trackers": [ALIVE, DOWN, direct.DOWN, *others],
            }
        lost = self.direct.watched(self.vips, [ALIVE, answers.NAME, DOWN, *others]) if self.direct else {}
        return {**found, **lost, **self.checked.watched(TRACKED)}

    def targets(self) -> List[List[Any]]:
        """Return every service through every VIP that it is bound to: ``[address, port]``."""
        found = []
        for vip in self.vips:
            wildcard = "::" if vip.version == 6 else ANY
            for service in listeners(self.services):
                if wildcard in service["bind"] or vip.address in service["bind"]:
                    found.append([vip.address, service["port"]])
        return found
