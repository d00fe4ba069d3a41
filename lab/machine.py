"""Prepares this machine for the lab.

`plan` is pure: it turns observed facts into packages and one small podman configuration. `observe` reads the machine,
and `prepare` changes it. A machine that has everything stays unchanged. With hybrid cgroups or tight resource limits
it gets a containers.conf, which only the lab's podman reads.
"""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, FrozenSet, List, Optional, Tuple

from . import shell

# The limit that podman sets by default.
PODMAN_LIMIT = 1048576
CONF = "containers.conf"
# All hosts share root's limit, and each systemd uses some twenty of them; the kernel's default is 128.
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_ENOUGH = 512
AS_ROOT: Dict[str, Tuple[str, ...]] = {"root": (), "sudo": ("sudo", "-n")}


@dataclass(frozen=True)
class Need:
    """A program or file (any one of `found_as` suffices) and the package that provides it."""

    found_as: Tuple[str, ...]
    apt: str
    dnf: str


NEEDS = (
    Need(("podman",), apt="podman", dnf="podman"),
    Need(("netavark",), apt="netavark", dnf="netavark"),
    Need(("aardvark-dns",), apt="aardvark-dns", dnf="aardvark-dns"),
    Need(("iptables",), apt="iptables", dnf="iptables-nft"),  # netavark calls it even if nft is installed
    Need(("ip",), apt="iproute2", dnf="iproute"),
    Need(("ssh",), apt="openssh-client", dnf="openssh-clients"),
    Need(("ssh-keygen",), apt="openssh-client", dnf="openssh-clients"),
)
DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
NEEDS_TO_BUILD_DEBIAN = (
    Need(("mmdebstrap",), apt="mmdebstrap", dnf="mmdebstrap"),
    Need((DEBIAN_KEYS,), apt="debian-archive-keyring", dnf="debian-keyring"),
)
ANY_RUNTIME = Need(("crun", "runc"), apt="crun", dnf="crun")
RUNC = Need(("runc",), apt="runc", dnf="runc")
NO_PRIVILEGE = "The lab runs podman as root: become root, or allow sudo without a password."


@dataclass(frozen=True)
class Facts:
    """The observed state of this machine."""

    privilege: str  # root, sudo (without a password) or none
    found: FrozenSet[str]
    hybrid_cgroups: bool
    hard_nofile: int
    hard_nproc: int
    may_raise_limits: bool
    inotify_instances: int
    package_manager: Optional[str]  # apt-get, dnf or None


@dataclass(frozen=True)
class Preparation:
    """What to change; a refusal is the sentence that tells the user what to do first."""

    packages: Tuple[str, ...] = ()
    containers_conf: Optional[str] = None
    inotify_instances: Optional[int] = None
    refusal: Optional[str] = None


@dataclass(frozen=True)
class Machine:
    """A machine, and how to call podman on it."""

    cache: Path
    as_root: Tuple[str, ...]
    containers_conf: Optional[Path]
    ipv6: bool

    def podman(self, *arguments: str) -> str:
        """Run podman as root, with the lab's own configuration if this machine needs one.

        When the lab is killed, podman may finish, because it would leave bridges and DNS records behind. Only
        `podman exec` ends with the lab.
        """
        finish = None if arguments[0] == "exec" else self.cache / shell.FINISH
        return shell.run([*self.podman_command, *arguments], finish=finish)

    def discard(self, *paths: Path) -> None:
        """Remove these paths, but nothing that is mounted below them."""
        shell.run([*self.as_root, "rm", "-rf", "--one-file-system", *map(str, paths)])

    @property
    def has_podman(self) -> bool:
        return exists("podman")

    @property
    def podman_command(self) -> List[str]:
        conf = ["env", f"CONTAINERS_CONF={self.containers_conf}"] if self.containers_conf else []
        return [*self.as_root, *conf, "podman"]


def plan(facts: Facts, build_debian: bool) -> Preparation:
    """Return what this machine lacks."""
    if facts.privilege == "none":
        return Preparation(refusal=NO_PRIVILEGE)
    runtime = RUNC if facts.hybrid_cgroups else ANY_RUNTIME
    needs = [*NEEDS, runtime, *(NEEDS_TO_BUILD_DEBIAN if build_debian else ())]
    missing = [need for need in needs if not facts.found.intersection(need.found_as)]
    packages = _unique([need.dnf if facts.package_manager == "dnf" else need.apt for need in missing])
    refusal = None
    if packages and facts.package_manager != "apt-get":
        refusal = "The lab needs {}; install them first".format(", ".join(packages))
        if facts.package_manager:
            refusal += f": sudo {facts.package_manager} install {' '.join(packages)}"
    inotify = INOTIFY_ENOUGH if facts.inotify_instances < INOTIFY_ENOUGH else None
    return Preparation(packages, containers_conf(facts), inotify, refusal)


