# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.filter.imported import imported_inventory
from ansible_collections.onprem.lb.plugins.module_utils._plan.imported import inventory
from support.documents import fenced
from support.inventories import Inventory
from support.paths import DOCS

from .tools import slurped

HERE = Path(__file__).parent
WEB = "listen web\n bind :80\n server one 192.0.2.31:80 check\n"


def of_host(name, *files):
    return {"name": name, "address": "192.0.2.11", "files": [*files]}


def test_the_page_shows_what_is_printed():
    cfg = (HERE / "configurations" / "userlist.cfg").read_text()
    conf = (HERE / "routers" / "tutorial.lb1.conf").read_text()
    (shown,) = [block for block in fenced(DOCS / "import.md") if block.code.startswith("1 VIP")]
    lines = imported_inventory([of_host("lb1", slurped("haproxy", cfg), slurped("keepalived", conf))])["lines"]
    assert [line for line in lines if line in shown.code.splitlines()] == shown.code.splitlines()


def test_without_keepalived_the_services_are_those_of_the_role():
    found = inventory.write([of_host("lb1", slurped("haproxy", WEB))], False)
    assert found.inventory["haproxy"]["hosts"] == {"lb1": {"ansible_host": "192.0.2.11"}}
    assert [each["name"] for each in found.inventory["haproxy"]["vars"]["haproxy_services"]] == ["web"]


def test_the_peers_of_a_pair_are_its_members_and_those_of_the_role_alone_are_named():
    cfg = slurped("haproxy", (HERE / "configurations" / "peers-of-tables.cfg").read_text())
    router = slurped("keepalived", (HERE / "routers" / "tutorial.lb1.conf").read_text())
    pair, alone = (inventory.write([of_host("lb1", *files)], True).inventory for files in ((cfg, router), (cfg,)))
    of_pair, of_role = pair["pair"]["vars"], alone["haproxy"]["vars"]
    assert of_pair["pair_peers_port"] == of_role["haproxy_peers_port"] == 10001
    assert [each["name"] for each in of_role["haproxy_peers"]] == ["lb1", "lb2"]
    assert not any(name.startswith("haproxy_peers") for name in of_pair)


def test_a_pair_without_a_service_has_an_empty_list_and_says_so():
    conf = (HERE / "routers" / "tutorial.lb1.conf").read_text()
    found = inventory.write([of_host("lb1", slurped("keepalived", conf))], True)
    variables = found.inventory["pair"]["vars"]
    assert variables["pair_services"] == [] and variables["keepalived_adopt"] and "haproxy_adopt" not in variables
    assert found.lines[-1] == "pair_services is empty, and a pair needs a service: write one before a run."


@pytest.mark.parametrize("file", sorted((HERE / "configurations").glob("*.cfg")), ids=lambda file: file.stem)
def test_the_forecast_of_a_pair_takes_it_unless_no_service_could_be_made(file, tmp_path):
    text = file.read_text().replace("@FOLDER@", "/etc/tls").replace("@CERTIFICATE@", "/etc/tls/site.pem")
    cfg = slurped("haproxy", text.replace("@NAME@", "other.pem"))
    routers = {name: (HERE / "routers" / f"tutorial.{name}.conf").read_text() for name in ("lb1", "lb2")}
    hosts = [{**of_host(name, cfg, slurped("keepalived", conf)), "address": name} for name, conf in routers.items()]
    made = imported_inventory(hosts)
    (tmp_path / "new.yml").write_text(made["text"])
    faults = Inventory(tmp_path / "new.yml").plans("pair").faults
    is_empty = "pair_services is empty, and a pair needs a service: write one before a run." in made["lines"]
    assert len(faults) == is_empty and all("pair_services is empty" in fault for fault in faults)


def test_hosts_with_another_haproxy_cfg_are_named():
    files = [of_host("lb1", slurped("haproxy", WEB)), of_host("lb2", slurped("haproxy", WEB.replace(":80", ":81")))]
    said = "lb2 has another haproxy.cfg than lb1, whose is converted: compare them."
    assert said in " ".join(inventory.write(files, True).lines)
    assert said not in " ".join(inventory.write([files[0], {**files[0], "name": "lb2"}], True).lines)


def test_what_is_no_utf8_or_cannot_be_read_is_refused():
    missing = {"item": {"key": "keepalived", "value": "/etc/no.conf"}, "msg": "file not found"}
    found = imported_inventory([of_host("lb1", slurped("haproxy", b"global\n # \xe9\n", "/etc/a.cfg"), missing)])
    assert found["faults"] == [
        "lb1: /etc/a.cfg is no text in UTF-8: convert it, or take out what is not.",
        "lb1: /etc/no.conf cannot be read: name files that are there, by import_haproxy, import_keepalived or both.",
    ]


def test_what_ansible_would_evaluate_is_marked():
    text = imported_inventory([of_host("lb1", slurped("haproxy", f"{WEB} http-request set-header X '{{{{ a }}}}'\n"))])[
        "text"
    ]
    (line,) = [line for line in text.splitlines() if "{{" in line]
    assert line.strip().startswith("- !unsafe '") and yaml.compose(text)
