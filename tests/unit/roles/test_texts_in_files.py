# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever text a variable has, it is refused in a sentence, or the program reads the same text back from its file.

Each example gives every text variable of a role a random value. A value that the model refuses is replaced by an
ordinary one, and the rest is rendered, shown to the real program, and read back.
"""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import units
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import redirect as nft_redirect
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, nft_guard
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import PROXY, Daemon
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import readers
from support.certificates import certificate
from support.marks import as_root
from support.rendering import haproxy, haproxy_model, haproxy_unit, keepalived, keepalived_model
from support.scope import FULL
from support.texts import NAME, TEXT

many = settings(
    max_examples=2000 if FULL else 50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def said(*command):
    """What a program says of a file that it refuses."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def accepted(values, ordinary, faults_of):
    """Return the values, with ordinary ones where the model refuses, which must name the variable then.

    :param faults_of: takes values for some of the variables
    """
    found = dict(ordinary)
    for name, value in values.items():
        faults = faults_of({**ordinary, name: value})
        assert not faults or any(fault.startswith(name.partition(":")[0]) for fault in faults), (name, faults)
        found.update({} if faults else {name: value})
    assert faults_of(found) == []
    return found


# -- haproxy

HAPROXY = {
    "haproxy_stats_user": TEXT.map(lambda text: f"u{text}"),
    "haproxy_stats_password": TEXT.map(lambda text: f"Vq8{text}"),
    "haproxy_stats_uri": TEXT.map(lambda text: f"/{text}"),
    "haproxy_stats_address": TEXT.map(lambda text: f"::1{text}"),
    "haproxy_metrics_path": TEXT.map(lambda text: f"/m{text}"),
    "haproxy_log_targets": TEXT.map(lambda text: [f"/dev/{text} local0"]),
    "haproxy_timeout_client": TEXT.map(lambda text: f"5s{text}"),
    "haproxy_hard_stop_after": TEXT.map(lambda text: f"5{text}s"),
    "haproxy_global_lines": TEXT.map(lambda text: [f"# {text}"]),
    "haproxy_defaults_lines": TEXT.map(lambda text: [f"# {text}"]),
    "haproxy_extra_lines": TEXT.map(lambda text: [f"# {text}"]),
    "haproxy_services:name": TEXT.map(lambda text: f"s{text}"),
    "haproxy_services:bind": TEXT.map(lambda text: f"127.0.0.1{text}"),
    "haproxy_services:server": TEXT.map(lambda text: f"r{text}"),
    "haproxy_services:address": TEXT.map(lambda text: f"fd00::1{text}"),
    "haproxy_services:option": TEXT.map(lambda text: f"cookie {shlex.quote(f'c{text}')}"),
    "haproxy_services:path": TEXT.map(lambda text: f"/{text}"),
    "haproxy_services:host": TEXT.map(lambda text: f"h{text}"),
    "haproxy_services:ca": NAME.map(lambda text: f"ca{text}"),
    "haproxy_services:certificate": NAME.map(lambda text: f"own{text}"),
    "haproxy_services:bind_option": TEXT.map(lambda text: f"name {shlex.quote(f'n{text}')}"),
    "haproxy_services:frontend_lines": TEXT.map(lambda text: [f"# {text}"]),
    "haproxy_services:backend_lines": TEXT.map(lambda text: [f"# {text}"]),
    "haproxy_monitors:name": TEXT.map(lambda text: f"m{text}"),
    "haproxy_monitors:path": TEXT.map(lambda text: f"/{text}"),
}
HAPROXY_ORDINARY = {
    "haproxy_stats_user": "ops",
    "haproxy_stats_password": "Vq8",
    "haproxy_services:name": "web",
    "haproxy_services:bind": "*",
    "haproxy_services:server": "one",
    "haproxy_services:address": "192.0.2.31",
    "haproxy_services:option": "cookie one",
    "haproxy_services:path": "/healthz",
    "haproxy_services:host": "web.example",
    "haproxy_services:ca": "ca.pem",
    "haproxy_services:certificate": "own.pem",
    "haproxy_services:bind_option": "name n",
    "haproxy_monitors:name": "ready",
    "haproxy_monitors:path": "/ready",
}


SEND = ("http-check", "send", "meth", "GET", "uri")


