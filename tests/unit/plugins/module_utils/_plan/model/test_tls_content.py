# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates whose text is in the inventory: what is refused, which file each gets, and who sees the text."""

from __future__ import annotations

import hashlib
import json
import re
import time

import pytest
from ansible_collections.onprem.lb.plugins.filter import plan as filters
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import certificates
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import reading
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy, tls_content
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import read_services
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.certificates import certificate_text
from support.plans.pairs import pair
from support.rendering import haproxy as rendered
from support.rendering import haproxy_model

WEB, SHOP = certificate_text(), certificate_text("shop")
CHAIN, KEY = (f"-----BEGIN {part}" for part in WEB.split("-----BEGIN ")[1:])
OTHERS_KEY = f"-----BEGIN {SHOP.split('-----BEGIN ')[2]}"
NOT_LEGIBLE = CHAIN.replace("MII", "XXX", 1) + KEY
UNREADABLE = "OpenSSL cannot read it or its private key: keep each line of PEM as it was issued."
PLACE = "haproxy_services[0] (web).tls"
SECRET = KEY.splitlines()[1]


def service(content, **tls):
    return {"name": "web", "port": 443, "servers": ["192.0.2.31"], "tls": {"content": content, **tls}}


def faults(given):
    return haproxy.model(haproxy.settings_of({"services": [given]}), [], "lb1")["faults"]


@pytest.mark.parametrize(
    "content, sentence",
    [
        ("", "a secret (text): there is no certificate in it (PEM)."),
        ("/etc/ssl/web.pem", "a secret (text): there is no certificate in it (PEM)."),
        ("{{ vault_web }}", "a secret (text): there is no certificate in it (PEM)."),
        (KEY, "a secret (text): there is no certificate in it (PEM)."),
        (CHAIN, "a secret (text): there is no private key in it (PEM)."),
        (WEB.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), "a secret (text): its private key is encrypted"),
        (CHAIN + OTHERS_KEY, "a secret (text): the private key in it belongs to another certificate."),
        (NOT_LEGIBLE, f"a secret (text): {UNREADABLE}"),
        (WEB.replace("\n", " "), f"a secret (text): {UNREADABLE}"),
        (f"'{WEB}", f"a secret (text): {UNREADABLE}"),
        (f"{WEB}\0", "a secret (text): there is a character that no file can have"),
        (f"\ud800{WEB}", "a secret (text): there is a character that no file can have"),
        (5, "a secret (a number): the text of a certificate, its chain and its private key is required (PEM)."),
        ({"pem": WEB}, "a secret (a mapping): the text of a certificate"),
        ([WEB, None], "a secret (a list): in text 2 of 2, the text of a certificate"),
        ([WEB, CHAIN], "a secret (a list): in text 2 of 2, there is no private key in it (PEM)."),
        ([WEB, WEB], "a secret (a list): a certificate is there twice: give each once."),
        ([WEB, f"\n{WEB.strip()}"], "a secret (a list): a certificate is there twice: give each once."),
    ],
)
def test_a_text_that_haproxy_could_not_show_is_refused_in_one_sentence_without_it(content, sentence):
    (fault,) = faults(service(content))
    assert fault.startswith(f"{PLACE}.content is {sentence}")
    assert SECRET not in fault


@pytest.mark.parametrize("content", [None, []])
def test_without_any_certificate_both_keys_are_named(content):
    assert faults(service(content)) == [f"{PLACE} lacks 'certificate': add it, or content."]


def test_one_text_in_place_of_a_file_and_of_its_key():
    both = faults(service(WEB, certificate="/etc/ssl/web.pem"))
    assert both == [f"{PLACE}.certificate and content are both set: leave one of them out."]
    (of_key,) = faults(service(WEB, key="/etc/ssl/web.key"))
    assert of_key == f"{PLACE}.key is /etc/ssl/web.key, and content has the key: leave key out."


@pytest.mark.parametrize("key", ["certificate", "ca", "alpn", "profile", "cert", "redirect"])
@pytest.mark.parametrize("wrong", [KEY + CHAIN, [KEY + CHAIN]])
def test_a_key_in_the_wrong_place_is_repeated_in_no_sentence(key, wrong):
    found = faults(service(None, **{"certificate": "/etc/ssl/web.pem", key: wrong}))
    assert found
    assert not any(line in fault for fault in found for line in KEY.splitlines()[1:-1])


