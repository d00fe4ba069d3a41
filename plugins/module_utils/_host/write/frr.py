# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Has FRR run a configuration: without ending a session that does not depend on the change, or not at all.

vtysh checks the file beside its place. frr-reload then changes what differs, line by line, and goes on after a line
that fails. So what FRR runs afterwards is compared with the file, and if it is something else, FRR returns to what it
ran before, and the files with it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from ..._shared.engines import FRR_UNIT
from .. import candidates, masking
from ..read import bgp, frr_text, processes
from ..read.reader import Reader
from . import files, units

DAEMONS = ("zebra", "bgpd", "bfdd")
RELOADERS = ("/usr/lib/frr/frr-reload.py", "/usr/libexec/frr/frr-reload.py")
PASSES = 3  # frr-reload deletes only half of some lines the first time, such as those of BFD
START_LIMIT, SETTLE_LIMIT = 60.0, 10.0  # seconds
PAUSE = 0.3  # seconds
SHOWN = 5  # differences in a sentence
RESTART, RELOAD = "restart", "reload"
VTYSH = bgp.VTYSH


class Frr:
    """FRR on one host. The tests have others, in network namespaces."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def running(self) -> str:
        """Return the configuration that it runs.

        :raises bgp.NoAnswer: it does not say it
        """
        return bgp.running_config(self.reader)

    def missing(self) -> List[str]:
        """Return the daemons that do not run as a part of its unit."""
        every = processes.named(DAEMONS)
        there = {each.program for each in every if each.runs_in.name == FRR_UNIT}
        return [name for name in DAEMONS if name not in there]

    def load(self, folder: str) -> str:
        """Have frr-reload load the file frr.conf in a folder, and return what it says."""
        script = next((path for path in RELOADERS if os.path.exists(path)), None)
        if script is None:
            raise files.Refused("FRR cannot load a file while it runs: install its package frr-pythontools.")
        return "".join(self.reader.run([script, *reload_options(folder)])[1:])


def reload_options(folder: str) -> List[str]:
    """Return the options with which frr-reload does all in one folder: otherwise it has FRR write /etc/frr/frr.conf."""
    return ["--reload", "--stdout", "--confdir", folder, "--rundir", folder, os.path.join(folder, "frr.conf")]


class Plan(NamedTuple):
    """What differs on a host from what is wanted.

    :ivar text: of the configuration that is wanted
    :ivar running: what FRR runs; None where it does not run
    :ivar how: restart, reload, or '' where it runs what is wanted
    """

    pending: List[files.Change]
    text: str
    running: Optional[str]
    how: str
    starts: List[units.Command]
    resets: List[str]

    @property
    def changes(self) -> bool:
        return bool(self.pending or self.how or self.starts)

    @property
    def paths(self) -> List[str]:
        return [change.path for change in self.pending]

    @property
    def steps(self) -> List[str]:
        """Return the commands, as a person would type them."""
        loads = [["frr-reload.py", "--reload"]] if self.how == RELOAD else []
        return [" ".join(command) for command in [*self.starts, *loads]]

    @property
    def diff(self) -> List[Dict[str, str]]:
        return [change.diff for change in self.pending] + [{"prepared": f"{step}\n"} for step in self.steps]


def plan(frr: Frr, wanted: Sequence[Mapping[str, Any]], set_aside: Sequence[str], text: str) -> Plan:
    """Compare a host with what is wanted.

    :param wanted: the files, as the module `frr_config` takes them
    :param text: of frr.conf
    :raises files.Refused: FRR runs and does not say what it runs
    """
    given = [{**each, "state": "present"} for each in wanted]
    pending = [*files.set_aside(set_aside), *files.changes(given)]
    found = units.read(frr.reader.run, [FRR_UNIT])[FRR_UNIT]
    restarts = found.state not in units.RUNS or bool(frr.missing())
    try:
        running: Optional[str] = frr.running()
    except bgp.NoAnswer as error:
        if not restarts:
            raise files.Refused(f"{error} Nothing was changed.") from None
        running = None
    differs = running is None or bool(frr_text.differences(text, running))
    how = RESTART if restarts else (RELOAD if differs else "")
    commands = units.reload_systemd() if units.own([each.path for each in pending]) or found.outdated else []
    commands += [] if found.enabled else [["systemctl", "enable", FRR_UNIT]]
    commands += [["systemctl", "restart", FRR_UNIT]] if how == RESTART else []
    return Plan(pending, text, running, how, commands, _resets(text, running, how))


def _resets(text: str, running: Optional[str], how: str) -> List[str]:
    """Return the peers whose sessions end: all of them where bgpd starts anew."""
    if not running or not how:
        return []
    return frr_text.resets("" if how == RESTART else text, running)


def check(planned: Plan, reader: Reader, move: candidates.Move) -> files.Checked:
    """Have vtysh check the file, and change nothing.

    :raises files.Refused: by vtysh
    """
    return files.replace_all(planned.pending, reader.find, reader.run, move, dry=True)


def carry_out(planned: Plan, frr: Frr, move: candidates.Move) -> files.Checked:
    """Do what differs.

    :raises files.Refused: before the first file is touched
    :raises units.Failed: FRR did not come to run it, and has returned to what it ran before
    """
    reader = frr.reader
    checked = files.replace_all(planned.pending, reader.find, reader.run, move, dry=False)
    said = ""
    try:
        units.take(reader.run, planned.starts)
        said = reload_into(frr, planned.text) if planned.how == RELOAD else ""
        left = until_in_force(frr, planned.text, START_LIMIT if planned.how == RESTART else SETTLE_LIMIT)
    except (units.Failed, files.Refused, bgp.NoAnswer) as error:
        left = [str(error)]
    if left:
        _return(planned, frr, move)
        raise units.Failed(f"{_failed(left, said, planned.text)} It was returned to what it ran before.")
    return checked


def take(frr: Frr, text: str) -> str:
    """Have FRR go over to the file that is in its place, and never start anew for it; return what is wrong, or ''."""
    try:
        said = reload_into(frr, text)
        left = until_in_force(frr, text, SETTLE_LIMIT)
    except (files.Refused, bgp.NoAnswer) as error:
        return str(error)
    return _failed(left, said, text) if left else ""


def _failed(left: Sequence[str], said: str, text: str) -> str:
    more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
    errors = [line.strip() for line in said.splitlines() if line.lstrip().startswith("%")]
    sentence = f"FRR does not run the new configuration: it {'; '.join(left[:SHOWN])}{more}."
    sentence += f" It says: {' '.join(errors)}." if errors else ""
    return masking.hidden(sentence, text)


def _return(planned: Plan, frr: Frr, move: candidates.Move) -> None:
    """Put the files back, and have FRR run what it ran. Whatever fails now is said by the next run."""
    with contextlib.suppress(OSError):
        files.restore(planned.pending, move)
    with contextlib.suppress(units.Failed, files.Refused, bgp.NoAnswer):
        if planned.how == RELOAD and planned.running:
            reload_into(frr, planned.running)
        elif planned.starts:
            verb = "restart" if planned.running else "stop"
            units.take(frr.reader.run, [*units.reload_systemd(), ["systemctl", verb, FRR_UNIT]])


def reload_into(frr: Frr, text: str) -> str:
    """Have FRR go over to a configuration while it runs, and return what frr-reload has said.

    :raises bgp.NoAnswer: FRR does not say what it runs
    """
    said = ""
    for _pass in range(PASSES):
        running = frr.running()
        if not frr_text.differences(text, running):
            break
        with _file_to_load(text, running) as folder:
            said += frr.load(folder)
    return said


@contextlib.contextmanager
def _file_to_load(text: str, running: str) -> Iterator[str]:
    """Write the file for frr-reload, in a folder that only root may enter, because it may have passwords."""
    folder = tempfile.mkdtemp(prefix="onprem-lb-frr-")
    try:
        carried = frr_text.carried(text, running)
        body = [line for line in text.splitlines() if not frr_text.NOT_COMMANDS.match(line)]
        with open(os.path.join(folder, "frr.conf"), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write("\n".join([*carried, *body, ""]))
        with open(os.path.join(folder, "vtysh.conf"), "w", encoding="ascii"):
            pass
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def until_in_force(frr: Frr, text: str, limit: float, sleep: Callable[[float], None] = time.sleep) -> List[str]:
    """Wait until FRR runs a configuration, and return what still differs then."""
    end = time.monotonic() + limit
    while True:
        try:
            left = frr_text.differences(text, frr.running())
        except bgp.NoAnswer as error:
            left = [f"does not answer: {error}"]
        if not left or time.monotonic() > end:
            return left
        sleep(PAUSE)
