# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a layout's variables name on a host is there, and nothing that an ordinary user could change."""

from __future__ import annotations

import os
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import named_files


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "tell"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def said(**named):
    return [f"{found['key']} is {found['value']}: {found['wrong']}" for found in named_files.unfit(named)]


def test_what_is_there_is_fit_for_use(program, tmp_path):
    assert said(notify=f"{program} --loud", script_user="root", down_file=f"{tmp_path}/down", services=[]) == []


def test_nothing_is_said_of_what_is_not_named_or_refused_anyway():
    assert said() == said(notify="", down_file="", services=None) == []
    assert said(notify="relative", down_file="relative", services="text") == []
    assert said(notify="/bin/x 'open", services=[None, {"check": None}, {"check": {"ca": 5}}]) == []


def test_the_folder_of_a_metrics_file_must_be_there(tmp_path):
    assert said(metrics_file=f"{tmp_path}/lb.prom") == said(metrics_file="") == []
    assert said(metrics_file=f"{tmp_path}/none/lb.prom") == [
        f"metrics_file is {tmp_path}/none/lb.prom: there is no folder {tmp_path}/none: install node_exporter, or name "
        "the folder that it reads."
    ]


def test_a_notify_program_that_is_not_there_is_unfit(tmp_path):
    assert said(notify=f"{tmp_path}/none loud") == [
        f"notify is {tmp_path}/none: it cannot be run: No such file or directory."
    ]


def test_each_of_several_programs_is_looked_at_as_its_own_user(program):
    named = [
        {"key": "instances (a).notify", "command": f"{program} loud", "user": "no-such-user"},
        {"key": "instances (b).notify", "command": f"{program} loud", "user": "root"},
    ]
    assert said(programs=named) == [
        f"instances (a).notify is {program}: it cannot be run: this host has no user no-such-user."
    ]


def test_a_notify_program_that_others_may_change_is_unfit(program):
    program.chmod(0o757)
    assert said(notify=str(program)) == [
        f"notify is {program}: others than root may change {program}: chown it to root, chmod go-w."
    ]


def test_a_user_who_is_not_there_cannot_run_it(program):
    assert said(notify=str(program), script_user="no-such-user") == [
        f"notify is {program}: it cannot be run: this host has no user no-such-user."
    ]


def test_a_down_file_needs_its_folder(tmp_path):
    """Without it the unit's ExecStartPost fails, and haproxy never starts again."""
    assert said(down_file=f"{tmp_path}/none/down") == [
        f"down_file is {tmp_path}/none/down: there is no folder {tmp_path}/none, so that the balancer could not start: "
        "create it, or name a file in /run."
    ]


