# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Deploys the agent on a host: compares the actual state with the desired one and takes the steps between them.

``steps`` plans them, ``system`` reads and changes the host.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..._agent.proxy import config as proxy_config
from ..._agent.vrrp import config as vrrp_config
from ..._shared.engines import DAEMONS, PROXY, VRRP, Daemon
from .. import candidates
from ..write import files
from . import steps
from .system import Failed, Host
from .units import Options, option_faults, unit

BY_UNIT = {daemon.unit: daemon for daemon in DAEMONS}
PARSERS = {PROXY: proxy_config.parse, VRRP: vrrp_config.parse}


class Request(NamedTuple):
    """What the user asks for."""

    configs: Dict[str, Optional[Dict[str, Any]]]  # by the daemon's name; None for a daemon that is not to run
    options: Options
    python: str
    replace: List[str]
    keep: Sequence[str] = ()  # daemons that stay as they are, by name

    @property
    def daemons(self) -> Tuple[Daemon, ...]:
        """Those that are to run."""
        return tuple(daemon for daemon in self.judged if self.configs.get(daemon.name) is not None)

    @property
    def judged(self) -> Tuple[Daemon, ...]:
        """Those that the request says anything about."""
        return tuple(daemon for daemon in DAEMONS if daemon.name not in self.keep)


class Result(NamedTuple):
    """What was done, or would be."""

    steps: List[str]
    diff: List[Dict[str, str]]
    archive: str


