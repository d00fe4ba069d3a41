# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS that ends at the balancer: what is accepted, and what haproxy makes of it."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, haproxy, tls_profiles
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.plans.pairs import pair
from support.rendering import haproxy as rendered

TLS = {"certificate": "/etc/ssl/web.pem"}
WEB = {"name": "web", "port": 443, "mode": "http", "servers": ["192.0.2.31"], "tls": TLS}


def faults(*services):
    settings = {"services": list(services), "monitors": [], "stats": {}, "tuning": {}}
    return haproxy.model(settings, [], "lb1")["faults"]


@pytest.mark.parametrize(
    "tls, sentence",
    [
        ({}, "haproxy_services[0] (web).tls lacks 'certificate': add it, or content."),
        (
            "/etc/ssl/web.pem",
            "haproxy_services[0] (web).tls is '/etc/ssl/web.pem': a mapping with the keys",
        ),
        ({"certificate": "web.pem"}, "tls.certificate is 'web.pem': an absolute path is required."),
        ({"certificate": "/a\nb"}, "an absolute path is required."),
        ({**TLS, "key": "/etc/ssl/web.key"}, "or from /etc/ssl/web.pem.key: rename it, or leave it out"),
        ({"certificate": []}, "tls.certificate is []: a list of 1 or more is required."),
        ({"certificate": {"a": 1}}, "tls.certificate is a mapping: an absolute path is required."),
        ({"certificate": 5}, "tls.certificate is 5: an absolute path is required."),
        ({"certificate": ""}, "tls.certificate is '': an absolute path is required."),
        ({"certificate": None}, "haproxy_services[0] (web).tls lacks 'certificate': add it, or content."),
        ({"certificate": ["/a", None]}, "in it null is wrong: an absolute path is required."),
        ({"certificate": ["/a", "b"]}, "in it 'b' is wrong: an absolute path is required."),
        ({"certificate": ["/a", "/b", "/a/"]}, "['/a', '/b', '/a/']: /a is there twice: name it once."),
        ({"certificate": ["/a", "/b"], "key": "/a.key"}, "tls.key is /a.key, and there are several certificates: "),
        ({**TLS, "profile": "medium"}, "tls.profile is 'medium': one of modern, intermediate, old, none is required."),
        ({**TLS, "profile": ["old"]}, "tls.profile is ['old']: one of modern, intermediate, old, none is required."),
        ({**TLS, "profile": {"a": 1}}, "tls.profile is a mapping: one of modern, intermediate, old, none is required."),
        ({**TLS, "min_version": 1.2}, "tls.min_version is 1.2: one of TLSv1.0, TLSv1.1, TLSv1.2, TLSv1.3 is required."),
        (
            {**TLS, "profile": "intermediate", "min_version": "TLSv1.1"},
            "tls.min_version is TLSv1.1, and the profile intermediate begins with TLSv1.2: leave it out, or choose",
        ),
        ({**TLS, "ciphers": ["AES128-SHA"]}, "tls.ciphers is ['AES128-SHA']: ciphers as OpenSSL lists them are"),
        ({**TLS, "ciphers": "AES128-SHA crt /x"}, "tls.ciphers is 'AES128-SHA crt /x': ciphers as OpenSSL lists them"),
        ({**TLS, "ciphers": "{{ x }}"}, "tls.ciphers is '{{ x }}': ciphers as OpenSSL lists them are required"),
        ({**TLS, "ciphersuites": "AES128-SHA"}, "tls.ciphersuites is 'AES128-SHA': ciphers of TLS 1.3 are required"),
        ({**TLS, "verify": "maybe", "ca": "/a"}, "tls.verify is 'maybe': one of required, optional is required."),
        ({**TLS, "verify": True, "ca": "/a"}, "tls.verify is true: one of required, optional is required."),
        ({**TLS, "verify": "optional"}, "tls.verify is optional, and no client needs a certificate: set ca, or leave"),
        ({**TLS, "crl": "/a"}, "tls.crl is /a, and no client needs a certificate: set ca, or leave crl out."),
        ({**TLS, "ca": ["/a"]}, "tls.ca is ['/a']: an absolute path is required."),
        ({**TLS, "ca": "/a", "crl": {}}, "tls.crl is a mapping: an absolute path is required."),
        ({**TLS, "strict_sni": "maybe"}, "tls.strict_sni is 'maybe': true or false is required."),
        ({**TLS, "alpn": ["h2 x"]}, "a protocol such as h2 or http/1.1 is required."),
        (
            {**TLS, "alpn": ["h3"]},
            "tls.alpn has 'h3', which HAProxy does not speak in mode http: name some of h2,",
        ),
        ({**TLS, "redirect": 0}, "tls.redirect is 0: a port from 1 to 65535 is required."),
        ({**TLS, "cert": "/x"}, "haproxy_services[0] (web).tls has the unknown key 'cert'"),
    ],
)
def test_tls_that_haproxy_could_not_have_is_refused(tls, sentence):
    found = faults({**WEB, "tls": tls})
    assert any(sentence in fault for fault in found), found