def test_a_down_file_is_in_a_folder_that_nobody_else_may_change(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    assert said(down_file=f"{folder}/down") == [
        f"down_file is {folder}/down: others than root may change {folder}: chown it to root, chmod go-w."
    ]


def test_certificates_are_there_and_are_certificates(tmp_path):
    (tmp_path / "empty.pem").write_text("")
    os.mkfifo(str(tmp_path / "pipe.pem"))
    services = [{"name": name, "check": {"ca": f"{tmp_path}/{name}.pem"}} for name in ("none", "empty", "pipe")]
    assert [found.rpartition(".pem: ")[2] for found in said(services=services)] == [
        "it cannot be read: No such file or directory.",
        "there is no certificate in it (PEM).",
        "it is not a regular file.",
    ]
    assert said(services=services)[0].startswith("services[0] (none).check.ca is ")


def made(folder, name, *arguments):
    """Make a certificate and its key, and return the paths of both."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.pem.key"
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", *(arguments or ["-nodes"]))
    command = ["openssl", "req", "-x509", *kind, "-keyout", key, "-subj", "/CN=x", "-days", "2", "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def of_tls(**tls):
    return said(services=[{"name": "web", "tls": {key: str(tls[key]) for key in tls}}])


def test_a_certificate_with_its_key_in_its_file_or_beside_it_is_fit_for_use(tmp_path):
    certificate, key = made(tmp_path, "one")
    assert of_tls(certificate=certificate, ca=certificate) == of_tls(certificate=certificate, key=key) == []
    whole = tmp_path / "whole.pem"
    whole.write_text(key.read_text() + certificate.read_text())
    assert of_tls(certificate=whole) == []


def wrong_certificates(folder):
    """Yield what is named, and the sentence about it."""
    certificate, key = made(folder, "one")
    alone = folder / "alone.pem"
    alone.write_text(certificate.read_text())
    yield {"certificate": folder / "none.pem"}, "certificate", "it cannot be read: No such file or directory."
    (folder / "empty").mkdir()
    (folder / "empty" / ".pem").touch()
    nobody = "there is no certificate in this folder: put them there, each with its private key."
    yield {"certificate": folder / "empty"}, "certificate", nobody
    yield {"certificate": key}, "certificate", "there is no certificate in it (PEM)."
    nothing = f"there is no private key in it, and no {alone}.key: add the key to it, or create that file."
    yield {"certificate": alone}, "certificate", nothing
    other, other_key = made(folder, "other")
    (folder / "alone.pem.key").write_text(other_key.read_text())
    of_another = f"the private key in {alone}.key belongs to another certificate."
    yield {"certificate": alone}, "certificate", of_another
    locked, locked_key = made(folder, "locked", "-passout", "pass:secret")
    asks = "its private key is encrypted, and HAProxy starts without anybody to ask: store it without a password."
    yield {"certificate": locked}, "certificate", asks
    yield {"key": locked_key}, "key", asks
    yield {"key": certificate}, "key", "there is no private key in it (PEM)."
    yield {"key": folder / "none.key"}, "key", "it cannot be read: No such file or directory."
    yield {"ca": key}, "ca", "there is no certificate in it (PEM)."
    yield {"crl": certificate}, "crl", "there is no list of revoked certificates in it (PEM, X509 CRL)."
    yield {"crl": folder / "none.pem"}, "crl", "it cannot be read: No such file or directory."
    cut = folder / "cut.pem"
    cut.write_text("-----BEGIN X509 CRL-----\nMIIB\n-----END X509 CRL-----\n")
    yield {"crl": cut}, "crl", "OpenSSL cannot read the list of revoked certificates in it."
    broken = folder / "broken.pem"
    broken.write_text(key.read_text() + "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    yield {"certificate": broken}, "certificate", "OpenSSL cannot read it or its private key: "
    certificate.chmod(0o666)
    open_to_all = f"others than root may change {certificate}: chown it to root, chmod go-w."
    yield {"certificate": certificate}, "certificate", open_to_all
    yield {"ca": certificate}, "ca", open_to_all
    other_key.chmod(0o622)
    yield (
        {"certificate": other},
        "certificate",
        f"others than root may change {other_key}: chown it to root, chmod go-w.",
    )


def test_a_certificate_that_haproxy_could_not_use_or_others_may_change_is_unfit(tmp_path):
    for tls, key, wrong in wrong_certificates(tmp_path):
        (sentence,) = of_tls(**tls)
        assert sentence.startswith(f"services[0] (web).tls.{key} is {tls[key]}: {wrong}")


def make_folder(path):
    path.mkdir()


def make_fifo(path):
    os.mkfifo(path)


def make_dead_link(path):
    path.symlink_to("none")


def make_other(path):
    path.write_text("none")


@pytest.mark.parametrize("name", ["other.pem", "README", ".other.pem", "other.pem.key", "other.pem.ocsp"])
@pytest.mark.parametrize("make", [make_folder, make_fifo, make_dead_link, make_other])
def test_a_folder_is_fit_for_use_where_haproxy_takes_it(tmp_path, make, name):
    folder, config = tmp_path / "several", tmp_path / "haproxy.cfg"
    folder.mkdir()
    made(folder, "one")
    make(folder / name)
    config.write_text(
        "defaults\n  timeout client 1s\n  timeout server 1s\n  timeout connect 1s\n"
        f"frontend web\n  bind 127.0.0.1:8443 ssl crt {folder}\n"
    )
    takes = subprocess.run(["haproxy", "-c", "-f", config], capture_output=True, check=False).returncode == 0
    assert (of_tls(certificate=folder) == []) == takes


def test_each_certificate_of_a_list_or_a_folder_is_looked_at(tmp_path):
    folder = tmp_path / "several"
    folder.mkdir()
    made(folder, "one")
    for name in (".hidden", "one.pem.ocsp"):
        (folder / name).touch()
    (folder / "old").mkdir()
    several = [str(folder), f"{folder}/one.pem"]
    assert said(services=[{"name": "web", "tls": {"certificate": several}}]) == []
    (folder / "README").touch()
    wrong = "README in it is refused, there is no certificate in it (PEM)."
    services = [{"name": "web", "tls": {"certificate": [*several, None, "relative", f"{folder}/none.pem"]}}]
    assert said(services=services) == [
        f"services[0] (web).tls.certificate is {folder}: {wrong}",
        f"services[0] (web).tls.certificate is {folder}/none.pem: it cannot be read: No such file or directory.",
    ]


def test_an_interface_to_bind_to_is_there():
    """haproxy -c does not look."""
    options = ["tfo", "interface lo", "tfo interface none7", "interface 'lo'", "interface", "name 'x", 5, None]
    services = [{"name": "web", "bind_options": options}, {"bind_options": "interface none8"}, {"bind_options": None}]
    assert said(services=services) == [
        "services[0] (web).bind_options is tfo interface none7: this host has no interface none7: name one that it has."
    ]


def test_a_route_names_authorities_too(tmp_path):
    routes = [{"name": "shop"}, None, {"name": "blog", "check": {"ca": f"{tmp_path}/none.pem"}}]
    (sentence,) = said(services=[{"name": "web", "routes": routes}])
    assert sentence.startswith("services[0] (web).routes[2] (blog).check.ca is ")


def test_nothing_is_said_of_tls_that_is_refused_anyway():
    tls = [None, 5, {}, {"certificate": 5, "key": "", "ca": "relative"}]
    assert said(services=[{"name": "web", "tls": each, "routes": each} for each in tls]) == []


PASSWD = "root:x:0:0:root:/root:/bin/bash\n"
OURS = {
    "down_file": ["", "\n", "0\n", "1\n", "2\n", "-254", "+7\n", "01", " 100 \n"],
    "metrics_file": ["", "# HELP onprem_lb_host_up Whether.\nonprem_lb_host_up 1\n"],
}
NAMES = {"down_file": "haproxy.down", "metrics_file": "lb.prom"}


@pytest.mark.parametrize("key", NAMES)
def test_what_this_collection_has_written_itself_is_written_again(tmp_path, key):
    path = tmp_path / NAMES[key]
    for text in OURS[key]:
        path.write_text(text)
        assert said(**{key: str(path)}) == []


@pytest.mark.parametrize("text", ["0 1\n", "0\n1\n", "down\n", "1.5", "-", "0x1", "\u0661", "4711\n", "255", "-300"])
def test_a_down_file_with_anything_but_one_weight_is_anothers(tmp_path, text):
    path = tmp_path / "haproxy.down"
    path.write_text(text)
    assert len(said(down_file=str(path))) == 1


@pytest.mark.parametrize("key", NAMES)
@pytest.mark.parametrize("there", ["file", "folder", "device", "pipe", "link", "dangling link"])
def test_what_others_have_at_a_path_that_is_written_is_refused(tmp_path, key, there):
    path, other = tmp_path / NAMES[key], tmp_path / "other"
    if there == "file":
        path.write_text(PASSWD)
    elif there == "folder":
        path.mkdir()
    elif there == "pipe":
        os.mkfifo(path)
    else:
        (tmp_path / "other").write_text("0\n") if there == "link" else None
        path.symlink_to("/dev/zero" if there == "device" else other)
    (fault,) = said(**{key: str(path)})
    assert fault.startswith(f"{key} is {path}: ") and fault.endswith("name one that does not exist yet.")
