# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of packages, as dpkg itself brings them about in a folder of its own, and what follows from each."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import dpkg as dpkg_module
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts, packages
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from support import waiting
from support.programs import Programs

CONTROL = "Package: {}\nVersion: 1\nArchitecture: all\nMaintainer: Tests <tests@example.com>\nDescription: A test\n"
KILL = "#!/bin/sh\nkill -9 $PPID\n"
FAIL = "#!/bin/sh\nexit 1\n"
LOCKED_BY = r"{}/lock(-frontend)? is locked by {} \(process \d+\), so that apt .*: wait until it has ended, or end it\."


class Dpkg:
    """dpkg with a database of its own."""

    def __init__(self, folder):
        self.root, self.work = folder / "root", folder / "work"
        self.database = self.root / "var" / "lib" / "dpkg"
        for folder in (self.work, *(self.database / name for name in ("info", "updates", "triggers"))):
            folder.mkdir(parents=True)
        for name in ("status", "available"):
            (self.database / name).touch()

    def run(self, *arguments, given=None):
        options = [f"--root={self.root}", "--force-not-root", "--force-script-chrootless", "--log=/dev/null"]
        path = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        command = ["dpkg", *options, *arguments]
        return subprocess.run(command, input=given, env=path, capture_output=True, text=True, check=False)

    def package(self, name, **scripts):
        """Build a package with a configuration file and return the path of its archive."""
        tree = self.work / name
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN" / "control").write_text(CONTROL.format(name))
        (tree / "DEBIAN" / "conffiles").write_text(f"/etc/{name}.cfg\n")
        (tree / "etc").mkdir()
        (tree / "etc" / f"{name}.cfg").write_text("")
        for script, text in scripts.items():
            (tree / "DEBIAN" / script).write_text(text)
            (tree / "DEBIAN" / script).chmod(0o755)
        subprocess.run(["dpkg-deb", "--build", str(tree)], capture_output=True, check=True)
        return f"{tree}.deb"

    def select(self, name, selection):
        known = self.work / "available"
        known.write_text(CONTROL.format(name))
        self.run("--merge-avail", str(known))
        assert self.run("--set-selections", given=f"{name} {selection}\n").returncode == 0

    def read(self, *names):
        """Return the packages as the reader sees them on a host with this database."""

        def run(command):
            asked = [command[0], f"--admindir={self.database}", *command[1:]]
            ran = subprocess.run(asked, capture_output=True, text=True, check=False)
            return ran.returncode, ran.stdout, ran.stderr

        programs = {"dpkg-query": "dpkg-query", "apt-get": "apt-get"}
        return Reader(run, programs.get).packages(list(names))

    def journal(self):
        """Return what dpkg has begun and not finished."""
        return list((self.database / "updates").glob("[0-9]*"))

    def state(self, name):
        return " ".join(self.read(name).states[name])


@pytest.fixture
def dpkg(tmp_path, monkeypatch):
    found = Dpkg(tmp_path)
    monkeypatch.setattr(dpkg_module, "FOLDER", str(found.database))
    return found


def installed(dpkg):
    assert dpkg.run("--install", dpkg.package("haproxy")).returncode == 0


def held(dpkg):
    installed(dpkg)
    dpkg.select("haproxy", "hold")


def deselected(dpkg):
    installed(dpkg)
    dpkg.select("haproxy", "deinstall")


def removed(dpkg):
    installed(dpkg)
    dpkg.run("--remove", "haproxy")


def removed_and_held(dpkg):
    removed(dpkg)
    dpkg.select("haproxy", "hold")


def purged(dpkg):
    installed(dpkg)
    dpkg.run("--purge", "haproxy")


def held_before_it_came(dpkg):
    dpkg.select("haproxy", "hold")


def unpacked(dpkg):
    dpkg.run("--unpack", dpkg.package("haproxy"))


def unpacked_and_held(dpkg):
    unpacked(dpkg)
    dpkg.select("haproxy", "hold")


def refused_by_its_own_script(dpkg):
    dpkg.run("--install", dpkg.package("haproxy", postinst=FAIL))