def containers_conf(facts: Facts) -> Optional[str]:
    """Return the podman configuration that this machine needs, or None if podman's defaults work."""
    lines = []
    if not facts.may_raise_limits:
        nofile = f"nofile={min(1024, facts.hard_nofile)}:{facts.hard_nofile}"
        nproc = f"nproc={facts.hard_nproc}:{facts.hard_nproc}"
        lines += ["[containers]", f'default_ulimits = ["{nofile}", "{nproc}"]']
    if facts.hybrid_cgroups:  # crun does not support them
        lines += ["[engine]", 'runtime = "runc"']
    return "\n".join(lines) + "\n" if lines else None


def fair_share(cgroup_manager: str) -> Tuple[str, ...]:
    """Return the options of `podman run` with which each host has the CPU weight of one process beside it.

    Where podman makes the cgroups, it puts all containers into one, and they share this weight. systemd's machine.slice
    weighs as much as all the services together. conmon, which watches a container, stays in the lab's cgroup: its own
    would be left behind.
    """
    return ("--cgroup-parent", "/", "--cgroups", "no-conmon") if cgroup_manager == "cgroupfs" else ()


def prepare(cache: Path, build_debian: bool) -> Machine:
    """Make this machine able to run the lab."""
    facts = observe()
    preparation = plan(facts, build_debian)
    if preparation.refusal:
        raise shell.LabError(preparation.refusal)
    as_root = AS_ROOT[facts.privilege]
    if preparation.packages:
        with shell.step("install {}".format(" ".join(preparation.packages))):
            install(as_root, preparation.packages)
    if preparation.inotify_instances:  # until the next boot
        shell.run([*as_root, "sh", "-c", f"echo {preparation.inotify_instances} > {INOTIFY}"])
    conf = cache / CONF
    if preparation.containers_conf:
        conf.write_text(preparation.containers_conf)
    elif conf.exists():
        conf.unlink()
    return as_it_is(cache)


def as_it_is(cache: Path) -> Machine:
    """Return this machine without changing it: enough to inspect a lab or to remove one."""
    privilege = _privilege()
    if privilege == "none":
        raise shell.LabError(NO_PRIVILEGE)
    conf = cache / CONF
    return Machine(cache, AS_ROOT[privilege], conf if conf.exists() else None, has_ipv6())


def install(as_root: Tuple[str, ...], packages: Tuple[str, ...]) -> None:
    """Install packages with apt; update the package lists and try again if that fails."""
    apt = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300"]
    command = [*apt, "install", "--yes", "--no-install-recommends", *packages]
    try:
        shell.run(command)
    except shell.LabError:
        shell.run([*apt, "update"])
        shell.run(command)


def observe() -> Facts:
    """Read the state of this machine, without changing it."""
    privilege = _privilege()
    candidates = {name for need in (*NEEDS, *NEEDS_TO_BUILD_DEBIAN, ANY_RUNTIME) for name in need.found_as}
    return Facts(
        privilege=privilege,
        found=frozenset(name for name in candidates if exists(name)),
        hybrid_cgroups=Path("/sys/fs/cgroup/unified").is_dir(),
        hard_nofile=_hard_limit(resource.RLIMIT_NOFILE),
        hard_nproc=min(_hard_limit(resource.RLIMIT_NPROC), _pid_max()),
        may_raise_limits=_may_raise_limits(AS_ROOT.get(privilege, ())),
        inotify_instances=int(INOTIFY.read_text()),
        package_manager=next((name for name in ("apt-get", "dnf") if exists(name)), None),
    )


def has_ipv6() -> bool:
    """Return whether new interfaces get IPv6 here."""
    switch = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    return switch.exists() and switch.read_text().strip() == "0"


def _privilege() -> str:
    if os.geteuid() == 0:
        return "root"
    return "sudo" if shell.succeeds(["sudo", "-n", "true"]) else "none"


def exists(name: str) -> bool:
    return Path(name).exists() if name.startswith("/") else bool(shutil.which(name, path=shell.SEARCH_PATH))


def _hard_limit(which: int) -> int:
    hard = resource.getrlimit(which)[1]
    return PODMAN_LIMIT if hard == resource.RLIM_INFINITY else min(hard, PODMAN_LIMIT)


def _pid_max() -> int:
    """Return the highest process id: podman limits processes to it."""
    return int(Path("/proc/sys/kernel/pid_max").read_text())


def _may_raise_limits(as_root: Tuple[str, ...]) -> bool:
    limits = [f"--{name}={PODMAN_LIMIT}:{PODMAN_LIMIT}" for name in ("nofile", "nproc")]
    return shell.succeeds([*as_root, "prlimit", *limits, "true"])


def _unique(names: List[str]) -> Tuple[str, ...]:
    return tuple(dict.fromkeys(names))
