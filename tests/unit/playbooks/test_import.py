# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`onprem.lb.import`, run as a user runs it, on files of the controller."""

from __future__ import annotations

import yaml
from support.playbooks import play, printed

IMPORT = "onprem.lb.import"
CFG = """
global
    setenv TOKEN pa55word-a
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
userlist people
    user ann insecure-password pa55word-b
listen web
    bind *:80
    stats auth admin:pa55word-c
    http-request set-header X-Jinja "{{ lookup('pipe', 'id') }}"
    http-request auth unless { http_auth(people) }
    server one 192.0.2.31:80 check
"""
CONF = """
vrrp_instance VI_1 {
    interface eth0
    virtual_router_id 51
    priority 101
    unicast_src_ip 192.0.2.11
    unicast_peer { 192.0.2.12 }
    authentication {
        auth_type PASS
        auth_pass pa55word
    }
    virtual_ipaddress { 192.0.2.10/24 }
}
"""
FILES = ("-e", "import_haproxy=haproxy.cfg", "-e", "import_keepalived=~/keepalived.conf", "-e", "import_output=new.yml")


def imported(folder, *arguments, cfg=CFG, conf=CONF):
    (folder / "haproxy.cfg").write_text(cfg)
    (folder / "keepalived.conf").write_text(conf)
    return play(folder, "", IMPORT, *(arguments or FILES))


def test_the_inventory_is_written_for_its_owner_alone_and_no_secret_is_shown(tmp_path):
    code, said = imported(tmp_path, *FILES, "-vv", "--diff")
    written = tmp_path / "new.yml"
    assert code == 0 and written.stat().st_mode & 0o7777 == 0o600, said
    text = written.read_text()
    assert text.count("pa55word") == 4 and "pa55word" not in said
    for name in ("pair_auth_pass", "haproxy_global_lines", "haproxy_extra_lines", "pair_services"):
        assert f"# {name} has a secret, which belongs in a vault" in text and f"  {name}" in printed(said)
    assert "  haproxy.cfg, line 3 (setenv) is in haproxy_global_lines." in printed(said)


def test_the_forecast_of_what_is_written_has_the_vip_and_evaluates_nothing_in_it(tmp_path):
    code, said = imported(tmp_path)
    assert code == 0, said
    text = (tmp_path / "new.yml").read_text()
    code, said = play(tmp_path, "", "onprem.lb.forecast", "-i", str(tmp_path / "new.yml"))
    assert code == 0 and "192.0.2.10 (VRID 51): held by lb1, then lb2" in said and "uid=" not in said, said
    assert "!unsafe" in text and yaml.compose(text)


def test_what_nobody_has_edited_is_written_again_and_what_somebody_has_is_not(tmp_path):
    for _again in range(2):
        code, said = imported(tmp_path)
        assert code == 0, said
    file = tmp_path / "new.yml"
    file.write_text(file.read_text() + "# mine\n")
    code, said = imported(tmp_path)
    assert code != 0 and "import_output is new.yml: another file is there already" in said
    assert file.read_text().endswith("# mine\n")


def test_a_file_that_is_not_there_is_said_and_nothing_is_written(tmp_path):
    code, said = imported(tmp_path, "-e", "import_haproxy=none.cfg", "-e", "import_output=new.yml")
    assert code == 2 and "lb1: none.cfg cannot be read: name files that are there" in said
    assert not (tmp_path / "new.yml").exists()


def test_without_a_file_there_is_nothing_to_import(tmp_path):
    code, said = imported(tmp_path, "-e", "import_output=new.yml")
    assert code == 2 and "No file was named: set import_haproxy or import_keepalived." in said
    code, said = imported(tmp_path, "-e", "import_haproxy=haproxy.cfg")
    assert code == 2 and "import_output" in said


def test_a_file_that_is_not_understood_is_refused_with_its_line(tmp_path):
    code, said = imported(tmp_path, cfg="global\n log 'x\n", conf="vrrp_instance a {\n @lb1 priority 3\n}")
    assert code == 2 and "lb1: haproxy.cfg: line 2: a quote has no end: complete it." in said
    assert "lb1: keepalived.conf has @lb1, and it is not known here which members read that line" in said


def test_hosts_that_there_are_not_are_refused(tmp_path):
    code, said = imported(tmp_path, "-e", "import_hosts=nobody", "-e", "import_output=new.yml")
    assert code == 2 and "import_hosts is nobody, and no host of the inventory matches it" in said


def test_a_host_that_cannot_be_reached_ends_the_run(tmp_path):
    groups = "[old]\nlb1 ansible_host=192.0.2.11\n"
    code, said = play(tmp_path, groups, IMPORT, "-e", "import_hosts=old", "-e", "import_output=new.yml")
    assert code != 0 and "there_is_none" in said and "is hidden" not in said, said
    assert not (tmp_path / "new.yml").exists()


def test_check_mode_writes_nothing(tmp_path):
    code, said = imported(tmp_path, *FILES, "--check")
    assert code == 0 and not (tmp_path / "new.yml").exists() and "1 VIP, 1 service." in printed(said)
