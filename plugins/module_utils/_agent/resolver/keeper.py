# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The service that keeps the host asking its own resolver: a look each second.

Whoever writes /etc/resolv.conf has his name servers kept as the resolver's, and the host's own put before them again.
While the resolver does not answer, the host has the name servers that it had before.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import time
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional, Sequence

from ..net import name_server
from . import files, relay, resolv_conf
from .show import STATE

RESOLVED, NETWORK_MANAGER, FILE = "systemd-resolved", "NetworkManager", "resolv.conf"
# Read last of all, and gone after a boot: what systemd-resolved asks while the resolver does not answer.
STOPPED = "/run/systemd/resolved.conf.d/zzz-onprem-lb-stopped.conf"
PAUSE = 1.0  # seconds between two looks
PATIENCE = 3  # looks without an answer, after which the host asks others: a restart is quicker
LOCAL = "localhost"  # without a dot, so that dnsmasq does not forward it
FORWARDING = 60  # looks between two questions for a name of nobody
ANSWERED = (0, 3)  # NOERROR and NXDOMAIN; anything else, and a client asks the next name server

Ask = Callable[[str, str, str], name_server.Answer]


class Settings(NamedTuple):
    """What a run writes for it.

    :ivar told: who writes /etc/resolv.conf: RESOLVED, NETWORK_MANAGER or FILE
    :ivar own: the address at which the host asks
    :ivar source: the file with the host's own name servers
    :ivar mine: addresses that are no name servers of others
    :ivar named: those that systemd-resolved's configuration names
    :ivar upstreams: the file with those that the resolver asks; "" where an older run has named none
    """

    told: str
    own: str
    source: str
    mine: List[str]
    named: List[str]
    upstreams: str = ""


class Here(NamedTuple):
    """/etc/resolv.conf, and the file with the host's own name servers."""

    text: Optional[str]
    target: str  # where it leads, if it is a symbolic link
    source: str


class Wanted(NamedTuple):
    """What becomes of /etc/resolv.conf.

    :ivar text: None where it stays
    :ivar supersedes: whether the file that is there becomes the one of before
    :ivar problem: why it stays although it is not this collection's
    """

    text: Optional[str] = None
    supersedes: bool = False
    problem: str = ""


def others(text: str, mine: List[str]) -> List[str]:
    return [each for each in resolv_conf.nameservers(text) if each not in mine]


def wanted(given: Settings, here: Here, answers: bool) -> Wanted:
    """Return what becomes of /etc/resolv.conf."""
    text = here.text or ""
    foreign = here.text is not None and not text.startswith(resolv_conf.MARK)
    manager = _manager(given, here, text) if foreign else ""
    if given.told == RESOLVED or manager:
        return Wanted(problem=_problem(manager)) if manager else Wanted()
    supersedes = foreign and given.told == FILE and bool(others(text, given.mine))
    source = text if supersedes else here.source
    if text and not foreign and not resolv_conf.nameservers(source):
        return Wanted()  # it is not known whom the host asked before: whoever is there stays
    upstreams = others(source, given.mine)
    stopped = bool(upstreams) and not answers
    after = (
        resolv_conf.render_stopped(source, upstreams) if stopped else resolv_conf.render(source, given.own, upstreams)
    )
    return Wanted(None if after == here.text else after, supersedes)


def _manager(given: Settings, here: Here, text: str) -> str:
    """Return who manages /etc/resolv.conf now, if it is another one than the last run has told."""
    is_stub = here.target.startswith("/run/systemd/resolve/") or resolv_conf.STUB in resolv_conf.nameservers(text)
    if given.told == RESOLVED:
        return "" if is_stub else "another program"
    if is_stub:
        return RESOLVED
    if here.target.startswith("/run/NetworkManager/") or (given.told == FILE and resolv_conf.is_generated(text)):
        return NETWORK_MANAGER
    return here.target


def _problem(manager: str) -> str:
    return f"{resolv_conf.PATH} is managed by {manager} since the last run: run onprem.lb.site, which tells it."


def forwards(own: str, upstreams: Sequence[str], ask: Ask = name_server.ask) -> Optional[bool]:
    """Whether the resolver answers for a name of nobody as its name servers do; None where none of those answers."""
    name = f"{random.getrandbits(64):x}.invalid"
    codes = (ask(server, name, "A").rcode for server in upstreams if "#" not in server)
    if not any(code in ANSWERED for code in codes):
        return None
    return ask(own, name, "A").rcode in ANSWERED


def read(path: str) -> Settings:
    with open(path, encoding="utf-8") as file:
        return Settings(**json.load(file))


