# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate that has expired is not deployed, and one that is served already keeps no run from mending the rest."""

from __future__ import annotations

import re
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import certificates
from ansible_collections.onprem.lb.plugins.module_utils._host.read import expiry, loaded_files, named_files
from ansible_collections.onprem.lb.plugins.module_utils._host.write import files
from support.certificates import Authority, certificate
from support.programs import Programs

DAY = 86400
DATE = r"\d{4}-\d\d-\d\d"


@pytest.fixture
def pem(tmp_path):
    return certificate(tmp_path, days=30)


@pytest.fixture
def at(monkeypatch, pem):
    """Say that so many days are left until it expires."""
    expires = certificates.expires(pem.read_text())

    def left(days):
        monkeypatch.setattr(time, "time", lambda: expires - days * DAY)

    return left


@pytest.fixture
def host(tmp_path, monkeypatch, pem):
    """Write what haproxy's configuration says, and what is recorded that it has loaded."""
    config, record = tmp_path / "haproxy.cfg", tmp_path / "record"
    monkeypatch.setattr(expiry, "record_of", lambda _program: str(record))
    monkeypatch.setattr(expiry, "HAPROXY_CONFIG", str(config))

    def given(text="", others=None):
        config.write_text(text)
        if others is not None:
            lines = [f"{'0' * 64}  {config}", "12.34 5.67", *(f"{found}  {path}" for path, found in others.items())]
            record.write_text("\n".join([*lines, ""]))
        return config

    given()
    return given


def unfit(pem):
    services = [{"name": "web", "tls": {"certificate": str(pem)}}]
    return [found["wrong"] for found in named_files.unfit({"services": services})]


def bound(path):
    return f"frontend f\n bind :443 ssl crt {path}\n"


def test_one_that_expires_within_two_weeks_is_said_with_its_date_and_mend_and_refused_by_nobody(host, pem, at):
    at(15)
    assert expiry.of_host([str(pem)]) == unfit(pem) == []
    at(6)
    (said,) = expiry.of_host([str(pem)])
    sentence = rf"{pem} expires on {DATE}, in 6 days: put a renewed one there on every member and run this again, "
    assert re.fullmatch(sentence + r"or reload haproxy\.", said)
    assert unfit(pem) == []


def test_one_that_has_expired_is_refused_where_haproxy_does_not_serve_it(host, pem, at):
    at(-1)
    wrong = rf"it expired on {DATE}, and clients would refuse it: put a renewed one there on every member\."
    for others in (None, {}, {"/other.pem": "1" * 64}, {str(pem): "1" * 64}):
        host("", others)
        assert re.fullmatch(wrong, *unfit(pem))


@pytest.mark.parametrize(
    "text, recorded",
    [("", ["{pem}"]), (bound("{pem}"), []), (bound("{pem}"), None)],
    ids=["recorded", "named, and the record is of before", "named, and somebody else's"],
)
def test_one_that_has_expired_and_is_served_is_said_and_refuses_no_other_change(host, pem, at, text, recorded):
    at(-1)
    known = None if recorded is None else {str(pem): loaded_files.checksum(str(pem)) for _each in recorded}
    config = host(text.format(pem=pem), known)
    assert unfit(pem) == []
    assert re.match(f"{pem} expired on {DATE}, and clients refuse it: put a renewed one", *expiry.of_host([str(pem)]))
    change = files.Change(str(config), "", bound(pem), 0o644, "haproxy")
    programs = Programs({"haproxy": (0, "", "")})
    assert files.check(change, "candidate", programs.find, programs.run) == []


def test_one_that_has_expired_and_that_another_member_serves_is_said_and_not_refused(host, pem, at):
    at(-1)
    config, own = host("", {"/other.pem": "1" * 64}), loaded_files.checksum(str(pem))
    services = [{"name": "web", "tls": {"certificate": str(pem)}}]
    assert [found["expired"] for found in named_files.unfit({"services": services})] == [own]
    assert re.match(f"{pem} expired on {DATE}, and clients refuse it: put a renewed one", *expiry.of_host([str(pem)]))
    change = files.Change(str(config), "", bound(pem), 0o644, "haproxy", served_elsewhere=[own])
    programs = Programs({"haproxy": (0, "", "")})
    assert files.check(change, "candidate", programs.find, programs.run) == []
    with pytest.raises(files.Refused):
        files.check(change._replace(served_elsewhere=["1" * 64]), "candidate", programs.find, programs.run)


def test_a_file_that_is_wanted_brings_along_what_other_members_serve(tmp_path):
    wanted = {"path": str(tmp_path / "x"), "content": "new", "mode": "0644", "state": "present", "check": "none"}
    (change,) = files.changes([{**wanted, "served_elsewhere": ["1" * 64]}])
    assert change.served_elsewhere == ["1" * 64] and files.changes([wanted])[0].served_elsewhere == ()


def test_what_a_host_serves_is_what_is_recorded_and_else_what_its_configuration_names(host, pem):
    host(bound(pem), {str(pem): "1" * 64, "/other.pem": "2" * 64})
    assert expiry.served() == ["1" * 64, "2" * 64]
    host(bound(pem), {})
    assert expiry.served() == [loaded_files.checksum(str(pem))]


