# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent on a host: looks, plans, and does what the plan says. How the host is asked and told: ``system``."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config as proxy_config
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import config as vrrp_config
from ansible_collections.onprem.lb.plugins.module_utils._host import files as _files
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import steps as plan
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.system import Failed, Host
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy.units import Options, unit
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import DAEMONS, PROXY, VRRP, Daemon

Move = Callable[[str, str], None]
BY_UNIT = {daemon.unit: daemon for daemon in DAEMONS}
PARSERS = {PROXY: proxy_config.parse, VRRP: vrrp_config.parse}


class Desired(NamedTuple):
    """What the user wants."""

    configs: Dict[str, Optional[Dict[str, Any]]]  # by the daemon's name; None where it has nothing to do
    options: Options
    python: str
    replace: List[str]


class Result(NamedTuple):
    """What was done, or would be."""

    steps: List[str]
    diff: List[Dict[str, str]]
    archive: str


class Deployment:
    """One run."""

    def __init__(self, host: Host, move: Move) -> None:
        """
        :param move: (source, destination), atomic
        """
        self.host, self.places, self._move = host, host.places, move

    # -- present

    def present(self, wish: Desired, agent: bytes, dry: bool) -> Result:
        """Make the host run the agent as wished.

        :param agent: the version, as one file
        :param dry: only say what would be done
        :raises Failed: with every reason, before anything is changed; or when a daemon does not come along, and then
            the next run goes on where this one has ended
        """
        misread = self._misread(wish)
        if misread:
            raise Failed(" ".join(misread))
        wanted, pending = self._wanted(wish, agent)
        found = self._look(wanted, pending, agent)
        wrong = plan.faults(wanted, found)
        steps = plan.present(wanted, found)
        if not wrong and self._is_new(steps):
            wrong = self._refusals(wish, agent)
        if wrong:
            raise Failed(" ".join(wrong))
        if not dry:
            self._do_all(steps, wish, wanted, pending, agent)
        return Result([str(step) for step in steps], self._diff(wanted, found, pending), wanted.archive)

    def _misread(self, wish: Desired) -> List[str]:
        """Return what is wrong with the configurations wherever they are to be read."""
        return [
            sentence
            for daemon in DAEMONS
            if wish.configs.get(daemon.name) is not None
            for sentence in PARSERS[daemon.name](document(wish.configs[daemon.name]), self.places.config(daemon))[1]
        ]

    def _wanted(self, wish: Desired, agent: bytes) -> Tuple[plan.DesiredState, List[_files.Change]]:
        """Return the host as it is to be, and which files have to change for that."""
        daemons = tuple(daemon for daemon in DAEMONS if wish.configs.get(daemon.name) is not None)
        archive = self.places.archive(hashlib.sha256(agent).hexdigest())
        pointers = {self.places.program(daemon): wish.python for daemon in daemons}
        files = {daemon.unit: self.places.unit(daemon) for daemon in DAEMONS}
        files.update({daemon.name: self.places.config(daemon) for daemon in DAEMONS})
        wanted = plan.DesiredState(
            daemons=daemons,
            archive=archive,
            pointers={**pointers, self.places.link: os.path.basename(archive)},
            files=files,
            python=wish.python,
            replace=tuple(wish.replace),
        )
        return wanted, _files.changes([item for daemon in DAEMONS for item in self._files_of(daemon, wish)])

    def _files_of(self, daemon: Daemon, wish: Desired) -> List[Dict[str, Any]]:
        config = wish.configs.get(daemon.name)
        state = "absent" if config is None else "present"
        text = unit(daemon, config or {}, self.places, wish.options)
        return [
            {
                "path": self.places.config(daemon),
                "content": document(config),
                # Passwords are in it.
                "mode": "0640",
                "group": daemon.program,
                "state": state,
                "check": "none",
            },
            {"path": self.places.unit(daemon), "content": text, "mode": "0644", "state": state, "check": "none"},
        ]

    def _look(self, wanted: plan.DesiredState, pending: List[_files.Change], agent: bytes) -> plan.ActualState:
        return look(self.host, wanted, tuple(change.path for change in pending), agent)

    def _is_new(self, steps: List[plan.Step]) -> bool:
        return any(step.do in (plan.INSTALL, plan.REPLACE, plan.POINT) for step in steps)

    def _refusals(self, wish: Desired, agent: bytes) -> List[str]:
        """Show the configurations to the very version that is to read them."""
        with tempfile.NamedTemporaryFile(suffix=".pyz") as file:
            file.write(agent)
            file.flush()
            return [
                sentence
                for daemon in DAEMONS
                if wish.configs.get(daemon.name) is not None
                for sentence in self.host.check_config(
                    wish.python, file.name, document(wish.configs[daemon.name]), self.places.config(daemon)
                )
            ]

    def _do_all(
        self,
        steps: List[plan.Step],
        wish: Desired,
        wanted: plan.DesiredState,
        pending: List[_files.Change],
        agent: bytes,
    ) -> None:
        if steps:
            self.host.mark(self.places.unfinished)
        replaced = False
        for step in steps:
            if step.do != plan.REPLACE:
                self._do(step, wish, wanted, agent)
            elif not replaced:  # all of them at once, or none
                _files.replace_all(pending, self.host.find, self.host.run, self._move, dry=False)
                replaced = True
        self.host.discard_candidates(wanted.files.values())
        self.host.remove(self.places.unfinished)
        # What nobody runs any more. It is no change of what is wanted, so it is none that counts.
        self.host.discard_unused(wanted.archive)

    def _do(self, step: plan.Step, wish: Desired, wanted: plan.DesiredState, agent: bytes) -> None:
        host = self.host
        if step.do in (plan.RELOAD, plan.RENEW, plan.RESTART):
            self._bring_along(step, wish, wanted)
            return
        {
            plan.CREATE_USER: host.create_user,
            plan.INSTALL: lambda path: host.write(path, agent),
            plan.POINT: lambda link: host.point(link, wanted.pointers[link]),
            plan.RELOAD_SYSTEMD: lambda _nothing: host.systemctl("daemon-reload"),
            # With its reload: systemd 257 takes the unit for outdated otherwise.
            plan.ENABLE: lambda name: host.systemctl("enable", name),
            plan.STOP: host.stop,
            plan.START: host.start,
            plan.REMOVE: host.remove,
            plan.REMOVE_USER: host.remove_user,
        }[step.do](step.what)

    def _bring_along(self, step: plan.Step, wish: Desired, wanted: plan.DesiredState) -> None:
        """Have a running daemon go over to what is new."""
        daemon = BY_UNIT[step.what]
        running = self.host.units()[step.what]
        if not running.pid:  # it has ended meanwhile
            self.host.start(step.what)
        elif step.do == plan.RELOAD:
            self.host.reload(daemon, running)
        elif step.do == plan.RENEW:
            self.host.renew(daemon, running, wanted.archive)
        else:
            held = [vip for each in self._instances() for vip in each.get("held", ())]
            self.host.restart(daemon, running, bool(plan.left_behind(held, wish.configs[VRRP])))

    def _instances(self) -> List[Dict[str, Any]]:
        return (self.host.report(Daemon(VRRP).status_socket) or {}).get("instances", [])

    def _diff(
        self, wanted: plan.DesiredState, found: plan.ActualState, pending: List[_files.Change]
    ) -> List[Dict[str, str]]:
        links = [link for link, target in wanted.pointers.items() if found.pointers[link] != target]
        return [change.diff for change in pending] + [
            {
                "before_header": link,
                "after_header": link,
                "before": f"{found.pointers[link] or '(absent)'}\n",
                "after": f"{wanted.pointers[link]}\n",
            }
            for link in links
        ]

    # -- absent

    def absent(self, dry: bool) -> Result:
        """Take all of it away."""
        host = self.host
        nothing = plan.DesiredState((), "", {}, {}, "")
        found = look(host, nothing, (), b"")._replace(remains=host.remains())
        steps = plan.absent(found)
        if not dry:
            for step in steps:
                if found.systemd or step.do != plan.RELOAD_SYSTEMD:
                    self._do(step, Desired({}, Options(), "", []), nothing, b"")
        gone = [
            {"before_header": path, "after_header": f"{path} (absent)", "before": "", "after": ""}
            for path in found.remains
        ]
        return Result([str(step) for step in steps], gone, "")


