"""Makes the tree in which it runs a host of the RedHat family: RPMs, a repository of them, and no dpkg.

It runs in a tree of Debian's with dnf, rpm and createrepo_c, as `python3 -m rpms.build`. What the packages depend on
becomes a part of the tree, of which rpm knows nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Mapping

from .packages import PACKAGES, TAKEN, Package

HERE = Path(__file__).parent
WORK = Path("/tmp/rpms")
REPOSITORY = Path("/opt/lab-repository")
RELEASE = HERE / "tree" / "lab-release"  # rpm's own settings, too
SPEC = (HERE / "package.spec").read_text()
NAMED = "%%{NAME}-%%{VERSION}-%%{RELEASE}.rpm"
BOOTED = "[ ! -d /run/systemd/system ] ||"  # not while the image is built
APT = ("apt-get", "--quiet=2", "--no-install-recommends", "--option=APT::Sandbox::User=root")
# Debian's package manager, what it keeps and what starts it.
DEBIANS = """
/usr/bin/apt* /usr/bin/dpkg* /usr/sbin/dpkg* /usr/lib/apt /usr/lib/dpkg /usr/share/dpkg /etc/apt /etc/dpkg
/etc/debian_version /var/lib/apt /var/lib/dpkg /var/cache/apt /var/cache/debconf /lib/systemd/system/apt-*
/lib/systemd/system/dpkg-* /etc/systemd/system/apt-* /etc/systemd/system/timers.target.wants/*
/etc/cron.daily/apt* /etc/cron.daily/dpkg /etc/logrotate.d/apt /etc/logrotate.d/dpkg
"""


def run(*command: str, cwd: Path = Path("/")) -> str:
    """Run a command and return what it prints; its errors are shown."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=cwd, env=environment).stdout


def fetch() -> None:
    """Fetch Debian's packages, and install what they depend on."""
    names = [deb for package in PACKAGES for deb in package.debs]
    run(*APT, "download", *names, cwd=WORK)
    needed = ", ".join(run("dpkg-deb", "--field", str(deb_of(name)), "Depends").strip() for name in names)
    own = {*names, *(f"{name}:any" for name in names)}
    needed = ", ".join(each for each in needed.split(", ") if each.split()[0] not in own)
    run(*APT, "--yes", "satisfy", needed)


def deb_of(name: str) -> Path:
    return next(WORK.glob(f"{name}_*.deb"))


def lay_out(package: Package, tree: Path) -> None:
    """Make the tree of a package's files."""
    unpacked = WORK / "unpacked" / package.name
    unpacked.mkdir(parents=True)
    for deb in package.debs:
        run("dpkg-deb", "--extract", str(deb_of(deb)), str(unpacked))
    for folder in ("bin", "sbin", "lib"):
        merge(unpacked / folder, unpacked / "usr" / folder)
    for before, after in package.moves.items():
        merge(unpacked / before, tree / after)
        shutil.rmtree(unpacked / before)
    for taken in TAKEN:
        merge(unpacked / taken, tree / taken)
    shutil.rmtree(tree / "usr/lib/systemd", ignore_errors=True)
    replace_in_scripts(tree, {f"/{before}": f"/{after}" for before, after in package.moves.items()})
    merge(HERE / "tree" / package.name, tree)
    for path in package.paths:
        if not (tree / path[1:]).exists():
            (tree / path[1:]).mkdir(parents=True)


def merge(source: Path, target: Path) -> None:
    """Copy a folder into another; there may be none."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def replace_in_scripts(tree: Path, moved: Mapping[str, str]) -> None:
    """Name the family's folders where a script names Debian's."""
    for script in [*tree.rglob("*.sh"), *tree.rglob("*.py")]:
        text = script.read_text()
        for before, after in moved.items():
            text = text.replace(before, after)
        script.write_text(text)


def files(package: Package, tree: Path) -> Iterator[str]:
    """Yield the lines of %files: what is in the tree, the folders that are the package's own, and modes."""
    for path in sorted(tree.rglob("*")):
        name = f"/{path.relative_to(tree)}"
        is_folder = path.is_dir() and not path.is_symlink()
        mode, owner = package.paths.get(name, ("", ""))
        attributes = f"%attr({mode}, {owner}, {owner}) " if mode else ""
        kind = "%dir " if is_folder else "%config(noreplace) " if name.startswith("/etc/") else ""
        if mode or not is_folder:
            yield f'{attributes}{kind}"{name}"'


def scriptlets(package: Package) -> Dict[str, str]:
    """Return what runs before and after an installation and a removal, as the family's macros expand."""
    user, unit = package.user, package.unit
    useradd = f"useradd --system --home-dir {package.home} --shell /usr/sbin/nologin {user}"
    of_user = {"pre": f"id -u {user} >/dev/null 2>&1 || {useradd}"}
    of_unit = {
        "post": f"[ $1 -gt 1 ] || {BOOTED} systemctl --no-reload preset {unit}; {BOOTED} systemctl daemon-reload",
        "preun": f"[ $1 -gt 0 ] || {BOOTED} systemctl --no-reload disable --now {unit} || :",
        "postun": f"{BOOTED} systemctl daemon-reload; [ $1 -eq 0 ] || {BOOTED} systemctl try-restart {unit}",
    }
    return {**dict.fromkeys(("pre", *of_unit), ""), **(of_user if user else {}), **(of_unit if unit else {})}


def version(package: Package) -> str:
    """Return Debian's version as rpm writes one: without epoch and revision."""
    if not package.debs:
        return next((each.split(" = ")[1] for each in package.provides), "1")
    return run("dpkg-deb", "--field", str(deb_of(package.debs[0])), "Version").strip().split(":")[-1].split("-")[0]


def spec(package: Package, version: str, release: int, tree: Path, listed: Path) -> str:
    """Return its spec file."""
    relations = "\n".join(f"Provides: {each}" for each in package.provides)
    values = {"name": package.name, "version": version, "release": release, "summary": package.summary}
    return SPEC.format(**values, relations=relations, tree=tree, files=listed, **scriptlets(package))


def build(package: Package) -> None:
    """Build its releases."""
    tree, listed, file = WORK / "trees" / package.name, WORK / "files", WORK / "spec"
    lay_out(package, tree)
    macros = {"_topdir": WORK / "built", "_rpmdir": REPOSITORY, "_rpmfilename": NAMED}
    for release in range(1, package.releases + 1):
        if package.releases > 1:
            mark(tree / "etc", release)
        listed.write_text("\n".join(files(package, tree)) + "\n")
        file.write_text(spec(package, version(package), release, tree, listed))
        run("rpmbuild", "-bb", "--quiet", *(f"--define={name} {value}" for name, value in macros.items()), str(file))


def mark(folder: Path, release: int) -> None:
    """Make the configuration of each release another."""
    for file in [*folder.glob("*/*.cfg"), *folder.glob("*/*.conf")]:
        file.write_text(f"{file.read_text()}# Of release {release}.\n")


def remove_debians() -> None:
    """Remove Debian's package manager, and what it has of the family's files."""
    for pattern in DEBIANS.split():
        for path in Path("/").glob(pattern[1:]):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def main() -> None:
    WORK.mkdir()
    REPOSITORY.mkdir()
    fetch()
    shutil.copytree(RELEASE, "/", symlinks=True, dirs_exist_ok=True)
    for package in PACKAGES:
        build(package)
    run("createrepo_c", "--quiet", str(REPOSITORY))
    installed: List[str] = [package.name for package in PACKAGES if package.installed]
    run("dnf", "--assumeyes", "--quiet", "install", *installed)
    remove_debians()
    shutil.rmtree(WORK)
    shutil.rmtree(HERE)


if __name__ == "__main__":
    main()