class Deployment:
    """One run."""

    def __init__(self, host: Host, move: candidates.Move) -> None:
        """
        :param move: (source, destination), atomic
        """
        self.host, self.paths, self._move = host, host.paths, move

    # -- present

    def present(self, request: Request, agent: bytes, dry: bool) -> Result:
        """Make the host run the agent as desired.

        :param agent: the version, as one file
        :param dry: only return what would be done
        :raises Failed: with every reason, before anything is changed; or when a daemon does not take over the change,
            in which case the next run continues where this one ended
        """
        config_faults = self._config_faults(request)
        if config_faults:
            raise Failed(" ".join(config_faults))
        desired, pending = self._desired_state(request, agent)
        actual = actual_state(self.host, desired, [change.path for change in pending], agent)
        wrong = steps.faults(desired, actual)
        todo = steps.present(desired, actual)
        if not wrong and any(step.do in (steps.INSTALL, steps.REPLACE, steps.POINT) for step in todo):
            wrong = self._refusals(request, agent)
        if wrong:
            raise Failed(" ".join(wrong))
        if not dry:
            self._do_all(todo, request, desired, pending, agent)
        return Result([str(step) for step in todo], self._diff(desired, actual, pending), desired.archive)

    def _config_faults(self, request: Request) -> List[str]:
        """Return what is wrong with the configurations and the options, whichever host they are for."""
        return option_faults(request.options) + [
            sentence
            for daemon in request.daemons
            for sentence in PARSERS[daemon.name](document(request.configs[daemon.name]), self.paths.config(daemon))[1]
        ]

    def _desired_state(self, request: Request, agent: bytes) -> Tuple[steps.DesiredState, List[files.Change]]:
        """Return the host as it should be, and the changes of files that this takes."""
        archive = self.paths.archive(hashlib.sha256(agent).hexdigest())
        pointers = {self.paths.program(daemon): request.python for daemon in request.daemons}
        units = {daemon.unit: self.paths.unit(daemon) for daemon in DAEMONS}
        configs = {daemon.name: self.paths.config(daemon) for daemon in DAEMONS}
        desired = steps.DesiredState(
            daemons=request.daemons,
            archive=archive,
            pointers={**pointers, self.paths.link: os.path.basename(archive)},
            files={**units, **configs},
            python=request.python,
            replace=tuple(request.replace),
            loaded={daemon.name: _checksum(document(request.configs[daemon.name])) for daemon in request.daemons},
            judged=request.judged,
        )
        return desired, files.changes([item for daemon in request.judged for item in self._files_of(daemon, request)])

    def _files_of(self, daemon: Daemon, request: Request) -> List[Dict[str, Any]]:
        config = request.configs.get(daemon.name)
        state = "absent" if config is None else "present"
        text = unit(daemon, config or {}, self.paths, request.options)
        return [
            {
                "path": self.paths.config(daemon),
                "content": document(config),
                # It contains passwords.
                "mode": "0640",
                "group": daemon.program,
                "state": state,
                "check": "none",
            },
            {"path": self.paths.unit(daemon), "content": text, "mode": "0644", "state": state, "check": "none"},
        ]

    def _refusals(self, request: Request, agent: bytes) -> List[str]:
        """Let the version that will read the configurations check them; return what it refuses."""
        with tempfile.NamedTemporaryFile(suffix=".pyz") as file:
            file.write(agent)
            file.flush()
            return [
                sentence
                for daemon in request.daemons
                for sentence in self.host.check_config(
                    request.python, file.name, document(request.configs[daemon.name]), self.paths.config(daemon)
                )
            ]

    def _do_all(
        self,
        todo: List[steps.Step],
        request: Request,
        desired: steps.DesiredState,
        pending: List[files.Change],
        agent: bytes,
    ) -> None:
        if todo:
            self.host.mark(self.paths.unfinished)
        replaced = False
        for step in todo:
            if step.do not in (steps.REPLACE, steps.DELETE):
                self._do(step, request, desired, agent)
            elif not replaced:  # all files together, or none
                files.replace_all(pending, self.host.find, self.host.run, self._move, dry=False)
                replaced = True
        self.host.remove_temp_files(desired.files.values())
        self.host.remove(self.paths.unfinished)
        # Versions that no process runs any more. They are no part of the desired state, so this is no step.
        self.host.remove_unused_versions(desired.archive)

    def _do(self, step: steps.Step, request: Request, desired: steps.DesiredState, agent: bytes) -> None:
        host = self.host
        if step.do in (steps.RELOAD, steps.UPGRADE, steps.RESTART):
            self._apply_to_running(step, request, desired)
            return
        {
            steps.CREATE_USER: host.create_user,
            steps.INSTALL: lambda path: host.write(path, agent),
            steps.POINT: lambda link: host.point(link, desired.pointers[link]),
            steps.RELOAD_SYSTEMD: lambda _nothing: host.systemctl("daemon-reload"),
            # This also reloads systemd: systemd 257 would report the unit as outdated otherwise.
            steps.ENABLE: lambda name: host.systemctl("enable", name),
            steps.STOP: host.stop,
            steps.START: host.start,
            steps.REMOVE: host.remove,
            steps.REMOVE_USER: host.remove_user,
        }[step.do](step.what)

    def _apply_to_running(self, step: steps.Step, request: Request, desired: steps.DesiredState) -> None:
        """Make a running daemon use the new files."""
        daemon = BY_UNIT[step.what]
        running = self.host.units()[step.what]
        if not running.pid:  # it has ended since
            self.host.start(step.what)
        elif step.do == steps.RELOAD:
            self.host.reload(daemon, running)
        elif step.do == steps.UPGRADE:
            self.host.upgrade(daemon, running, desired.archive)
        else:
            self.host.restart(daemon, running, self._leaves_some(daemon, running, request))

    def _leaves_some(self, daemon: Daemon, running: steps.Unit, request: Request) -> bool:
        """Return whether a router that leaves its addresses would leave some that are not to stay.

        The running version gives those up first, if it understands its new configuration.
        """
        if not steps.orphaned(self._instances(), request.configs[VRRP]):
            return False
        with contextlib.suppress(Failed):
            self.host.reload(daemon, running)
        return bool(steps.orphaned(self._instances(), request.configs[VRRP]))

    def _instances(self) -> List[Dict[str, Any]]:
        return (self.host.report(Daemon(VRRP).status_socket) or {}).get("instances", [])

    def _diff(
        self, desired: steps.DesiredState, actual: steps.ActualState, pending: List[files.Change]
    ) -> List[Dict[str, str]]:
        return [change.diff for change in pending] + [
            {
                "before_header": link,
                "after_header": link,
                "before": f"{actual.pointers[link] or '(absent)'}\n",
                "after": f"{desired.pointers[link]}\n",
            }
            for link in steps.changed_pointers(desired, actual)
        ]

    # -- absent

    def absent(self, dry: bool) -> Result:
        """Remove everything."""
        host = self.host
        nothing = steps.DesiredState((), "", {}, {}, "")
        actual = actual_state(host, nothing, (), b"")._replace(leftovers=host.leftovers())
        todo = steps.absent(actual)
        if not dry:
            for step in todo:
                if actual.systemd or step.do != steps.RELOAD_SYSTEMD:
                    self._do(step, Request({}, Options(), "", []), nothing, b"")
        gone = [
            {"before_header": path, "after_header": f"{path} (absent)", "before": "", "after": ""}
            for path in actual.leftovers
        ]
        return Result([str(step) for step in todo], gone, "")


def actual_state(host: Host, desired: steps.DesiredState, pending: Sequence[str], agent: bytes) -> steps.ActualState:
    """Return the host as it is, as far as that matters for the desired state."""
    systemd = host.has_systemd()
    return steps.ActualState(
        systemd=systemd,
        raw_sockets=host.has_raw_sockets(),
        version=host.python_version(desired.python),
        users=host.users(),
        pending=tuple(pending),
        installed=host.content(desired.archive) == agent,
        pointers={link: host.pointer(link) for link in desired.pointers},
        unfinished=host.exists(host.paths.unfinished),
        units=host.units() if systemd else {},
        conflicting=host.conflicting() if systemd else (),
        enabled_conflicting=host.enabled_conflicting() if systemd else frozenset(),
        leftovers=(),
        unwritable=host.unwritable(desired.daemons),
    )


def problems(host: Host, daemons: Sequence[str], python: str, replace: Sequence[str]) -> List[str]:
    """Return a sentence for each reason why these daemons cannot run here."""
    desired = steps.DesiredState(tuple(Daemon(name) for name in daemons), "", {}, {}, python, tuple(replace))
    return steps.faults(desired, actual_state(host, desired, (), b""))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def document(config: Optional[Dict[str, Any]]) -> str:
    """Return a configuration as it is written."""
    return json.dumps(config, indent=2) + "\n"
