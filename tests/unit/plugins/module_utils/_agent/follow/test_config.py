# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of follow: what is read, and the sentence for each fault."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import config
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow.settings import (
    Api,
    Haproxy,
    Nodes,
    Proxy,
    Settings,
    Target,
)

URL = "https://127.0.0.1:6443"
LEAST = {"api": {"servers": [URL]}, "haproxy": {"backends": [{"name": "masters"}]}}


def faults(**changes):
    found, wrong = config.parse(json.dumps({**LEAST, **changes}))
    assert found is None
    return wrong


def api(**changes):
    return faults(api={"servers": [URL], **changes})


def test_the_least_configuration_has_the_defaults_of_the_settings():
    found, wrong = config.parse(json.dumps(LEAST))
    assert wrong == []
    assert found == Settings(Api((URL,)), haproxy=Haproxy((Target("masters"),)))


def test_all_of_it_is_read():
    whole = {
        "api": {"servers": [URL], "ca": "/ca", "certificate": "/c", "key": "/k", "server_name": "api", "timeout": 2},
        "nodes": {
            "label": "a=b,!c",
            "families": ["ipv6", "ipv4"],
            "networks": ["10.0.0.0/16"],
            "of_several": "last",
            "vips": ["10.0.0.200"],
            "balancers": ["10.0.0.201"],
            "not_ready_for": 0.5,
        },
        "proxy": {
            "services": [{"name": "api", "port": 6443, "label": "role=x"}],
            "config": "/p.json",
            "socket": "/p.sock",
        },
        "haproxy": {"backends": [{"name": "m", "options": "weight 9"}], "reload": "/bin/systemctl reload haproxy"},
        "drain_for": 7,
        "state_file": "/s",
        "status_socket": "/t",
    }
    found, wrong = config.parse(json.dumps(whole))
    assert wrong == []
    assert found == Settings(
        Api((URL,), "/ca", "/c", "/k", "", "api", 2_000_000),
        Nodes("a=b,!c", ("ipv6", "ipv4"), ("10.0.0.0/16",), "last", ("10.0.0.200",), ("10.0.0.201",), 500_000),
        Haproxy((Target("m", 0, "weight 9"),), reload=("/bin/systemctl", "reload", "haproxy")),
        Proxy((Target("api", 6443, label="role=x"),), "/p.json", "/p.sock"),
        7_000_000,
        "/s",
        "/t",
    )


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:6443", "127.0.0.1:6443", "https://", "https://a:0", "https://a:x", "https://a b", 7]
)
def test_a_url_is_https(url):
    (sentence,) = api(servers=[url])
    assert sentence.endswith("the URL of an API server is required, such as https://127.0.0.1:6443.")


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"certificate": "/c", "token": "/t"}, "api.certificate and api.token are both set: leave one of them out."),
        ({"key": "/k"}, "api.key is set, but no api.certificate: name the certificate that the key belongs to."),
        ({"token": "eyJhb.Gci.Oi"}, "api.token is a secret (text): an absolute path is required."),
        ({"certificate": "c"}, "api.certificate is 'c': an absolute path is required."),
        ({"tokn": "/t"}, "api has the unknown key 'tokn': did you mean 'token'?"),
    ],
)
def test_credentials_are_one_set_of_paths(given, sentence):
    assert api(**given) == [sentence]


def test_an_exec_plugin_is_refused_with_what_to_use():
    (sentence,) = api(exec={"command": "aws"})
    assert sentence.startswith("api.exec is a mapping: no program is run for credentials.")
    assert "api.token" in sentence and "api.certificate" in sentence


YAML = "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://x:6443\nusers: []\n"
JSON = '{"apiVersion": "v1", "clusters": [], "users": [{"user": {"token": "geheim"}}]}'


@pytest.mark.parametrize("text", [YAML, JSON, JSON.replace(", ", ",\n ")])
def test_a_kubeconfig_is_refused_with_what_to_use(text):
    (sentence,) = config.parse(text, "/etc/kubeconfig")[1]
    assert sentence.startswith("/etc/kubeconfig is a kubeconfig, which the agent does not read: write the URLs of ")
    assert "geheim" not in sentence


def test_something_must_follow():
    found, wrong = config.parse(json.dumps({"api": {"servers": [URL]}}))
    assert wrong == [
        "configuration has neither 'haproxy' nor 'proxy': add the balancer that is to follow, or 'hosts', a file of "
        "names."
    ]


def test_an_api_is_needed():
    assert config.parse(json.dumps({"haproxy": LEAST["haproxy"]}))[1] == ["configuration lacks 'api': add it."]


@pytest.mark.parametrize("options", ["weight 1 # no", "a; b", 'a "b', "a\nserver b 192.0.2.1"])
def test_options_of_a_server_line_cannot_leave_it(options):
    (sentence,) = faults(haproxy={"backends": [{"name": "m", "options": options}]})
    assert sentence.startswith("haproxy.backends[0].options is ")


@pytest.mark.parametrize("label", ["", " ", "a\nb", "a&b=c", 7])
def test_a_label_is_a_selector(label):
    (sentence,) = faults(nodes={"label": label})
    assert sentence.endswith("a label selector is required, such as node-role.kubernetes.io/control-plane.")


def test_two_backends_have_two_names():
    wrong = faults(haproxy={"backends": [{"name": "m"}, {"name": "m"}]})
    assert wrong == ["haproxy.backends has the name 'm' twice: give each its own."]


@pytest.mark.parametrize("text", ["7", "[]", "{}", '{"api": 7}', '{"api": {}, "haproxy": 7, "nodes": []}'])
def test_no_text_raises(text):
    found, wrong = config.parse(text)
    assert found is None and wrong and all(sentence.endswith((".", "?")) for sentence in wrong)


class Host:
    """Finds fault with every program, and with the file."""

    @staticmethod
    def program(path, runner):
        return f"it is not {runner}'s."

    @staticmethod
    def configuration(path):
        return "others may change it."


def test_programs_and_the_file_that_names_them_must_be_roots():
    whole = {**LEAST, "haproxy": {"backends": [{"name": "m"}], "reload": "/bin/true x"}}
    assert config.parse(json.dumps(whole), "/f", Host)[1] == [
        "haproxy.program is '/usr/sbin/haproxy': it is not root's.",
        "haproxy.reload is '/bin/true': it is not root's.",
        "configuration is '/f': others may change it.",
    ]


def test_the_names_of_nodes_are_kept_without_a_balancer():
    found, faults = config.parse(json.dumps({"api": LEAST["api"], "hosts": {"domain": "lab.example.com"}}))
    assert faults == []
    assert found.hosts.file == "/etc/onprem-lb-resolver/hosts" and found.hosts.reserved == ("api", "api-int", "apps")


@pytest.mark.parametrize("domain", ["", "Lab.example.com", "a b", "a..b", "-a.b", "x" * 64, 7])
def test_a_domain_that_is_none_is_refused(domain):
    faults = config.parse(json.dumps({"api": LEAST["api"], "hosts": {"domain": domain}}))[1]
    assert faults == [f"hosts.domain is {domain!r}: a domain in lower case is required, such as lab.example.com."]