@pytest.mark.parametrize("line", ["crt {pem}", "crt {folder}/certs", "crt-list {folder}/list.txt"])
def test_one_of_raw_lines_a_folder_or_a_list_is_refused_and_said_as_well(host, pem, at, tmp_path, line):
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / "web.pem").write_text(pem.read_text())
    (tmp_path / "list.txt").write_text(f"{pem} shop.example\n")
    text = f"frontend f\n bind :443 ssl {line.format(pem=pem, folder=tmp_path)}\n"
    programs = Programs({"haproxy": (0, "", "")})
    config = host(text, {"/other.pem": "1" * 64})
    change = files.Change(str(config), "", text, 0o644, "haproxy")
    assert files.check(change, "candidate", programs.find, programs.run) == []
    at(-1)
    with pytest.raises(
        files.Refused, match=rf"web\.pem, which the new {config} names, is refused, so nothing was changed: it"
    ):
        files.check(change, "candidate", programs.find, programs.run)
    assert len(expiry.of_host([])) == 1


def test_one_of_a_folder_that_has_expired_is_named_and_refused(host, pem, at):
    at(-1)
    folder = pem.parent / "certificates"
    folder.mkdir()
    (folder / "web.pem").write_text(pem.read_text())
    services = [{"name": "web", "tls": {"certificate": str(folder)}}]
    (found,) = named_files.unfit({"services": services})
    assert found["wrong"].startswith("web.pem in it is refused, it expired on ")
    assert found["expired"] == loaded_files.checksum(f"{folder}/web.pem")
    assert [
        said.partition(" ")[0] for said in expiry.of_host(named_files.certificate_paths({"services": services}))
    ] == [f"{folder}/web.pem"]


def test_a_list_of_revoked_ones_is_said_a_day_before_and_refused_once_it_has_expired(host, pem, monkeypatch):
    crl = Authority(pem.parent).revoked(days=30)
    expires = certificates.next_update(crl.read_text())
    tls = {"certificate": str(pem), "ca": str(pem), "crl": str(crl)}
    named = {"services": [{"name": "web", "tls": tls}]}

    def said(left):
        monkeypatch.setattr(time, "time", lambda: expires - left)
        of_host = [each for each in expiry.of_host(named_files.certificate_paths(named)) if str(crl) in each]
        return of_host, [each["wrong"] for each in named_files.unfit(named) if each["key"].endswith("crl")]

    assert said(2 * DAY) == ([], [])
    assert [len(each) for each in said(DAY / 2)] == [1, 0]
    ((warning,), (wrong,)) = said(-1)
    assert re.match(
        rf"{crl} expired on {DATE}, and haproxy refuses every client's certificate: put a renewed ", warning
    )
    assert re.match(rf"it expired on {DATE}, and haproxy refuses every client's certificate: put a renewed one ", wrong)
    host("", {str(crl): loaded_files.checksum(str(crl))})
    assert said(-1)[1] == []


def test_what_haproxy_leaves_out_of_a_folder_is_not_said(host, pem, at):
    at(-1)
    folder = pem.parent / "certificates"
    folder.mkdir()
    host(bound(folder))
    for name in (".old.pem", "web.pem.issuer", "web.pem"):
        (folder / name).write_text(pem.read_text())
    assert [said.partition(" ")[0] for said in expiry.of_host([])] == [f"{folder}/web.pem"]


CONTENT = "/etc/onprem-lb-certificates/web-0123456789abcdef.pem"


def of_content(pem):
    """Return the services of which a host is told that one has the text of this certificate."""
    expires = certificates.expires(pem.read_text())
    told = {"path": CONTENT, "checksum": loaded_files.checksum(str(pem)), "expires": expires}
    return {"services": [{"name": "web", "tls": {"content": [told]}}]}


def test_a_text_of_the_inventory_is_judged_before_its_file_is_there(host, pem, at):
    named = of_content(pem)
    at(15)
    assert named_files.unfit(named) == expiry.of_host([], named_files.contents(named)) == []
    at(6)
    (said,) = expiry.of_host([], named_files.contents(named))
    mend = r"set a renewed one in the service's tls\.content, and run this again\."
    assert re.fullmatch(rf"{CONTENT} expires on {DATE}, in 6 days: {mend}", said)
    at(-1)
    (found,) = named_files.unfit(named)
    assert (found["key"], found["value"]) == ("services[0] (web).tls.content", CONTENT)
    assert found["expired"] == loaded_files.checksum(str(pem))
    assert re.match(rf"it expired on {DATE}, and clients would refuse it: set a renewed one", found["wrong"])


def test_a_text_of_the_inventory_that_has_expired_and_is_served_refuses_no_other_change(host, pem, at):
    at(-1)
    host("", {"/etc/onprem-lb-certificates/of-another-name.pem": loaded_files.checksum(str(pem))})
    assert named_files.unfit(of_content(pem)) == []
    assert re.match(f"{CONTENT} expired on {DATE}", *expiry.of_host([], named_files.contents(of_content(pem))))


@pytest.mark.parametrize("tls", [None, "x", {}, {"content": None}, {"content": "x"}, {"content": ["x", None]}])
def test_what_is_no_text_of_the_inventory_is_left_to_the_plan(host, tls):
    named = {"services": [{"name": "web", "tls": tls}]}
    assert named_files.contents(named) == named_files.unfit(named) == []
