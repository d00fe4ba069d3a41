# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a run asks of a member's states: save and arm, list, restore, hand over for a backup, take from one."""

from __future__ import annotations

import shutil
import time
from typing import Any, Dict, List, NamedTuple

from ..._shared import resolver_records
from ..._shared.resolver_records import Answering
from .. import records
from ..firewall.system import Host
from ..read import resolver
from ..read.reader import Reader, Run
from . import (
    arming,
    changes,
    fallback_unit,
    keeping,
    meanwhile,
    program,
    restoring,
    serving,
    snapshot,
    state_data,
    store,
    undo,
    undoing,
)
from .arming import Due
from .snapshot import Snapshot

LOOPBACK = "127.0.0.1"
PROOFS, PAUSE = 20, 0.5  # looks at a resolver that starts, and seconds between two of them


class Member(NamedTuple):
    """The member on which a module runs."""

    run: Run
    firewall: Host
    configs: Dict[str, str]
    interfaces: List[str]

    def now(self) -> Snapshot:
        """Return its state as it is, with its openings.

        :raises restoring.Failed: if its firewall cannot be read
        """
        openings = restoring.current_openings(self.firewall)
        return snapshot.take(self.run, self.configs, openings, self.interfaces)


def arm(member: Member, wanted: Due, purpose: str, kept: str = "") -> None:
    """Save the state as it is, and arm the return to it. After an interrupted run it is the state before that one.

    :param kept: as `store.save` takes it
    :raises arming.Refused, restoring.Failed, store.Refused: nothing is armed
    """
    target = arming.target(wanted)
    now = member.now()
    store.save(store.State(wanted.run, purpose, now._replace(served=_served(now, member.run))), kept)
    arming.arm(member.run, wanted._replace(id=target), program.build())


def _served(now: Snapshot, run: Run) -> List[str]:
    """Return the VIPs that a member serves by BGP for certain."""
    if not now.announces:
        return []
    reader = Reader(run, lambda name: shutil.which(name, path=restoring.PATH))
    return serving.certain(now, undo.see(now, reader))


def hold_back(member: Member) -> None:
    """Have the member start its router by itself once nobody holds its VIPs, while a switchover holds it back.

    :raises arming.Refused: if that is impossible
    """
    arming.write_file(fallback_unit.PROGRAM, program.build("fallback"), 0o700)
    failed = fallback_unit.begin(member.run, member.configs)
    if failed:
        raise arming.Refused(" ".join(failed))


def listed(member: Member) -> Dict[str, Any]:
    """Return the saved states, oldest first, each compared with the present, and a sentence for each damaged one."""
    now = member.now()
    serves = _served(now, member.run)
    states, damaged = [], {}
    for each in store.ids():
        try:
            states.append(_compared(store.load(each), now, serves))
        except store.Refused as refused:
            damaged[each] = str(refused)
    return {"states": states, "damaged": damaged}


def _compared(state: store.State, now: Snapshot, serves: List[str]) -> Dict[str, Any]:
    files = changes.of_files(now, state.saved).paths
    return {
        "id": state.id,
        "purpose": state.purpose,
        "backup": state.backup,
        "engine": state.saved.engine,
        "is_present": state.saved.digest == now.digest and not {*snapshot.NAMES} & {*files},
        "files": files,
        "keeps_names": changes.keeps_names(now, state.saved),
        "changes_link": snapshot.on_the_link(state.saved.instances) != snapshot.on_the_link(now.instances),
        "unicast": {key: snapshot.unicast(each.instances) for key, each in (("now", now), ("then", state.saved))},
        "could_serve": state.saved.could_serve,
        "reach": {"now": now.reach, "then": state.saved.reach},
        "announced": serving.compared(state.saved, serves),
        "settle": undoing.settle([*state.saved.instances, *now.instances]),
    }


def exported(member: Member) -> Dict[str, Any]:
    """Return the state as it is, as data for a backup. It has passwords."""
    return state_data.as_data(member.now())