def of_haproxy(values, folder):
    """Return the role's variables for some values."""
    item = {key: value for key, value in values.items() if ":" in key}
    service = {key.partition(":")[2]: value for key, value in item.items() if key.startswith("haproxy_services")}
    ca = f"{folder}/{service.pop('ca')}"
    check = {"type": "https", "verify": True, "path": service.pop("path"), "host": service.pop("host"), "ca": ca}
    server = {"name": service.pop("server"), "address": service.pop("address"), "options": [service.pop("option")]}
    certificate = f"{folder}/{service.pop('certificate')}"
    service["tls"] = {"certificate": [certificate], "profile": "none"}
    service["bind_options"] = [service.pop("bind_option")]
    monitor = {"name": values["haproxy_monitors:name"], "path": values["haproxy_monitors:path"], "port": 9444}
    return {
        "services": [{**service, "port": 443, "servers": [server], "check": check}],
        "monitors": [monitor],
        **{key: value for key, value in values.items() if key not in item},
    }


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The text of a certificate with its key."""
    return certificate(tmp_path_factory.mktemp("authority"), "ca").read_text()


@many
@given(values=st.fixed_dictionaries(HAPROXY))
def test_haproxy_reads_back_what_the_user_wrote(values, authority, tmp_path):
    found = accepted(values, HAPROXY_ORDINARY, lambda each: haproxy_model(**of_haproxy(each, tmp_path))["faults"])
    file, ca = tmp_path / "haproxy.cfg", tmp_path / found["haproxy_services:ca"]
    own = tmp_path / found["haproxy_services:certificate"]
    for each in (ca, own):
        each.write_text(authority)
    file.write_text(haproxy(**of_haproxy(found, tmp_path)))
    assert said("haproxy", "-c", "-f", str(file)) == ""
    ca.unlink()
    own.unlink()
    lines = readers.haproxy_cfg(file.read_text())
    host, server, at, option = (found[f"haproxy_services:{key}"] for key in ("host", "server", "address", "option"))
    wanted = [
        ["user", found["haproxy_stats_user"], "insecure-password", found["haproxy_stats_password"]],
        ["stats", "uri", found.get("haproxy_stats_uri", "/haproxy_stats")],
        ["frontend", found["haproxy_services:name"]],
        ["listen", found["haproxy_monitors:name"]],
        ["monitor-uri", found["haproxy_monitors:path"]],
        [*SEND, found["haproxy_services:path"], "ver", "HTTP/1.1", "hdr", "Host", host],
        ["server", server, f"[{at.lower()}]:443" if ":" in at else f"{at}:443", "weight", "1", *shlex.split(option)],
        ["timeout", "client", found.get("haproxy_timeout_client", "1m")],
        ["hard-stop-after", found.get("haproxy_hard_stop_after", "1h")],
    ]
    assert [line for line in wanted if line not in lines] == []
    bound = next(line for line in lines if line[0] == "bind" and line[1].endswith(":443"))
    of_tls = ["ssl", "crt", str(own), *shlex.split(found["haproxy_services:bind_option"])]
    assert [word for word in bound[2:] if word != "v6only"] == of_tls
    assert len(lines) == len(readers.haproxy_cfg(haproxy(**of_haproxy(HAPROXY_ORDINARY, tmp_path))))
    metrics = found.get("haproxy_metrics_path", "/metrics")
    assert ["http-request", "use-service", "prometheus-exporter", "if", "{", "path", metrics, "}"] in lines
    checked, in_fallback = [line for line in lines if line[:2] == ["default-server", "check"]]
    assert str(ca) in checked and str(ca) in in_fallback


# -- keepalived

KEEPALIVED = {
    "keepalived_router_id": TEXT,
    "keepalived_startup_delay": TEXT.map(lambda text: f"5{text}"),
    "keepalived_script_user": TEXT.map(lambda text: f"root {text}"),
    "keepalived_global_lines": TEXT.map(lambda text: [f"# {text}"]),
    "keepalived_extra_lines": TEXT.map(lambda text: [f"! {text}"]),
    "keepalived_auth_pass": TEXT,
    "keepalived_scripts:name": TEXT.map(lambda text: f"s{text}"),
    "keepalived_scripts:command": TEXT.map(lambda text: f"/usr/bin/true {text}"),
    "keepalived_track_files:path": TEXT.map(lambda text: f"/run/{text}"),
    "keepalived_instances:name": TEXT.map(lambda text: f"v{text}"),
    "keepalived_instances:interface": TEXT.map(lambda text: f"e{text}"),
    "keepalived_instances:address": TEXT.map(lambda text: f"192.0.2.10{text}"),
    "keepalived_instances:peer": TEXT.map(lambda text: f"192.0.2.2{text}"),
    "keepalived_instances:notify": TEXT.map(lambda text: f"/usr/bin/true {text}"),
    "keepalived_instances:lines": TEXT.map(lambda text: [f"# {text}"]),
}
KEEPALIVED_ORDINARY = {
    "keepalived_router_id": "lb1",
    "keepalived_auth_pass": "0f3a9c1e",
    "keepalived_scripts:name": "alive",
    "keepalived_scripts:command": "/usr/bin/true",
    "keepalived_track_files:path": "/run/haproxy.down",
    "keepalived_instances:name": "vip",
    "keepalived_instances:interface": "eth77",
    "keepalived_instances:address": "192.0.2.10/24",
    "keepalived_instances:peer": "192.0.2.2",
    "keepalived_instances:notify": "/usr/bin/true",
}


def of_keepalived(values):
    """Return the role's settings for some values, and its other variables. The interface need not be there."""
    item = {key.partition(":")[2]: value for key, value in values.items() if key.startswith("keepalived_instances")}
    script = {key.partition(":")[2]: value for key, value in values.items() if key.startswith("keepalived_scripts")}
    instance = {
        **{key: item[key] for key in ("name", "interface", "notify", "lines") if key in item},
        "vrid": 51,
        "addresses": [item["address"]],
        "peers": [item["peer"]],
        "source": "192.0.2.1",
        "track_scripts": [{"name": script["name"]}],
        "track_files": [{"name": "down"}],
    }
    files = [{"name": "down", "path": values["keepalived_track_files:path"]}]
    lists = {"instances": [instance], "scripts": [script], "track_files": files}
    others = {key: value for key, value in values.items() if ":" not in key and key != "keepalived_auth_pass"}
    others["keepalived_global_lines"] = ["dynamic_interfaces", *others.get("keepalived_global_lines", [])]
    return {**lists, "auth_pass": values["keepalived_auth_pass"]}, others


