# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a haproxy.cfg names are those without which haproxy itself does not start."""

from __future__ import annotations

import re
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import haproxy_files
from support.certificates import certificate

GENERAL = "defaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n"
PEM = "bind 127.0.0.1:1 ssl crt {folder}/web.pem"
# What stands in which section, and what it names. `{folder}` has all of them.
GLOBAL, FRONTEND, BACKEND, ALONE = "global", "frontend f", "backend b", ""
LINES = {
    "a certificate": (FRONTEND, PEM, ["web.pem"]),
    "one in quotes": (FRONTEND, "bind 127.0.0.1:1 ssl crt '{folder}/a b.pem' # crt {folder}/c.pem", ["a b.pem"]),
    "one with signs": (
        FRONTEND,
        r'bind 127.0.0.1:1 ssl crt "{folder}/a \"b.pem" crt {folder}/a\ c\#.pem',
        ['a "b.pem', "a c#.pem"],
    ),
    "authorities": (
        FRONTEND,
        f"{PEM} verify required ca-file {{folder}}/ca.pem crl-file {{folder}}/list.crl",
        ["web.pem", "ca.pem", "list.crl"],
    ),
    "authorities of a client": (
        FRONTEND,
        f"{PEM} verify required ca-file {{folder}}/ca.pem ca-verify-file {{folder}}/all.pem",
        ["web.pem", "ca.pem", "all.pem"],
    ),
    "a server's": (
        BACKEND,
        "server a 127.0.0.1:1 ssl crt {folder}/web.pem ca-file {folder}/ca.pem",
        ["web.pem", "ca.pem"],
    ),
    "a default server's": (BACKEND, "default-server ssl ca-file {folder}/ca.pem\n server a 127.0.0.1:1", ["ca.pem"]),
    "tickets": (FRONTEND, f"{PEM} tls-ticket-keys {{folder}}/tickets", ["web.pem", "tickets"]),
    "patterns": (
        FRONTEND,
        "acl known src -f {folder}/known.lst\n http-request deny if { path -i -f {folder}/paths.lst } !known",
        ["known.lst", "paths.lst"],
    ),
    "a map": (FRONTEND, "use_backend %[req.hdr(host),lower,map_beg({folder}/hosts.map,b)]", ["hosts.map"]),
    "a map by variable": (FRONTEND, "http-request set-var(txn.a) src,map_ip({folder}/geo.map)", ["geo.map"]),
    "a page of an error": (FRONTEND, "errorfile 503 {folder}/503.http", ["503.http"]),
    "one by a rule": (FRONTEND, "http-request deny errorfile {folder}/503.http", ["503.http"]),
    "an answer": (FRONTEND, "http-request return content-type text/plain file {folder}/page.txt if TRUE", ["page.txt"]),
    "an answer with variables": (
        FRONTEND,
        "http-request return content-type text/plain lf-file {folder}/page.txt if TRUE",
        ["page.txt"],
    ),
    "pages": (ALONE, "http-errors mine\n errorfile 404 {folder}/503.http", ["503.http"]),
    "Lua": (GLOBAL, "lua-load {folder}/a.lua 1", ["a.lua"]),
    "Lua by thread": (GLOBAL, "lua-load-per-thread {folder}/a.lua", ["a.lua"]),
    "Diffie-Hellman": (GLOBAL, "ssl-dh-param-file {folder}/dh.pem", ["dh.pem"]),
    "names of headers": (GLOBAL, "h1-case-adjust-file {folder}/headers", ["headers"]),
    "a SPOE": (FRONTEND, "filter spoe engine e config {folder}/spoe.conf", ["spoe.conf"]),
}
# Names without a folder, which others give them.
RELATIVE = {
    "crt-base": ("crt-base {folder}", FRONTEND, "bind 127.0.0.1:1 ssl crt web.pem", ["web.pem"]),
    "crt-base of a server": (
        "crt-base {folder}",
        BACKEND,
        "server a 127.0.0.1:1 ssl verify none crt web.pem",
        ["web.pem"],
    ),
    "ca-base": (
        "ca-base {folder}",
        FRONTEND,
        f"{PEM} verify required ca-file ca.pem crl-file list.crl",
        ["web.pem", "ca.pem", "list.crl"],
    ),
    "origin": (
        "default-path origin {folder}",
        FRONTEND,
        "bind 127.0.0.1:1 ssl crt web.pem\n errorfile 503 503.http",
        ["web.pem", "503.http"],
    ),
    "beside the file": (
        "default-path config",
        FRONTEND,
        "acl known src -f known.lst\n http-request deny if known",
        ["known.lst"],
    ),
    "in the folder above": ("default-path parent", FRONTEND, "errorfile 503 files/503.http", ["503.http"]),
    "both": ("default-path origin /usr\n crt-base {folder}", FRONTEND, "bind 127.0.0.1:1 ssl crt web.pem", ["web.pem"]),
}
TEXTS = {
    "known.lst": "192.0.2.0/24\n",
    "paths.lst": "/admin\n",
    "hosts.map": "a b\n",
    "geo.map": "192.0.2.1 b\n",
    "503.http": "HTTP/1.0 503 No\r\n\r\n",
    "page.txt": "page\n",
    "a.lua": "core.Alert('read')\n",
    "headers": "x-a X-A\n",
    "tickets": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n" * 3,
    "spoe.conf": "[e]\nspoe-agent a\n messages m\n option var-prefix e\n timeout processing 1s\n use-backend b\n"
    "spoe-message m\n args src\n event on-client-session\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with all that the lines name."""
    root = tmp_path_factory.mktemp("haproxy") / "files"
    root.mkdir()
    pem = certificate(root, "web")
    for name in ("a b.pem", 'a "b.pem', "a c#.pem", "ca.pem", "all.pem"):
        (root / name).write_text(pem.read_text())
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    made = [
        "openssl",
        "genpkey",
        "-genparam",
        "-algorithm",
        "DH",
        "-pkeyopt",
        "group:ffdhe2048",
        "-out",
        root / "dh.pem",
    ]
    subprocess.run(made, check=True, capture_output=True)
    (root / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=x\n[x]\ndatabase={root}/index\ndefault_md=sha256\ndefault_crl_days=9\n"
    )
    (root / "index").write_text("")
    asked = ["openssl", "ca", "-config", root / "ca.cnf", "-gencrl", "-keyfile", pem, "-cert", pem]
    subprocess.run([*asked, "-out", root / "list.crl"], check=True, capture_output=True)
    return root


def configuration(section, lines, folder, more=""):
    """Return a configuration with these lines, which can start."""
    of_global = [more, *([lines] if section == GLOBAL else [])]
    bodies = {"frontend f": " bind 127.0.0.1:2", "backend b": " mode tcp"}
    sections = [f"{name}\n{body}\n {lines if name == section else ''}" for name, body in bodies.items()]
    alone = [lines] if section == ALONE else []
    text = "\n".join(["global", *(f" {line}" for line in of_global), GENERAL, *sections, *alone, ""])
    return text.replace("{folder}", str(folder))


def accepts(path):
    """Whether haproxy itself reads it all, in the folder in which systemd starts it."""
    done = subprocess.run(["haproxy", "-c", "-f", path], check=False, capture_output=True, text=True, cwd="/")
    return not re.search(r"\[ALERT\].*(?:rror|nable|annot|ail)", done.stderr), done.stderr


CASES = {
    **{name: ("", section, lines, names) for name, (section, lines, names) in LINES.items()},
    **RELATIVE,
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_file_names_is_what_haproxy_does_not_start_without(folder, name):
    more, section, lines, names = CASES[name]
    path = folder / "haproxy.cfg"
    text = configuration(section, lines, folder, more)
    path.write_text(text)
    accepted, why = accepts(path)
    assert accepted, why
    assert [named.path for named in haproxy_files.named(text, str(path))] == [f"{folder}/{each}" for each in names]
    for each in names:
        (folder / each).rename(folder / "elsewhere")
        assert not accepts(path)[0], each
        (folder / "elsewhere").rename(folder / each)


@pytest.mark.parametrize(
    "line",
    [
        "bind 127.0.0.1:1 ssl crt",
        'bind 127.0.0.1:1 ssl crt "${CERTIFICATES}/web.pem"',
        "server a 127.0.0.1:1 ssl ca-file @system-ca",
        "http-request set-var(txn.a) src,map(virt@known)",
        "# bind 127.0.0.1:1 ssl crt /etc/haproxy/web.pem",
        "server crt-list.example 127.0.0.1:1 check",
        "errorfile 503",
    ],
)
def test_what_is_no_file_or_depends_on_the_environment_is_none(line):
    assert haproxy_files.named(f"backend b\n {line}\n", "/etc/haproxy/haproxy.cfg") == []


def test_a_store_of_certificates_has_its_own_folders():
    text = (
        "crt-store web\n crt-base /a\n key-base /b\n load crt one.pem key one.key ocsp one.ocsp\n load crt /c/two.pem\n"
    )
    found = [named.path for named in haproxy_files.named(text, "/etc/haproxy/haproxy.cfg")]
    assert found == ["/a/one.pem", "/b/one.key", "/a/one.ocsp", "/c/two.pem"]


def test_a_file_of_optional_patterns_is_one_of_patterns():
    assert [named.path for named in haproxy_files.named(" acl a src -f opt@/a.lst -f file@/b.lst\n", "/x")] == [
        "/a.lst",
        "/b.lst",
    ]
