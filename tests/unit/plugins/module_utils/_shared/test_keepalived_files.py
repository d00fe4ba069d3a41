# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a keepalived.conf names, and that keepalived reads with it."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import loaded_files
from ansible_collections.onprem.lb.plugins.module_utils._shared import keepalived_files
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import KEEPALIVED

SERVER = """\
virtual_server 192.0.2.10 443 {
    # include /etc/keepalived/none.conf
    real_server 192.0.2.31 443 {
        SSL_GET {
            url { path / }
        }
    }
}
SSL {
    ca "/etc/ssl/ca.pem"
    certificate /etc/ssl/web.pem
    keyfile /etc/ssl/web.key
}
include conf.d/*.conf
"""


def test_it_reads_what_is_included_and_the_files_of_tls():
    assert [named.path for named in keepalived_files.named(SERVER, "/etc/keepalived/keepalived.conf")] == [
        "/etc/keepalived/conf.d/*.conf",
        "/etc/ssl/ca.pem",
        "/etc/ssl/web.pem",
        "/etc/ssl/web.key",
    ]


@pytest.mark.parametrize(
    "line", ["include conf.d/*.conf", "include conf.d/a.conf", "include {folder}/conf.d/[ab].conf"]
)
def test_keepalived_itself_reads_what_is_included_from_the_folder_of_its_file(tmp_path, line):
    path, included = tmp_path / "keepalived.conf", tmp_path / "conf.d" / "a.conf"
    included.parent.mkdir()
    included.write_text("global_defs {\n    no_such_keyword\n}\n")
    path.write_text(line.format(folder=tmp_path) + "\n")
    tested = subprocess.run(["keepalived", "-t", "-f", path], check=False, capture_output=True, text=True, cwd="/")
    assert "no_such_keyword" in tested.stderr
    assert list(loaded_files.paths(KEEPALIVED, str(path))) == [str(included)]