def keepalived_faults(values):
    given, others = of_keepalived(values)
    return keepalived_model(given, **others)["faults"]


@as_root
@many
@given(values=st.fixed_dictionaries(KEEPALIVED))
def test_keepalived_reads_back_what_the_user_wrote(values, tmp_path):
    found = accepted(values, KEEPALIVED_ORDINARY, keepalived_faults)
    given, others = of_keepalived(found)
    file = tmp_path / "keepalived.conf"
    file.write_text(keepalived(given, "lb1", **others))
    assert said("keepalived", "-t", "-f", str(file)) == ""
    lines = readers.keepalived_conf(file.read_text())
    name, interface, at = (found[f"keepalived_instances:{key}"] for key in ("name", "interface", "address"))
    wanted = [
        ["router_id", found["keepalived_router_id"]],
        ["vrrp_script", found["keepalived_scripts:name"], "{"],
        ["file", found["keepalived_track_files:path"]],
        ["vrrp_instance", name, "{"],
        ["interface", interface],
        [at if "/" in at else f"{at}/32", "dev", interface],
        [found["keepalived_instances:peer"]],
        *([["auth_pass", found["keepalived_auth_pass"]]] if found["keepalived_auth_pass"] else []),
    ]
    assert [line for line in wanted if line not in lines] == []
    commands = {line[0]: readers.keepalived_command(line[1]) for line in lines if line[0] in ("script", "notify")}
    for key, variable in (("script", "keepalived_scripts:command"), ("notify", "keepalived_instances:notify")):
        assert commands[key] == shlex.split(found[variable])


# -- systemd

UNITS = {
    "config_path": TEXT.map(lambda text: f"/etc/{text}"),
    "down_file": TEXT.map(lambda text: f"/run/{text}"),
    "stop_pause": TEXT.map(lambda text: f"1{text}"),
    "start_commands": TEXT.map(lambda text: [f"/usr/bin/true {text}"]),
    "stop_commands": TEXT.map(lambda text: [f"/usr/bin/{text}true x"]),
}
UNITS_ORDINARY = {"down_file": "/run/haproxy.down"}
COMMANDS = {"start_commands": ["ExecStartPost"], "stop_commands": ["ExecStop", "ExecStopPost"]}


