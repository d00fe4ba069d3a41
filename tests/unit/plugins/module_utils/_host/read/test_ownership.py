# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file tells who has written it: this collection, a package, or another hand."""

from __future__ import annotations

import hashlib

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import ownership
from ansible_collections.onprem.lb.plugins.module_utils._shared import mark
from support.paths import GOLDEN

DPKG = """\
 /etc/haproxy/haproxy.cfg 6e882ee7f7a6a3d62d8c3aeb3fe7c80d
 /etc/old.conf 692f867252c3f4d61928deef960530f6 obsolete
 /etc/new.conf newconffile

"""
SHA256 = hashlib.sha256(b"as shipped\n").hexdigest()
RPM = f"/etc/haproxy/haproxy.cfg {SHA256}\n/usr/bin/halog {'a' * 64}\n/usr/share/haproxy \n"


@pytest.mark.parametrize(
    "name",
    ["pair.haproxy.cfg", "pair.lb1.keepalived.conf", "haproxy.unit.conf", "keepalived.unit.conf", "api-redirect.nft"],
)
def test_what_the_roles_write_is_marked(name):
    assert mark.is_marked((GOLDEN / name).read_text())


@pytest.mark.parametrize(
    "text", ["", "global\n    daemon\n", "# Ansible managed\nglobal\n", "global\n" * 3 + f"{mark.MARK}.haproxy\n"]
)
def test_what_others_write_is_not(text):
    assert not mark.is_marked(text)


def test_the_digests_of_dpkg_and_rpm_are_read():
    assert ownership.digests(DPKG) == {
        "/etc/haproxy/haproxy.cfg": "6e882ee7f7a6a3d62d8c3aeb3fe7c80d",
        "/etc/old.conf": "692f867252c3f4d61928deef960530f6",
    }
    assert ownership.digests(RPM) == {"/etc/haproxy/haproxy.cfg": SHA256, "/usr/bin/halog": "a" * 64}
    assert ownership.digests("file /etc/haproxy/haproxy.cfg is not owned by any package\n") == {}


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha384", "sha512"])
def test_a_packages_file_is_known_by_its_digest(algorithm):
    digest = hashlib.new(algorithm, b"as shipped\n").hexdigest()
    assert ownership.is_as_shipped(b"as shipped\n", digest)
    assert not ownership.is_as_shipped(b"changed\n", digest)


@pytest.mark.parametrize("digest", ["", "abc", "0" * 40])
def test_without_a_digest_that_fits_it_is_anothers(digest):
    assert not ownership.is_as_shipped(b"as shipped\n", digest)


def test_a_host_in_fips_mode_cannot_tell_by_md5(monkeypatch):
    def refused(*_arguments):
        raise ValueError("[digital envelope routines] unsupported")

    monkeypatch.setattr(hashlib, "new", refused)
    assert not ownership.is_as_shipped(b"as shipped\n", "6e882ee7f7a6a3d62d8c3aeb3fe7c80d")