def test_a_protocol_of_the_servers_own_is_for_mode_tcp():
    assert faults({**WEB, "mode": "tcp", "tls": {**TLS, "alpn": ["imap"]}}) == []


def test_the_key_may_be_in_the_certificates_file_or_beside_it():
    assert faults(WEB) == faults({**WEB, "tls": {**TLS, "key": "/etc/ssl/web.pem.key"}}) == []


def test_a_redirect_leads_to_the_port_of_https_only():
    (fault,) = faults({**WEB, "port": 8443, "tls": {**TLS, "redirect": 80}})
    assert fault.endswith(".tls.redirect leads to port 443, and the service has port 8443: leave it out.")


@pytest.mark.parametrize(
    "tls, words",
    [
        ({"profile": "none"}, ""),
        ({"min_version": "TLSv1.3"}, " ssl-min-ver TLSv1.3"),
        ({"ciphers": "HIGH:!aNULL"}, " ciphers HIGH:!aNULL"),
        (
            {"profile": "modern"},
            " ssl-min-ver TLSv1.3 ciphersuites TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
            "TLS_CHACHA20_POLY1305_SHA256 prefer-client-ciphers",
        ),
        (
            {
                "profile": "intermediate",
                "min_version": "TLSv1.3",
                "ciphers": "AES128-SHA",
                "ciphersuites": "TLS_AES_128_GCM_SHA256",
            },
            " ssl-min-ver TLSv1.3 ciphers AES128-SHA ciphersuites TLS_AES_128_GCM_SHA256 prefer-client-ciphers",
        ),
    ],
)
def test_a_profile_says_versions_and_ciphers_and_other_keys_overrule_it(tls, words):
    lines = rendered([{**WEB, "tls": {**TLS, **tls}}]).splitlines()
    assert f"    bind *:443 ssl crt /etc/ssl/web.pem{words}" in lines
    named = [line for line in lines if "guidelines" in line]
    profile = tls.get("profile")
    is_known = profile in tls_profiles.PROFILES
    assert named == ([f"    # Mozilla's server side TLS, guidelines 5.7, {profile}."] if is_known else [])


def test_intermediate_is_the_default_of_what_says_nothing_itself():
    asked = rendered([{**WEB, "tls": {**TLS, "profile": "intermediate"}}])
    assert rendered([WEB]) == rendered([{**WEB, "tls": {**TLS, "profile": ""}}]) == asked
    assert asked != rendered([{**WEB, "tls": {**TLS, "profile": "none"}}])


@pytest.mark.parametrize(
    "service, tuning",
    [
        ({"tls": {**TLS, "ciphers": "HIGH"}}, {}),
        ({"tls": {**TLS, "ciphersuites": "TLS_AES_128_GCM_SHA256"}}, {}),
        ({"tls": {**TLS, "min_version": "TLSv1.2"}}, {}),
        ({"bind_options": ["ssl-max-ver TLSv1.2"]}, {}),
        ({"bind_options": ["no-tlsv12"]}, {}),
        ({}, {"haproxy_global_lines": ["ssl-default-bind-ciphers HIGH"]}),
        ({}, {"haproxy_global_lines": ["ssl-default-bind-options ssl-min-ver TLSv1.3"]}),
    ],
)
def test_what_a_user_says_of_versions_and_ciphers_stands_alone(service, tuning):
    assert "guidelines" not in rendered([{**WEB, **service}], **tuning)


