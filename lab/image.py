"""The image that lab hosts start from.

mmdebstrap builds `debian12`, `debian13` and `rpm` here, without a container registry. Any other name is an image that
podman has or can pull. The cache keeps the root filesystem in a tar file, which gets its name, with the recipe's hash,
when it is complete. The image has that hash in a label, so that an outdated image is replaced.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import List, Tuple

from . import shell
from .machine import Machine

REPOSITORY = "localhost/onprem-lb-lab"
RECIPE_LABEL = "onprem.lb.recipe"
OURS = "label=" + RECIPE_LABEL
CHECKOUT = Path(__file__).parent.parent
SUITES = {"debian12": "bookworm", "debian13": "trixie", "rpm": "bookworm"}
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "python3-minimal",
    "python3",
    "iproute2",
    "procps",
    "ca-certificates",
    "openssh-server",
    "sudo",
)
DEBIANS = ("python3-apt", "nftables", "curl")
# What else one image has. Each has a second firewall, which is installed and does not run. firewalld starts only if it
# finds esp in /etc/protocols, which is in netbase.
OF_IMAGE = {
    "debian12": (*DEBIANS, "ufw"),
    "debian13": (*DEBIANS, "firewalld", "netbase"),
    "rpm": ("dnf", "python3-dnf", "dnf-plugins-core", "rpm", "createrepo-c", "netbase"),
}
# What an image has besides whose name ends with one of these. `names` is what writes /etc/resolv.conf, of which a host
# starts its own; a DHCP server is in dnsmasq.
VARIANTS = {
    "names": ("systemd-resolved", "network-manager", "isc-dhcp-client", "dnsmasq-base", "bind9-dnsutils"),
    "routers": ("frr", "bird2", "keepalived", "tcpdump"),
    "machines": ("linux-image-cloud-amd64", "udev", "ifupdown", "e2fsprogs", "qemu-system-x86"),
}
HOOKS = {
    "routers": ('--customize-hook=systemctl --root="$1" disable frr.service bird.service keepalived.service',),
    "machines": ('--customize-hook=systemctl --root="$1" unmask systemd-modules-load.service',),
}
# Throwaway hosts need no fsync. apt's timers would take its lock at random times, and a container cannot load kernel
# modules.
OPTIONS = (
    "--variant=minbase",
    "--dpkgopt=force-unsafe-io",
    '--aptopt=Acquire::Languages "none"',
    '--customize-hook=systemctl --root="$1" mask apt-daily.timer apt-daily-upgrade.timer systemd-modules-load.service',
    '--customize-hook=systemctl --root="$1" disable firewalld.service 2>/dev/null || true',
    '--customize-hook=systemctl --root="$1" disable systemd-resolved NetworkManager.service 2>/dev/null || true',
)
# Where Debian's package manager goes at the end, mmdebstrap does not clean up with it.
RPMS = Path("lab/rpms")
CONVERTED = {
    "rpm": (
        "--skip=cleanup/apt,cleanup/mmdebstrap",
        f"--customize-hook=copy-in {RPMS} /opt",
        '--customize-hook=chroot "$1" env --chdir=/opt python3 -m rpms.build',
    ),
}
# mmdebstrap mounts /proc, /sys and the host's /dev/shm into its tree. In its own namespaces these mounts and all of its
# processes end with it, so that removing the tree cannot follow a mount.
ISOLATED = (
    *("setpriv", "--pdeathsig", "KILL"),  # unshare ignores the SIGTERM that other commands get
    *("unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc"),
)


def is_built_here(name: str) -> bool:
    """Return whether an image of this name is built here."""
    distribution, _dash, variant = name.partition("-")
    return distribution in SUITES and (variant in VARIANTS or distribution == name)


def with_variant(name: str, variant: str) -> str:
    """Return the name of the image that has a variant's packages besides. Others' images are as they are."""
    return f"{name}-{variant}" if variant and is_built_here(name) else name


def recipe(name: str) -> Tuple[str, ...]:
    """Return the mmdebstrap arguments that build this image, up to the target."""
    distribution, _dash, variant = name.partition("-")
    packages = PACKAGES + OF_IMAGE[distribution] + VARIANTS.get(variant, ())
    hooks = (*OPTIONS, *HOOKS.get(variant, ()), *CONVERTED.get(distribution, ()))
    return (*hooks, "--include=" + ",".join(packages), SUITES[distribution])


def recipe_hash(name: str) -> str:
    """Return a hash of all that an image is made from."""
    made = hashlib.sha256("\n".join(recipe(name)).encode())
    for file in sorted((CHECKOUT / RPMS).rglob("*")) if name.partition("-")[0] in CONVERTED else ():
        if file.is_file() and "__pycache__" not in file.parts:
            made.update(str(file.relative_to(CHECKOUT)).encode() + file.read_bytes())
    return made.hexdigest()[:12]


def ensure(machine: Machine, name: str, cache: Path) -> str:
    """Return the reference of an image that podman can run; build or pull it first if necessary."""
    if not is_built_here(name):
        if not _inspect(machine, name):
            with shell.step(f"pull {name}"):
                machine.podman("pull", "--quiet", name)
        return name
    reference = f"{REPOSITORY}:{name}"
    current = recipe_hash(name)
    if _recipe_of(machine, reference) != current:
        rootfs = cache / f"rootfs-{name}-{current}.tar"
        if not rootfs.exists():
            _build(machine, name, rootfs)
        with shell.step(f"import {reference}"):
            label = f"LABEL={RECIPE_LABEL}={current}"
            machine.podman("import", "--quiet", "--change", label, str(rootfs), reference)
            machine.podman("image", "prune", "--force", "--filter", OURS)  # the image that this one replaces
    return reference


def outdated(cache: Path, name: str) -> List[Path]:
    """Return the root filesystems of an image's earlier recipes, but none of its variants'."""
    return [file for file in cache.glob(f"rootfs-{name}-*.tar") if file.stem.rpartition("-")[0] == f"rootfs-{name}"]


def remove(machine: Machine) -> None:
    """Remove our images, except those that hosts of another checkout use."""
    for identifier in set(machine.podman("images", "--quiet", "--filter", OURS).split()):
        try:
            machine.podman("rmi", identifier)
        except shell.LabError:
            shell.say(f"lab: image {identifier} is in use elsewhere, kept")


def _build(machine: Machine, name: str, rootfs: Path) -> None:
    partial, scratch = rootfs.with_name("partial.tar"), rootfs.with_name("partial.d")
    _discard(machine, partial, scratch)
    for earlier in outdated(rootfs.parent, name):
        earlier.unlink()
    scratch.mkdir(mode=0o755)
    with shell.step(f"build {name} with mmdebstrap (half a minute)"):
        make = [*ISOLATED, "env", f"--chdir={CHECKOUT}", f"TMPDIR={scratch}", "mmdebstrap", *recipe(name), str(partial)]
        shell.watch([*machine.as_root, *make], only="I: ")
        partial.rename(rootfs)
    _discard(machine, scratch)


def _discard(machine: Machine, *leftovers: Path) -> None:
    """Remove the leftovers of a build; retry, because an interrupted one may still be ending."""

    def removed() -> bool:
        machine.discard(*leftovers)
        return True

    shell.wait_until(removed, 60, "removing an interrupted build", every=0.5)


def _inspect(machine: Machine, reference: str) -> str:
    try:
        return machine.podman("image", "inspect", reference)
    except shell.LabError:
        return ""


def _recipe_of(machine: Machine, reference: str) -> str:
    image = _inspect(machine, reference)
    labels = json.loads(image)[0].get("Labels") if image else None
    return (labels or {}).get(RECIPE_LABEL, "")