class Keeper:
    """Looks, and changes what differs."""

    def __init__(
        self, given: Settings, say: Callable[[str], None], ask: Ask = name_server.ask, path: str = resolv_conf.PATH
    ):
        self._given, self._say, self._ask, self._path = given, say, ask, path
        self._silent = 0  # looks
        self._looks = 0
        self._said = ""
        self._source = ""  # the last file of the host's own name servers that named any
        self.last = ""  # the last name server that the resolver asks
        self.state: Dict[str, Any] = {"answers": True, "forwards": None, "asked": True, "problem": ""}

    def look(self) -> Dict[str, Any]:
        """Return the state after one look."""
        self._silent = 0 if self._answers() else self._silent + 1
        answers = self._silent < PATIENCE
        if self._looks % FORWARDING == 0 or answers != self.state["answers"]:
            self.state["forwards"] = self._forwards() if answers else False
        self._looks += 1
        problem = self._keep(answers) or self._tell()
        if problem and problem != self._said:
            self._say(problem)
        self._said = problem
        self.state.update(answers=answers, asked=answers and not problem, problem=problem)
        return self.state

    def _answers(self) -> bool:
        """Whether it says anything of a name that it never forwards. Others may change without a run."""
        return self._ask(self._given.own, LOCAL, "A").rcode is not None

    def _own_servers(self) -> str:
        """Return the file with the host's own name servers; while it is missing or names nobody, the one before."""
        text = files.text(self._given.source) or ""
        if resolv_conf.nameservers(text):
            self._source = text
        return self._source

    def _forwards(self) -> Optional[bool]:
        given = self._given
        upstreams = [*others(self._own_servers(), given.mine), *given.named]
        return forwards(given.own, upstreams, self._ask)

    def _tell(self) -> str:
        """Have the resolver ask the host's name servers, never none, and return what is in the way."""
        given = self._given
        servers = others(self._own_servers(), [*given.mine, *given.named])  # dnsmasq has these already
        self.last = next(iter([*servers[-1:], *given.named[-1:]]), self.last)
        try:
            if servers and given.upstreams and files.text(given.upstreams) != resolv_conf.upstreams(servers):
                files.write(given.upstreams, resolv_conf.upstreams(servers))
        except OSError as error:
            return f"{given.upstreams} cannot be written: {error.strerror}."
        return ""

    def _keep(self, answers: bool) -> str:
        """Put the host's own resolver first, or the others back, and return what is in the way."""
        given, path = self._given, self._path
        target = os.path.realpath(path) if os.path.islink(path) else ""
        found = wanted(given, Here(files.text(path), target, self._own_servers()), answers)
        if found.problem:
            return found.problem
        try:
            if found.text is not None:
                if found.supersedes:
                    files.keep(path, True)
                files.write(path, found.text)
                if found.supersedes:
                    self._say(f"{path} was written by another program: the resolver asks its name servers from now on.")
            if given.told == RESOLVED and given.named:
                tell_resolved(given.named, answers)
        except OSError as error:
            return f"{path} cannot be written: {error.strerror}."
        return ""


def tell_resolved(
    named: List[str], answers: bool, path: str = STOPPED, restart: Optional[Callable[[], None]] = None
) -> None:
    """Have systemd-resolved ask what its configuration names while the resolver does not answer."""
    if os.path.exists(path) is not answers:
        return
    if answers:
        os.unlink(path)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        servers = " ".join(each.replace("#", ":") if ":" not in each else _bracketed(each) for each in named)
        files.write(path, f"{resolv_conf.MARK}\n[Resolve]\nDNS=\nDNS={servers}\n")
    (restart or _restart_resolved)()


def _bracketed(server: str) -> str:
    """Return an IPv6 address of dnsmasq as systemd-resolved writes it."""
    address, _hash, port = server.partition("#")
    return f"[{address}]:{port}" if port else address


def _restart_resolved() -> None:
    subprocess.run(["systemctl", "restart", "systemd-resolved.service"], check=False, timeout=30)


def main(path: str, say: Callable[[str], None], state: str = STATE, port: int = name_server.PORT) -> NoReturn:
    """Look for ever."""
    keeper, written, last = Keeper(read(path), say), "", _relay(say, port)
    while True:
        text = json.dumps(keeper.look())
        if last:
            last.upstream = keeper.last
        if text != written:
            with contextlib.suppress(OSError):  # the state is for others to read; the host's names come first
                files.write(state, text)
                written = text
        time.sleep(PAUSE)


def _relay(say: Callable[[str], None], port: int) -> Optional[relay.Relay]:
    """Return it, None where it cannot be: lookups that fail take longer then."""
    try:
        found = relay.Relay(port=port)
    except OSError as error:
        say(f"{resolv_conf.RELAY} port {port} cannot be used: {error.strerror}. Lookups that fail are slow.")
        return None
    found.start()
    return found