@pytest.mark.parametrize(
    "tls, running, is_told",
    [
        ({}, ["web"], True),
        ({}, [], False),
        ({}, ["shop"], False),
        ({"profile": "intermediate"}, ["web"], False),
        ({"profile": "none"}, ["web"], False),
        ({"ciphers": "HIGH"}, ["web"], False),
    ],
)
def test_a_run_tells_whom_the_default_locks_out_where_none_was_in_force(tls, running, is_told):
    settings = {"services": [{**WEB, "tls": {**TLS, **tls}}], "monitors": [], "stats": {}, "tuning": {}}
    told = haproxy.for_template(haproxy.model(settings, [], "lb1"), running)["told"]
    assert [line.partition(" ")[0] for line in told] == ["web:"] * is_told
    assert all("without forward secrecy can no longer connect" in line and "to none." in line for line in told)


@pytest.mark.parametrize("profile", tls_profiles.PROFILES)
def test_openssl_knows_every_cipher_of_a_profile(profile):
    """HAProxy takes a list of which OpenSSL knows one."""
    given = [each for each in tls_profiles.PROFILES[profile].ciphers if not each.startswith("@")]
    known = subprocess.run(["openssl", "ciphers", "ALL:@SECLEVEL=0"], capture_output=True, text=True, check=True)
    assert set(given) - set(known.stdout.strip().split(":")) <= {"DES-CBC3-SHA"}  # which builds leave out
    assert len(given) == len(set(given))


def test_several_certificates_are_all_on_the_line():
    tls = {"certificate": ["/etc/it's #1.pem", "/etc/certificates/"], "strict_sni": True, "profile": "none"}
    text = rendered([{**WEB, "tls": tls}])
    assert """    bind *:443 ssl crt '/etc/it'"'"'s #1.pem' crt /etc/certificates/ strict-sni\n""" in text


def test_the_port_of_a_redirect_is_one_that_listens():
    web = {**WEB, "tls": {**TLS, "redirect": 80}}
    plan = _pair.plan(pair(services=[web]))
    assert plan.faults == []
    assert plan.members["lb1"].firewall.ports == [443, 80]
    assert plan.targets == [["192.0.2.10", 443], ["192.0.2.10", 80]]
    (fault,) = faults(web, {"name": "plain", "port": 80, "servers": ["192.0.2.31"]})
    assert fault.startswith("service plain and service web-redirect both listen on * port 80: ")
    assert faults(web, {"name": "web-redirect", "port": 81, "servers": ["192.0.2.31"]}) == [
        "haproxy_services has the name 'web-redirect' twice: give each its own."
    ]


def test_the_agent_refuses_tls_in_a_sentence():
    (fault,) = agent.translate({"services": [WEB]})["faults"]
    assert fault.startswith("agent_services (web).tls is set, and the agent relays TLS as it comes, without a cert")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The file of a certificate and its key."""
    file = tmp_path_factory.mktemp("certificate") / "a certificate.pem"
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "-")
    made = subprocess.run(["openssl", "req", "-x509", *key, "-subj", "/CN=web"], check=True, capture_output=True)
    file.write_bytes(made.stdout)
    return file


@pytest.mark.parametrize("mode", ["tcp", "http"])
def test_haproxy_takes_the_file(certificate, tmp_path, mode):
    tls = {"certificate": str(certificate), "ca": str(certificate), "alpn": ["h2", "http/1.1"], "redirect": 80}
    tls["profile"] = {"tcp": "old", "http": "intermediate"}[mode]
    file = tmp_path / "haproxy.cfg"
    file.write_text(rendered([{**WEB, "mode": mode, "bind": ["*", "::"], "allow": ["192.0.2.0/24"], "tls": tls}]))
    done = subprocess.run(["haproxy", "-c", "-f", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    text = file.read_text()
    assert (
        f"    bind *:443 ssl crt '{certificate}' verify required ca-file '{certificate}' alpn h2,http/1.1 ssl-" in text
    )
    assert "frontend web-redirect\n" in text and "    bind [::]:80 v6only\n" in text