def test_each_text_gets_a_file_that_is_named_by_its_checksum():
    model = haproxy_model([service([WEB, f"\n{SHOP.strip()}"])])
    assert model["faults"] == []
    assert [each["content"] for each in model["certificates"]] == [WEB, SHOP]
    for each in model["certificates"]:
        checksum = hashlib.sha256(each["content"].encode()).hexdigest()
        assert each["path"] == f"/etc/onprem-lb-certificates/web-{checksum[:16]}.pem"
        assert (each["mode"], each["diff"]) == ("0600", False)
    (bind,) = re.findall(r"bind \*:443 .*", rendered([service([WEB, SHOP])]))
    assert re.findall(r"crt (\S+)", bind) == [each["path"] for each in model["certificates"]]


def test_the_text_is_a_secret_and_in_the_files_alone():
    model = haproxy_model([service(WEB)])
    assert SECRET in model["secrets"]
    assert not any("BEGIN" in line for line in model["secrets"])
    shown = {key: value for key, value in haproxy.for_template(model).items() if key not in ("certificates", "secrets")}
    assert SECRET not in json.dumps(shown)


def test_a_plan_has_the_texts_once_and_the_journal_of_drills_none():
    plan = _pair.plan(pair(services=[service([WEB, SHOP])]))
    assert plan.faults == []
    for member in as_data(plan)["members"].values():
        assert list(member["balancer"].pop("contents").values()) == [WEB, SHOP]
        assert SECRET not in json.dumps(member)


def test_a_host_is_told_when_a_text_expires_and_not_the_text():
    parameters = reading_parameters([service(WEB), {"name": "x", "tls": {"content": 5}}, 7])
    assert SECRET not in json.dumps(parameters)
    (told,) = parameters["named"]["services"][0]["tls"]["content"]
    path = haproxy_model([service(WEB)])["certificates"][0]["path"]
    assert told["path"] == path
    assert told["checksum"] == hashlib.sha256(WEB.encode()).hexdigest()
    assert told["expires"] == certificates.expires(WEB)
    assert {"path": path} in parameters["layout"]["read_files"]


def reading_parameters(services):
    (first, *_others) = pair(services=services)
    definition = {
        **dict.fromkeys(("programs", "packages", "units", "files", "read_files", "vips"), []),
        "takes_over": False,
        "take_over_variable": "",
        "prefix": "pair",
    }
    settings = {"down_file": "", "checks": [], "metrics_file": "", "listen": 0, **first["settings"]}
    configs = {"haproxy": "/etc/haproxy/haproxy.cfg", "keepalived": "/etc/keepalived/keepalived.conf"}
    return reading.parameters(definition, settings, configs, "root", "", [], [])


def test_a_forecast_says_that_a_text_has_expired(monkeypatch):
    def lines():
        members = [
            {**each, "members": ["lb1", "lb2"], "address": "192.0.2.11"} for each in pair(services=[service(WEB)])
        ]
        found = filters.layout_forecast(members, "pair")
        assert found["faults"] == []
        return found["lines"]

    sentence = "pair_services[0] (web).tls.content has expired: set a renewed one, or a run refuses it."
    assert sentence not in lines()
    late = certificates.expires(WEB) + 1
    monkeypatch.setattr(time, "time", lambda: late)
    assert lines().count(sentence) == 1


def test_the_agent_names_the_other_engine():
    fault, *_others = _pair.plan(pair(services=[service(WEB)], engine="agent")).faults
    assert "(web).tls is set, and the agent relays TLS as it comes" in fault


def test_what_is_renewed_elsewhere_is_what_haproxy_reads_but_for_the_files_of_a_run():
    named = {"certificate": ["/a 100%.pem", "/folder/"], "ca": "/ca.pem", "crl": "/crl.pem"}
    tls = [named, {"content": WEB}, None, {"certificate": "/ca.pem"}]
    services = [
        {"name": f"s{at}", "port": 443 + at, "servers": ["192.0.2.31"], "tls": each} for at, each in enumerate(tls)
    ]
    found, faults = read_services(services, "services")
    assert faults == []
    assert tls_content.renewed_elsewhere(found) == ["/a 100%.pem", "/folder/", "/ca.pem", "/crl.pem"]
