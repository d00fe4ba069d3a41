# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a keepalived.conf is what keepalived reads, or the file is refused: as people write them."""

from __future__ import annotations

import random
import re
import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf, unread
from support.netns.links import skip_reason
from support.scope import FULL
from support.waiting import until

INSTANCES = 12  # in a file
# Of each line of an instance, in how many ways people write it. keepalived reads some of them in a way of its own.
INTERVALS = ["", "advert_int 1", "advert_int 0.5", "advert_int 1.5", "advert_int 3 # slow", "advert_int 2.255"]
PASSWORDS = [
    *(
        "plain",
        "ab!cd",
        "ab#cd",
        '"a!c#d"',
        '"a b"',
        "'ab'",
        'ab"cd"',
        '"ab"cd',
        '"a{b}"',
        "a$b",
        "longer-than-8",
        "$PW",
    ),
]
TYPES = ["PASS", "PASS", "PASS", "pass"]
BLOCKS = ["{0} {{\n {1}\n}}", "{0}\n{{\n{1} }}", "{0} {{ {1} }}", "{0}{{\n{1}}}", "{0} {{ ! first\n {1} # last\n}}"]
VERSIONS = ["", "", "version 3", "version 2"]
ODD = [
    "$PW=secret",
    "@^nobody vrrp_version 3",
    "global_defs { vrrp_version 3 }",
    "global_defs\n{\n vrrp_version 3\n}",
    "",
]
READ = {
    "vrid": re.compile(r" *Virtual Router ID = (\d+)"),
    "version": re.compile(r" *VRRP Version = (\d)"),
    "priority": re.compile(r" *Priority = (\d+)"),
    "preempt": re.compile(r" *Preempt = (\w+)"),
    "auth_pass": re.compile(r" *Password = (.*)"),
    "advert_interval": re.compile(r" *Advert interval = (\d+ (?:milli-)?sec)"),
}


def file_of(rng):
    """Return a file with instances whose lines are written in ways that are chosen at random."""
    odd = rng.choice(ODD)
    instances = (instance(rng, number) for number in range(1, INSTANCES + 1))
    return "\n".join([odd, *instances, ""])


def instance(rng, number):
    def block(name, lines):
        return rng.choice(BLOCKS).format(name, lines)

    version = rng.choice(VERSIONS)
    vips = [f"192.0.2.{100 + number}/24 dev eth0", f"192.0.2.{200 + number} label eth0:{number}"]
    vips += [f"2001:db8::{number}"] * (version != "version 2")
    secret = f"auth_type {rng.choice(TYPES)}\n auth_pass {rng.choice(PASSWORDS)}\n"
    lines = [
        "interface eth0",
        f"virtual_router_id {rng.choice(['{}', chr(34) + '{}' + chr(34), '{} ! the number']).format(number)}",
        rng.choice(["", f"priority {number}", f"priority {number}\n priority {number + 50}"]),
        version,
        rng.choice(INTERVALS),
        rng.choice(["", "nopreempt"]),
        rng.choice(["", block("authentication", secret)]),
        block("virtual_ipaddress", rng.choice(vips)),
        rng.choice(["", block("virtual_ipaddress_excluded", f"2001:db8::e:{number}/64")]),
    ]
    rng.shuffle(lines)
    return rng.choice(["vrrp_instance VI_{0} {{\n{1}\n}}", 'vrrp_instance "VI_{0}"\n{{\n{1}\n}}']).format(
        number, "\n".join(filter(None, lines))
    )


def of_keepalived(text, folder, namespace):
    """Return what keepalived says that it has read, by the instances' names."""
    (folder / "keepalived.conf").write_text(text)
    files = {"use-file": "keepalived.conf", "pid": "keepalived.pid", "vrrp_pid": "vrrp.pid"}
    options = [f"--{option}={folder / file}" for option, file in files.items()]
    program = [shutil.which("keepalived"), "--vrrp", "--dont-fork", "--log-console", "--dump-conf", *options]
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(["ip", "netns", "exec", namespace, *program], stdout=log, stderr=log)
    try:
        until(lambda: "< Interfaces >" in (folder / "log").read_text(), lambda: text + (folder / "log").read_text())
    finally:
        process.terminate()
        process.wait()
    lines = (folder / "log").read_text().splitlines()
    return of_dump([re.sub(r"^\w{3} \w{3} +\d+ [\d:]{8} \d{4}: ", "", line) for line in lines])


def of_dump(lines):
    found, name, block = {}, "", ""
    for line in lines[: next(at for at, line in enumerate(lines) if "< Interfaces >" in line)]:
        if line.startswith(" VRRP Instance = "):
            name = line.partition(" = ")[2]
            found[name] = {"auth_pass": "", "addresses": [], "excluded_addresses": []}
        elif name:
            block = line.split()[1:3] if line.startswith("   Virtual IP") else block
            _read_line(line, block == ["IP", "Excluded"], found[name])
    # keepalived may say a password that version 3 has no field for.
    return {
        name: {**each, "auth_pass": each["auth_pass"] if each["version"] == "2" else ""} for name, each in found.items()
    }


def _read_line(line, is_excluded, found):
    for key, pattern in READ.items():
        match = pattern.fullmatch(line)
        if match:
            found[key] = match[1]
    if re.match(r"     [0-9a-f.:/]+ dev ", line):
        found["excluded_addresses" if is_excluded else "addresses"].append(line.split()[0])


def as_keepalived_says_it(each):
    """Return what was read of an instance in the words of keepalived's dump."""
    seconds = each["advert_interval"]
    return {
        "vrid": str(each["vrid"]),
        "version": str(each["version"]),
        "priority": str(each["priority"]),
        "preempt": "enabled" if each["preempt"] else "disabled",
        "auth_pass": "" if each["version"] == 3 else each["auth_pass"][:8],
        "advert_interval": f"{seconds:.0f} sec" if each["version"] == 2 else f"{seconds * 1000:.0f} milli-sec",
        "addresses": each["addresses"],
        "excluded_addresses": each["excluded_addresses"],
    }


@pytest.mark.parametrize("seed", range(60 if FULL else 8))
def test_what_is_read_of_a_file_is_what_keepalived_reads_unless_the_file_is_refused(link, tmp_path, seed):
    if skip_reason("keepalived"):
        pytest.skip(skip_reason("keepalived"))
    text = file_of(random.Random(seed))
    refused = [*unread.unread(text)]
    assert refused or not re.search(r"^[$@]", text, re.MULTILINE), "what only keepalived evaluates is refused"
    if not refused:
        read = {each["name"]: as_keepalived_says_it(each) for each in conf.instances(text)}
        assert read == of_keepalived(text, tmp_path, link.lb1.namespace), text