def killed_while_it_unpacked(dpkg):
    """The next call of dpkg reads what this one had noted, and does no more about it."""
    dpkg.run("--install", dpkg.package("haproxy", preinst=KILL))
    dpkg.run("--configure", "--pending")


def killed_while_it_configured(dpkg):
    dpkg.run("--install", dpkg.package("haproxy", postinst=KILL))


def waiting_for_a_trigger(dpkg):
    """Its files interest another package, which has not processed them yet."""
    for name, scripts in (("other", {"triggers": "interest-await /etc/haproxy.cfg\n"}), ("haproxy", {})):
        archive = dpkg.package(name, **scripts)
        assert dpkg.run("--no-triggers", "--install", archive).returncode == 0


def named(value):
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(
    "bring_about, state, missing, to_fetch",
    [
        (installed, "install ok installed", False, False),
        (held, "hold ok installed", False, False),
        (deselected, "deinstall ok installed", False, False),
        (waiting_for_a_trigger, "install ok triggers-awaited", False, False),
        (removed, "deinstall ok config-files", True, True),
        (removed_and_held, "hold ok config-files", True, True),
        (purged, "unknown ok not-installed", True, True),
        (held_before_it_came, "hold ok not-installed", True, True),
        (unpacked, "install ok unpacked", True, False),
        (refused_by_its_own_script, "install ok half-configured", True, False),
        (killed_while_it_configured, "install ok half-configured", True, False),
        (killed_while_it_unpacked, "install reinstreq half-installed", True, True),
    ],
    ids=named,
)
def test_a_package_is_missing_unless_dpkg_has_configured_it(dpkg, bring_about, state, missing, to_fetch):
    bring_about(dpkg)
    found = dpkg.read("haproxy")
    assert dpkg.state("haproxy") == state
    assert (found.missing, found.to_fetch) == (["haproxy"] * missing, ["haproxy"] * to_fetch)


UNHOLD = "run `apt-mark unhold haproxy`."


@pytest.mark.parametrize(
    "bring_about, sentence",
    [
        (held_before_it_came, f"haproxy is not installed and on hold, so that apt refuses it: {UNHOLD}"),
        (removed_and_held, f"haproxy is not installed and on hold, so that apt refuses it: {UNHOLD}"),
        (
            killed_while_it_unpacked,
            "haproxy is half-installed, because dpkg was interrupted: run `apt-get install --reinstall haproxy`.",
        ),
        (held, None),
        (removed, None),
        (unpacked, None),
        (unpacked_and_held, None),
        (refused_by_its_own_script, None),
    ],
    ids=named,
)
def test_what_apt_would_not_install_has_a_sentence_with_its_mend(dpkg, bring_about, sentence):
    bring_about(dpkg)
    assert dpkg.read("haproxy").uninstallable == ({"haproxy": sentence} if sentence else {})


@pytest.mark.parametrize(
    "bring_about, refused",
    [(held, True), (installed, False), (held_before_it_came, False), (removed_and_held, False)],
    ids=named,
)
def test_what_apt_would_not_remove_has_a_sentence_with_its_mend(dpkg, bring_about, refused):
    bring_about(dpkg)
    sentence = f"haproxy is on hold, so that apt refuses to remove it: {UNHOLD}"
    assert dpkg.read("haproxy").unremovable == ({"haproxy": sentence} if refused else {})


def test_with_an_interrupted_dpkg_apt_neither_installs_nor_removes_anything(dpkg):
    dpkg.run("--install", dpkg.package("keepalived"))
    killed_while_it_configured(dpkg)
    found = dpkg.read("haproxy", "keepalived")
    assert found.uninstallable == {"haproxy": dpkg_module.INTERRUPTED}
    assert found.unremovable == dict.fromkeys(["haproxy", "keepalived"], dpkg_module.INTERRUPTED)


def test_where_nothing_is_missing_an_interrupted_dpkg_is_no_obstacle(dpkg):
    installed(dpkg)
    dpkg.run("--install", dpkg.package("other", postinst=KILL))
    assert dpkg.read("haproxy").hindrance == dpkg_module.INTERRUPTED and dpkg.read("haproxy").uninstallable == {}