def look(host: Host, wanted: plan.DesiredState, pending: Tuple[str, ...], agent: bytes) -> plan.ActualState:
    """Return the host as it is, as far as it matters for what is wanted."""
    systemd = host.has_systemd()
    return plan.ActualState(
        systemd=systemd,
        raw_sockets=host.has_raw_sockets(),
        version=host.python_version(wanted.python),
        users=host.users(),
        pending=pending,
        whole=host.content(wanted.archive) == agent,
        pointers={link: host.pointer(link) for link in wanted.pointers},
        unfinished=host.exists(host.places.unfinished),
        units=host.units() if systemd else {},
        rivals=host.rivals() if systemd else (),
        enabled_rivals=host.enabled_rivals() if systemd else frozenset(),
        remains=(),
    )


def problems(host: Host, daemons: Sequence[str], python: str, replace: Sequence[str]) -> List[str]:
    """Return a sentence for each thing that keeps these daemons from running here."""
    wanted = plan.DesiredState(tuple(Daemon(name) for name in daemons), "", {}, {}, python, tuple(replace))
    return plan.faults(wanted, look(host, wanted, (), b""))


def document(config: Optional[Dict[str, Any]]) -> str:
    """Return a configuration as it is written."""
    return json.dumps(config, indent=2) + "\n"
