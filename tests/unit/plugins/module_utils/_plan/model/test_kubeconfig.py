# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubeconfig: the credentials of its current context, and a sentence for what a service could not use."""

from __future__ import annotations

import base64
import copy

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.kubeconfig import Credentials, read
from ansible_collections.onprem.lb.plugins.plugin_utils import kubeconfigs
from support.damages import damaged

PATH = "/etc/onprem/kubeconfig"
URL = "https://api.example.com:6443"
GOOD = {
    "current-context": "here",
    "contexts": [
        {"name": "elsewhere", "context": {"cluster": "other", "user": "other"}},
        {"name": "here", "context": {"cluster": "mine", "user": "me"}},
    ],
    "clusters": [{"name": "mine", "cluster": {"server": URL, "certificate-authority": "ca.crt"}}],
    "users": [{"name": "me", "user": {"tokenFile": "/etc/onprem/token"}}],
}


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def pem(label, body="AAAA"):
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"


def changed(cluster=None, user=None):
    found = copy.deepcopy(GOOD)
    for part, of in ((cluster, found["clusters"][0]["cluster"]), (user, found["users"][0]["user"])):
        of.update(part or {})
        for key in [key for key, value in of.items() if value is None]:
            del of[key]
    return found


def faults(data):
    found, wrong = read(data, PATH)
    assert found is None
    return wrong


def test_the_current_context_counts_and_relative_paths_start_in_the_folder_of_the_file():
    paths = {"ca": "/etc/onprem/ca.crt", "token": "/etc/onprem/token"}
    assert read(GOOD, PATH) == (Credentials(URL, "api.example.com", paths, {}), [])


def test_what_is_embedded_wins_over_a_path_as_in_client_go():
    user = {
        "tokenFile": None,
        "client-certificate": "/var/lib/kubelet/pki/kubelet.pem",
        "client-certificate-data": encoded(pem("CERTIFICATE")),
        "client-key": "/var/lib/kubelet/pki/kubelet.pem",
    }
    found, wrong = read(changed({"certificate-authority-data": encoded(pem("CERTIFICATE"))}, user), PATH)
    assert wrong == []
    assert found == Credentials(
        URL,
        "api.example.com",
        {"key": "/var/lib/kubelet/pki/kubelet.pem"},
        dict.fromkeys(("ca", "certificate"), pem("CERTIFICATE")),
    )


def test_a_token_that_rotates_wins_over_one_that_does_not_as_in_client_go():
    found, _wrong = read(changed(user={"token": "an-old-one"}), PATH)
    assert (found.paths["token"], found.embedded) == ("/etc/onprem/token", {})


def test_base64_may_have_several_lines_and_an_authority_a_comment():
    text = f"# Autorität\n{pem('CERTIFICATE')}"
    data = "\n".join(encoded(text)[at : at + 8] for at in range(0, len(encoded(text)), 8))
    assert read(changed({"certificate-authority-data": data}), PATH)[0].embedded == {"ca": text}


def test_the_name_in_the_certificates_may_be_another_one():
    found, _wrong = read(changed({"server": "https://127.0.0.1:6443", "tls-server-name": "kubernetes"}), PATH)
    assert (found.server, found.server_name) == ("https://127.0.0.1:6443", "kubernetes")


@pytest.mark.parametrize(
    "cluster, user, sentence",
    [
        (
            {"server": "http://192.0.2.1:8080"},
            {},
            "server is wrong: the URL of an API server is required, such as https",
        ),
        ({"server": None}, {}, "server is wrong: the URL of an API server is required"),
        ({"server": "https://192.0.2.1:99999"}, {}, "server is wrong: the URL of an API server is required"),
        ({"insecure-skip-tls-verify": True}, {}, "insecure-skip-tls-verify is set, and an API server that is not"),
        ({"proxy-url": "http://p"}, {}, "proxy-url is set, and requests go to the API server itself."),
        ({"certificate-authority-data": "?"}, {}, "certificate-authority-data is not base64-encoded PEM"),
        *(
            ({"certificate-authority-data": encoded(wrong)}, {}, "certificate-authority-data is not base64-encoded PEM")
            for wrong in (
                "garbage",
                pem("CERTIFICATE", ""),
                pem("CERTIFICATE", "no base64!"),
                "-----BEGIN X-----\nAAAA",
            )
        ),
        ({"certificate-authority-data": ["AAAA"]}, {}, "certificate-authority-data is not base64-encoded PEM"),
        *(
            ({}, {"tokenFile": None, "token": wrong}, "token is no token: it is one word of ASCII.")
            for wrong in ("a\nb", "a b", "schlüssel", " ", 7, ["x"])
        ),
        ({"certificate-authority": "/root/ca.crt"}, {}, "certificate-authority is /root/ca.crt, which services do not"),
        (
            {"certificate-authority": "/etc/../tmp/ca"},
            {},
            "certificate-authority is /tmp/ca, which services do not see",
        ),
        ({}, {"exec": {"command": "aws"}}, "exec is set, and no program is run for credentials. Have `kubectl create"),
        ({}, {"auth-provider": {"name": "oidc"}}, "auth-provider is set, and no provider is asked"),
        ({}, {"username": "admin"}, "username is set, and an API server takes no password."),
        ({}, {"as": "admin"}, "as is set, and requests are not made as another user."),
        ({}, {"tokenFile": None}, "its user has neither a token nor a client-certificate. Have `kubectl create token`"),
        (
            {},
            {"client-certificate": "/etc/c.pem", "client-key": "/etc/k.pem"},
            "its user has a token and a client-cert",
        ),
        (
            {},
            {"tokenFile": None, "client-certificate": "/etc/c.pem"},
            "its user has a client-certificate and no client-k",
        ),
    ],
)
def test_what_a_service_cannot_use_is_refused_in_a_sentence(cluster, user, sentence):
    (found,) = faults(changed(cluster, user))
    assert found.startswith(f"{PATH}: {sentence}")
    assert found.endswith(".")


@pytest.mark.parametrize(
    "data", [None, [], "text", 7, {}, {**GOOD, "current-context": "nowhere"}, {**GOOD, "users": 3}]
)
def test_what_is_no_kubeconfig_is_refused(data):
    (found,) = faults(data)
    assert found.endswith("a kubeconfig with a current-context, its cluster and its user is required.")


def test_a_secret_stands_in_no_sentence():
    user = {"tokenFile": None, "token": "s3cret", "password": "s3cret"}
    wrong = faults(changed({"server": "https://admin:s3cret@192.0.2.1"}, user))
    assert len(wrong) == 2 and "s3cret" not in " ".join(wrong)


def test_no_part_of_a_damaged_kubeconfig_ends_in_an_error_or_in_a_sentence_with_its_names():
    whole = changed({"certificate-authority-data": encoded(pem("CERTIFICATE"))}, {"tokenFile": None, "token": "s3cret"})
    for part, key in ((whole, "current-context"), (whole["contexts"][1]["context"], "user")):
        broken = copy.deepcopy(whole) if part is whole else whole
        (broken if part is whole else part)[key] = "s3cret"
        assert "s3cret" not in str(faults(broken))
    for _done, data in damaged(whole):
        found, wrong = read(data, PATH)
        assert (found is None) == bool(wrong)


def test_one_that_is_nested_too_deeply_is_no_yaml():
    text = "{a: " * 3000 + "1" + "}" * 3000
    assert kubeconfigs.read(text, PATH) == (None, [f"{PATH}: {kubeconfigs.NO_YAML}"])