def complaints(folder, files):
    """Return what systemd says of units; it reads them all in one run, because each run reads the whole system's.

    :param files: the unit and its drop-in, of each
    """
    for number, (unit, drop_in) in enumerate(files):
        (folder / f"{number}.service").write_text(unit)
        (folder / f"{number}.service.d").mkdir()
        (folder / f"{number}.service.d" / "onprem-lb.conf").write_text(drop_in)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--generators=no", *sorted(folder.glob("*.service"))],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    # A program that is not on this machine is no fault of the file.
    return [line for line in done.stderr.splitlines() if str(folder) in line]


def check_commands(found, service, before):
    """Compare the words of the user's commands with those that systemd reads; the shell's are the collection's own."""
    for name, directives in COMMANDS.items():
        for directive in directives:
            lines = [value for key, value in service if key == directive and "/bin/sh" not in value]
            assert all(line.startswith(before) for line in lines)
            words = [readers.exec_words(line[len(before) :]) for line in lines]
            assert words == [shlex.split(command) for command in found.get(name, [])]
    shells = [readers.exec_words(value.lstrip("-+")) for _key, value in service if "/bin/sh" in value]
    written = [shlex.split(words[2].partition(";")[0])[-1] for words in shells if words[2].startswith("echo")]
    assert set(written) == {found["down_file"]}


def test_systemd_reads_back_what_the_user_wrote_of_haproxys_unit(tmp_path):
    files = []

    def named(each):
        return {f"haproxy_{key}": value for key, value in each.items()}

    @many
    @given(values=st.fixed_dictionaries(UNITS))
    def render(values):
        found = accepted(named(values), named(UNITS_ORDINARY), lambda each: haproxy_model(**each)["faults"])
        files.append(("[Service]\nExecStart=/bin/true\n", haproxy_unit(**found)))
        service = readers.unit(files[-1][1])["Service"]
        check_commands({key[len("haproxy_") :]: value for key, value in found.items()}, service, "-")

    render()
    assert complaints(tmp_path, files) == []


def test_systemd_reads_back_what_the_user_wrote_of_the_agents_unit(tmp_path):
    files = []

    def named(each):
        return {f"agent_{key}": value for key, value in each.items()}

    def translated(each):
        service = {"name": "web", "port": 443, "servers": ["192.0.2.31"]}
        return agent.translate({"services": [service], **{key[len("agent_") :]: each[key] for key in each}})

    @many
    @given(values=st.fixed_dictionaries({key: text for key, text in UNITS.items() if key != "config_path"}))
    def render(values):
        found = accepted(named(values), named(UNITS_ORDINARY), lambda each: translated(each)["faults"])
        model = translated(found)
        assert json.loads(json.dumps(model[PROXY])) == model[PROXY]
        options = units.Options(**model["options"])
        assert units.option_faults(options) == []
        files.append((units.unit(Daemon(PROXY), model[PROXY], units.Paths(), options), ""))
        service = readers.unit(files[-1][0])["Service"]
        check_commands({key[len("agent_") :]: value for key, value in found.items()}, service, "-+")

    render()
    assert complaints(tmp_path, files) == []


# -- nftables


@as_root
@many
@given(network=TEXT.map(lambda text: f"fd00::{text}/64"), vip=TEXT.map(lambda text: f"fd00::1{text}"))
def test_nft_reads_back_what_the_user_wrote(network, vip, tmp_path):
    rulesets = []
    if not nft_guard.faults([network], "ipi_machine_networks"):
        rulesets.append((nft_guard.ruleset([network]), 1, "saddr"))
    try:
        rulesets.append((nft_redirect.ruleset([vip], {6443: 9445}), 1, "daddr"))
    except ValueError as error:
        assert str(error).startswith("The redirect's VIP")
    for text, rules, key in rulesets:
        file = tmp_path / "rules.nft"
        file.write_text(text)
        assert said("nft", "--check", "--file", str(file)) == ""
        assert sum(f"ip6 {key} fd00::" in line for line in text.splitlines()) == rules
        assert len(text.splitlines()) == len(text.split("\n")) - 1