def imported(member: Member, data: Dict[str, Any], wanted: str, backup: str, dry: bool) -> Dict[str, Any]:
    """Save the state that a backup has of this member; return it, compared with the present.

    :param data: as `exported` returned it
    :param wanted: the ID of the state here
    :param backup: the ID of the backup
    :raises store.Refused: if the data are no state of a member
    """
    state = store.State(wanted, "a backup", store.judged(data, member.configs), backup)
    if not dry:
        store.save(state)
    now = member.now()
    return _compared(state, now, _served(now, member.run))


def name(member: Member, wanted: str, alone: bool) -> Dict[str, Any]:
    """Have the resolver answer the addresses of a state, and prove that it does; return as `restore`.

    :param alone: False while the VIPs of now may be held as well: a name has both addresses then
    :raises store.Refused: there is no such state
    """
    then, now = store.load(wanted).saved, member.now()
    if changes.keeps_names(now, then):
        return {"paths": [], "commands": [], "failed": []}
    before, after = _answering(now), _answering(then)
    way = resolver_records.on_the_way(before, after)
    todo = after if alone else Answering(way.config, way.names)
    texts = {path: text.encode() for path, text, old in zip(snapshot.NAMES, todo, before) if text != old}
    files = [file._replace(content=texts.get(file.path, file.content)) for file in now.files]
    records.note_written(texts)
    restoring.files(now, now._replace(files=files))
    done: List[str] = []
    failed = restoring.commands(member.run, changes.of_names([*texts]), done.append)
    failed += _unproved(todo) if texts else []
    return {"paths": [*texts], "commands": done, "failed": failed}


def _answering(state: Snapshot) -> Answering:
    texts = {file.path: file.content.decode(errors="replace") for file in state.files}
    return Answering(*(texts.get(path, "") for path in snapshot.NAMES))


def _unproved(wanted: Answering) -> List[str]:
    """Return what the resolver does not answer as wanted, once it has had the time to start."""
    server, wrong = resolver_records.server(wanted.config) or LOOPBACK, []  # type: str, List[str]
    for _try in range(PROOFS):
        wrong = resolver.wrong_answers(server, resolver_records.questions(resolver_records.addresses(wanted)))
        if not wrong:
            break
        time.sleep(PAUSE)
    return wrong


def restore(member: Member, wanted: str, dry: bool) -> Dict[str, Any]:
    """Return to a state at once; return the paths that changed, and what failed.

    What the resolver answers stays: others may hold the VIPs of now until they have returned as well; see `name`.

    :raises store.Refused: there is no such state
    """
    now = member.now()
    then = keeping.with_files(now, store.load(wanted).saved, snapshot.NAMES)
    changed = changes.of_files(now, then).paths
    if dry:
        units, routers = changes.of_units(now, then, changed), changes.of_routers(now, then, changed)
        todo = [*changes.before_files(now, then), *units, *routers]
        return {"paths": changed, "commands": [" ".join(each) for each in todo], "failed": []}
    done: List[str] = []
    failed: List[str] = []
    for step in meanwhile.steps(now, then):
        failed += _restore(member, step, done)
    failed += fallback_unit.begin(member.run, member.configs)
    return {"paths": changed, "commands": done, "failed": failed}


def _restore(member: Member, then: Snapshot, done: List[str]) -> List[str]:
    """Bring a member to one step of its way back; return what failed.

    :param done: gets the commands
    """
    now = member.now()
    failed = restoring.commands(member.run, changes.before_files(now, then), done.append)
    todo = changes.of_files(now, then)
    records.note_written({file.path: file.content for file in todo.write})
    restoring.files(now, then)
    opens = {*now.openings} < {*then.openings}
    if opens:  # before anybody is led there
        restoring.openings(member.firewall, then)
    failed += restoring.commands(member.run, changes.of_units(now, then, todo.paths), done.append)
    if not opens:
        restoring.openings(member.firewall, then)
    return failed + restoring.commands(member.run, changes.of_routers(now, then, todo.paths), done.append)