@pytest.fixture
def at_work(dpkg, tmp_path):
    """A dpkg that configures a package until a file is there."""
    go_on = tmp_path / "go on"
    postinst = f"#!/bin/sh\nuntil [ -e '{go_on}' ]; do sleep 0.05; done\n"
    archive = dpkg.package("haproxy", postinst=postinst)
    with ThreadPoolExecutor() as pool:
        ends = pool.submit(dpkg.run, "--install", archive)
        try:
            waiting.until(lambda: dpkg.journal() and dpkg_module.locked())
            yield go_on
        finally:
            go_on.touch()
        assert ends.result().returncode == 0


def test_a_dpkg_that_is_at_work_is_waited_for(dpkg, at_work, monkeypatch):
    pause = time.sleep
    monkeypatch.setattr(dpkg_module.time, "sleep", lambda seconds: (at_work.touch(), pause(seconds)))
    found = dpkg.read("haproxy")
    assert (found.hindrance, found.missing) == ("", [])


def test_it_is_not_waited_for_without_end_and_is_named(dpkg, at_work, monkeypatch):
    monkeypatch.setattr(dpkg_module, "WAIT", 0.0)
    assert re.fullmatch(LOCKED_BY.format(dpkg.database, "dpkg"), dpkg.read("haproxy").hindrance)


@contextlib.contextmanager
def locked(dpkg):
    """Another process that has locked the database, as apt does, and has begun nothing."""
    script = "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, 2); print(flush=True); input()"
    command = [sys.executable, "-c", script, str(dpkg.database / "lock-frontend")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_whoever_has_locked_the_database_is_named_before_a_package_is_removed(dpkg):
    installed(dpkg)
    with locked(dpkg) as process:
        found = dpkg.read("haproxy")
    assert re.fullmatch(LOCKED_BY.format(dpkg.database, "python.*"), found.unremovable["haproxy"])
    assert f"(process {process.pid})" in found.hindrance and found.uninstallable == {}


def test_whoever_has_locked_the_database_is_waited_for_before_a_package_is_installed(dpkg, monkeypatch):
    looks = []
    with locked(dpkg) as process:
        monkeypatch.setattr(dpkg_module.time, "sleep", lambda _: (looks.append(1), process.kill(), process.wait()))
        assert dpkg.read("haproxy").uninstallable == {} and looks == [1]


def test_whoever_keeps_the_database_locked_is_named_before_a_package_is_installed(dpkg, monkeypatch):
    monkeypatch.setattr(dpkg_module, "WAIT", 0.0)
    with locked(dpkg) as process:
        assert f"(process {process.pid})" in dpkg.read("haproxy").uninstallable["haproxy"]


def test_a_process_of_another_container_is_said_to_be_another_one():
    assert dpkg_module.LOCKED.format("x", dpkg_module._named(0)).startswith("x is locked by another process, so that")


def test_a_dpkg_that_is_only_a_tool_interrupts_nobody(dpkg):
    killed_while_it_configured(dpkg)
    programs = Programs({"rpm": "haproxy install ok installed\n"})
    assert not Reader(programs.run, programs.find).packages(["haproxy", "keepalived"]).hindrance


def test_a_package_of_two_architectures_is_installed_if_one_of_them_is():
    lines = ["haproxy install ok installed", "haproxy deinstall ok config-files"]
    for output in ("\n".join(lines), "\n".join(reversed(lines))):
        assert packages.read(["haproxy"], [output]).missing == []


def test_without_packages_to_look_for_no_program_is_run():
    programs = Programs({"dpkg-query": ""})
    assert Reader(programs.run, programs.find).packages([]).states == {} and programs.ran == []


@pytest.mark.parametrize("bring_about", [held, installed, unpacked], ids=named)
def test_where_nothing_is_to_be_fetched_no_source_is_tried(dpkg, monkeypatch, bring_about):
    bring_about(dpkg)
    monkeypatch.setattr(facts, "any_reachable", lambda *_asked: pytest.fail("a source was tried"))
    assert Reader(None, {"apt-get": "/usr/bin/apt-get"}.get).unobtainable(dpkg.read("haproxy").to_fetch) == ""
