"""What is written of an haproxy.cfg listens, checks and serves as that does, by HAProxy and by a reader of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.imported import haproxy
from support import rendering

from . import tools

FOLDER = Path(__file__).parent / "configurations"
NAMES = sorted(file.stem for file in FOLDER.glob("*.cfg"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder with the files that the configurations name."""
    folder = tmp_path_factory.mktemp("files")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "-")
    made = subprocess.run(["openssl", "req", "-x509", *key, "-subj", "/CN=web"], check=True, capture_output=True)
    for name in ("site.pem", "other.pem"):
        (folder / name).write_bytes(made.stdout)
    (folder / "hosts.map").write_text("one.example.com be_one\n")
    (folder / "503.http").write_text("HTTP/1.0 503 No\r\n\r\n")
    return folder


def given(name, files):
    text = (FOLDER / f"{name}.cfg").read_text()
    values = {"@FOLDER@": files, "@CERTIFICATE@": files / "site.pem", "@NAME@": "other.pem"}
    for sign, value in values.items():
        text = text.replace(sign, str(value))
    return text


def rendered(found):
    return rendering.haproxy(found.services, **found.variables)


def accepted(text, file):
    file.write_text(text)
    done = subprocess.run(
        ["haproxy", "-c", "-f", file],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "BIND": "*", "APP_ADDRESS": "192.0.2.9"},
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_serves_as_the_file_does(name, files, tmp_path):
    text = given(name, files)
    found = haproxy.convert(text)
    assert found.faults == []
    made = rendered(found)
    (tmp_path / "made.cfg").write_text(made)
    assert tools.listeners(made).keys() - {("127.0.0.1", "9000")} == tools.listeners(text).keys()
    for place, serves in tools.listeners(text).items():
        assert tools.listeners(made)[place] == serves, place
    assert tools.others(made) == tools.others(text)


@pytest.mark.parametrize("name", NAMES)
def test_haproxy_takes_what_is_written_wherever_it_takes_the_file(name, files, tmp_path):
    text = given(name, files)
    before, why = accepted(text, tmp_path / "before.cfg")
    assert before == 0, why
    after, why = accepted(rendered(haproxy.convert(text)), tmp_path / "after.cfg")
    assert after == 0, why


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("patroni", "port 8008", "port 8009"),
        ("patroni", "192.0.2.22:5432", "192.0.2.23:5432"),
        ("patroni", "/primary", "/replica"),
        ("galera", "192.0.2.10:3306", "192.0.2.11:3306"),
        ("galera", "mode tcp", "mode http"),
        ("galera", "inter 1s", "inter 2s"),
        ("galera", "mysql-check", "pgsql-check"),
        ("routes", "a2 192.0.2.122:9000", "a2 192.0.2.122:9001"),
        ("behind-a-proxy", "accept-proxy", "defer-accept"),
    ],
)
def test_the_reader_sees_each_kind_of_difference(name, old, new, files):
    text = given(name, files)
    assert old in text and tools.listeners(text) != tools.listeners(text.replace(old, new))


def variables_of(*lines):
    return haproxy.convert("\n".join(lines))


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "it has no section, so that there is nothing to convert."),
        ("# nothing\n", "it has no section, so that there is nothing to convert."),
        ("global\n log 'open\n", "line 2: a quote has no end: complete it."),
        ("global\n a\0b\n", "line 2 has a NUL byte, at which HAProxy ends the line: take it out."),
        ("mode tcp\nglobal\n", "line 1 (mode) is in no section, where HAProxy refuses it: move it into one."),
        (
            ".if 1\nglobal\n.endif\n",
            "line 2 is a section inside a .if, which only HAProxy can judge: move it out.",
        ),
    ],
)
def test_what_cannot_be_understood_is_said_in_a_sentence(text, said):
    assert haproxy.convert(text).faults == [said]


CONDITIONAL = [
    "global",
    " .if feature(OPENSSL)",
    " maxconn 7",
    " .endif",
    "defaults",
    " .if 1",
    " retries 9",
    " .endif",
]


def test_what_only_haproxy_can_judge_stays_under_its_condition():
    found = variables_of(*CONDITIONAL, "listen web", " bind :80", " server one 192.0.2.31:80")
    assert found.services == [] and "haproxy_maxconn" not in found.variables
    assert found.variables["haproxy_global_lines"] == [".if feature(OPENSSL)", "maxconn 7", ".endif"]
    assert [*map(str.strip, found.variables["haproxy_extra_lines"][:4])] == ["defaults", ".if 1", "retries 9", ".endif"]


BIND = ["listen a", " bind :80", " server one 192.0.2.31:80"]


def test_what_a_run_would_refuse_is_said():
    found = variables_of(*BIND, "listen b", *BIND[1:])
    assert found.notes[-1] == (
        "A run refuses this: service a and service b both listen on * port 80: change a port or bind them to different "
        "addresses."
    )
    assert not [note for note in variables_of(*BIND).notes if "refuses" in note]


@pytest.mark.parametrize("line", ["listen haproxy_stats", "listen other"])
def test_the_statistics_page_of_the_role_gives_way(line, tmp_path):
    found = variables_of(line, " bind :9000", BIND[2])
    assert found.variables["haproxy_stats_enabled"] is False
    code, why = accepted(rendered(found), tmp_path / "made.cfg")
    assert code == 0, why


def test_a_section_before_all_defaults_does_not_get_those_of_the_role():
    found = variables_of("listen page", " bind :81", " stats enable", "defaults", " mode http", *BIND)
    assert found.variables["haproxy_extra_lines"][:2] == ["defaults", "listen page"]
    text = rendered(found)
    assert tools.listeners(text)["*", "81"]["mode"] == "tcp" and tools.listeners(text)["*", "80"]["mode"] == "http"


def test_a_weight_that_is_no_number_is_not_dropped():
    found = variables_of(*BIND[:2], f"{BIND[2]} weight 10%")
    assert found.services == [] and found.raw == [
        "listen a, line 1, is in haproxy_extra_lines as it stands: line 3 (server): weight is no number."
    ]


def test_what_this_collection_has_written_is_refused(tmp_path):
    text = rendered(variables_of(*BIND))
    assert haproxy.convert(text).faults == ["this collection has written it: use the inventory that it is from."]


def test_comments_that_are_left_out_are_mentioned():
    found = variables_of("listen web # the shop", " bind :80", " # its only server", " server one 192.0.2.31:80")
    assert "Comments are left out where lines became keys." in found.notes


def test_a_name_that_haproxy_resolves_at_its_start_is_named():
    found = variables_of("listen web", " bind :80", " server one app.example.com:80")
    assert found.notes[-1] == (
        "app.example.com: the role resolves names while HAProxy runs, and not only as it starts."
    )


# What has other words as a key, of which the comparison above is.
OTHERWISE = ("option", "mode", "timeout", "bind", "server", "default-server", "frontend", "defaults")


@pytest.mark.parametrize("name", NAMES)
def test_each_line_is_a_key_or_a_raw_line_or_is_named(name, files):
    """Nothing is lost without a word: each word of a line is in the variables, or the line is named."""
    text = given(name, files)
    found = haproxy.convert(text)
    made = rendered(found)
    named = " ".join([*found.lost, *found.raw])
    for number, line in enumerate(text.split("\n"), 1):
        words = tools.OF_PEERS.sub("", line.split("#")[0]).split()  # which the section says that is named
        if words and words[0] not in OTHERWISE:
            said = words[1] if words[0] == "use_backend" else words[-1].strip("\"'")  # a condition may have a name
            assert said in made or f"line {number} " in named or f"line {number}," in named, line


def test_two_thousand_lines_are_converted():
    listens = [
        f"listen s{at}\n bind :{2000 + at}\n mode tcp\n server a 192.0.2.1:80 check\n server b 192.0.2.2:80 check"
        for at in range(400)
    ]
    found = variables_of(*listens)
    assert len(found.services) == 400 and found.raw == []


@pytest.mark.parametrize(
    "line, is_named",
    [
        ("http-request deny if { fe_conn(entry) gt 9 }", True),
        ("http-request track-sc0 src table entry", True),
        ("http-request deny if { src,table_http_req_rate(entry) gt 9 }", True),
        ("http-request set-header X-entry entry", False),
    ],
)
def test_a_frontend_that_a_line_names_keeps_its_name(line, is_named):
    back = ["backend app", " mode http", f" {line}", BIND[2]]
    found = variables_of("frontend entry", " mode http", BIND[1], " default_backend app", *back)
    assert (found.services == []) is is_named
    assert ["line 7 (http-request): it names frontend entry" in each for each in found.raw[:1]] == [is_named]


SECOND = ["frontend second", " mode http", " bind :8080", " default_backend app"]
APP = ["backend app", " mode http", " server one 192.0.2.31:80 check"]


def shared(*changes, back=tuple(APP)):
    """Return what becomes of two frontends with one backend, of which lines of the second one are replaced."""
    second = SECOND
    for old, new in changes:
        second = [line.replace(old, new) for line in second]
    return variables_of("frontend app", " mode http", BIND[1], " default_backend app", *second, *back)


def test_a_second_frontend_of_a_backend_uses_the_servers_of_the_first_service():
    first, second = shared().services
    assert first["servers"] and second == {"name": "second", "port": 8080, "mode": "http", "backend": "app"}


@pytest.mark.parametrize(
    "found, why",
    [
        (shared((" mode http", " mode tcp")), "frontend and backend differ in their mode, tcp and http"),
        (shared(back=[*APP, " server two 192.0.2.32 check"]), "a server of app has no port, and gets the client's"),
    ],
    ids=["mode", "port"],
)
def test_a_second_frontend_that_would_differ_stays_as_it_stands(found, why):
    assert [each["name"] for each in found.services] == ["app"]
    assert any("frontend second" in each and why in each for each in found.raw)


AGENT = {"port": 7001, "interval": 5}
LISTEN = ("defaults", " timeout connect 1s", " timeout client 1s", " timeout server 1s", "listen a", " bind :80")


@pytest.mark.parametrize(
    "line, options, keys",
    [
        ("option mysql-check user haproxy", "check", {"type": "mysql", "user": "haproxy"}),
        ("option mysql-check user haproxy post-41", "check", {"type": "mysql", "user": "haproxy"}),
        ("option pgsql-check user haproxy", "check", {"type": "pgsql", "user": "haproxy"}),
        ("option redis-check", "check", {"type": "redis"}),
        ("option ldap-check", "check", {"type": "ldap"}),
        ("option smtpchk EHLO mx.example.com", "check", {"type": "smtp", "host": "mx.example.com"}),
        ("option httpchk", "check", {"type": "http", "method": "OPTIONS", "path": "/"}),
        ("option httpchk /alive", "check", {"type": "http", "method": "OPTIONS", "path": "/alive"}),
        ("option httpchk HEAD /alive", "check", {"type": "http", "method": "HEAD", "path": "/alive"}),
        (
            "",
            "check agent-check agent-port 7001 agent-inter 5s",
            {"type": "tcp", "agent": {"port": 7001, "interval": 5}},
        ),
        ("", "agent-check agent-port 7001", {"type": "none", "agent": {"port": 7001}}),
        ("", "check check-ssl verify none", {"type": "tcp"}),
    ],
)
def test_a_check_that_has_a_name_is_a_key(line, options, keys):
    found = variables_of(*LISTEN, f" {line}", f" server one 192.0.2.31:80 {options}")
    (service,) = found.services
    usual = {"interval": 2, "fall": 3, "rise": 2} if keys["type"] != "none" else {}
    assert service["check"] == {**usual, **keys} and "backend_lines" not in service and found.raw == []


@pytest.mark.parametrize(
    "line",
    [
        *("option mysql-check", "option mysql-check user haproxy pre-41", "option smtpchk", "option smtpchk HELO a"),
        *("option httpchk POST /x", "option ssl-hello-chk", "option tcp-check", "option pgsql-check user 'a b'"),
    ],
)
def test_a_check_without_a_name_stays_a_raw_line_and_is_named(line):
    found = variables_of(*LISTEN, f" {line}", " server one 192.0.2.31:80 check")
    assert found.services[0]["backend_lines"] == [line] and found.services[0]["check"]["type"] == "tcp"
    assert [f"line 7 ({' '.join(line.split()[:2])}) is a raw line of service a."] == found.raw


STICKING = [" stick-table type ip size 200k expire 30m", " stick on src", " server one 192.0.2.31:80 check"]


@pytest.mark.parametrize(
    "lines, sticky",
    [
        (STICKING, {"by": "source", "size": "200k", "expire": "30m"}),
        (
            [" stick-table type string len 40 size 1m expire 1h", " stick on hdr(X-User)", STICKING[2]],
            {"by": "hdr(X-User)", "size": "1m", "expire": "1h", "len": 40},
        ),
        (
            [
                *(" stick-table type string size 1m expire 1h", " stick on req.cook(SID)"),
                *(" stick store-response res.cook(SID)", STICKING[2]),
            ],
            {"by": "req.cook(SID)", "size": "1m", "expire": "1h", "len": 32},
        ),
    ],
)
def test_a_stick_table_is_a_key_where_that_does_the_same(lines, sticky):
    found = variables_of(LISTEN[0], " mode http", *LISTEN[1:], *lines)
    assert found.services[0]["sticky"] == sticky and "backend_lines" not in found.services[0]


@pytest.mark.parametrize(
    "lines",
    [
        [STICKING[0].replace(" expire 30m", ""), *STICKING[1:]],
        [f"{STICKING[0]} store conn_cur", *STICKING[1:]],
        [f"{STICKING[0]} peers mates", *STICKING[1:]],
        [STICKING[0], " stick on src if { path_beg /a }", STICKING[2]],
        [STICKING[0], " stick match src", STICKING[2]],
        [*STICKING, " server two 192.0.2.32:80 backup"],
        [" stick-table type string size 1m expire 1h", " stick on req.cook(SID)", STICKING[2]],
        [*STICKING, " http-request deny if { src,table_conn_cnt(a) gt 9 }"],
        [*STICKING, "backend a-sticky", " server x 192.0.2.33:80"],
    ],
    ids=range(9),
)
def test_a_stick_table_that_does_something_else_stays_raw_lines(lines):
    found = variables_of(LISTEN[0], " mode http", *LISTEN[1:], *lines)
    assert "sticky" not in found.services[0] and lines[0].strip() in found.services[0]["backend_lines"]


ANSWERING = (LISTEN[0], " mode http", *LISTEN[1:4], "frontend a", " bind :80")


@pytest.mark.parametrize(
    "rule, answer",
    [
        ("redirect location https://www.example.com/", {"status": 302, "location": "https://www.example.com/"}),
        ("redirect prefix https://www.example.com code 301", {"status": 301, "prefix": "https://www.example.com"}),
        ("return status 404", {"status": 404}),
        (
            "return status 200 content-type text/plain string 'I am here'",
            {"status": 200, "content_type": "text/plain", "content": "I am here"},
        ),
    ],
)
def test_a_frontend_that_answers_every_request_itself_is_a_service(rule, answer):
    (service,) = variables_of(*ANSWERING, " http-request set-header X-A b", f" http-request {rule}").services
    assert service["return"] == answer and service["frontend_lines"] == ["http-request set-header X-A b"]


@pytest.mark.parametrize(
    "lines",
    [
        [" http-request redirect location https://a.example if { path_beg /a }"],
        [" http-request redirect location https://a.example%[path]"],
        [" http-request return status 200 content-type text/plain lf-string %[src]"],
        [" http-request return status 200 content-type text/plain file /etc/hosts"],
        [" http-request return status 404 hdr X-A b"],
        [" http-request deny"],
        [" http-request return status 404", " use_backend b if { path_beg /b }", "backend b", " server x 192.0.2.1:80"],
        [" stats enable", " http-request return status 404"],
    ],
    ids=range(8),
)
def test_another_answer_stays_as_it_stands(lines):
    found = variables_of(*ANSWERING, *lines)
    assert found.services == [] and all(line in "\n".join(found.variables["haproxy_extra_lines"]) for line in lines)


def test_the_redirect_to_a_service_with_tls_is_one_of_its_own(files):
    found = haproxy.convert(given("answers", files))
    assert found.services[0]["tls"]["redirect"] == 80
    assert "frontend to_https is called shops-redirect in logs and metrics." in found.notes
    assert not [each for each in found.raw if "to_https" in each]


FRONT = ("frontend web", " bind :80")
BACKS = ("backend other", " server o 192.0.2.33:8080 check", "backend main", " server m 192.0.2.34:80 check")
ROUTED = (LISTEN[0], " mode http", *LISTEN[1:4], *FRONT)


@pytest.mark.parametrize(
    "lines, asked",
    [
        ([" use_backend other if { path_beg /api /v2 }"], {"paths": ["/api", "/v2"]}),
        ([" acl a path_beg /api", " acl a path -m beg /v2", " use_backend other if a"], {"paths": ["/api", "/v2"]}),
        ([" use_backend other if { hdr(host) -i a.example b.example }"], {"hosts": ["a.example", "b.example"]}),
        ([" use_backend other if { hdr_end(host) -i .example }"], {"hosts": ["*.example"]}),
        (
            [" acl a req.hdr(host),field(1,:) -i a.example", " use_backend other if a { path_beg /x }"],
            {"hosts": ["a.example"], "paths": ["/x"]},
        ),
    ],
)
def test_a_backend_by_hosts_or_paths_is_a_route(lines, asked):
    (service,) = variables_of(*ROUTED, *lines, " default_backend main", *BACKS).services
    (route,) = service["routes"]
    assert {key: route[key] for key in ("hosts", "paths") if key in route} == asked
    assert (route["name"], route["servers"]) == ("other", [{"name": "o", "address": "192.0.2.33", "port": 8080}])
    assert "frontend_lines" not in service


@pytest.mark.parametrize(
    "lines",
    [
        [" use_backend other unless { path_beg /api }"],
        [" use_backend other if !{ path_beg /api }"],
        [" use_backend other if { path_beg -i /api }"],
        [" use_backend other if { path_reg /api }"],
        [" use_backend other if { path_beg /api } or { path_beg /v2 }"],
        [" use_backend other if { hdr(host) a.example }"],
        [" use_backend other if { hdr_end(host) -i example }"],
        [" use_backend other if { path_beg /api }", " use_backend other if { path_beg /v2 }"],
        [" use_backend other if { path_beg /api }", " use_backend main if { src 192.0.2.0/24 }"],
        [" acl a path_beg /x", " acl a src 192.0.2.0/24", " use_backend other if a"],
        [" bind :8080", " use_backend other if { hdr(host) -i a.example }"],
        [" use_backend %[req.hdr(host)] if { path_beg /api }"],
        [" use_backend other if undefined"],
        [" use_backend other"],
    ],
    ids=range(14),
)
def test_another_condition_stays_a_raw_line_in_its_order(lines):
    found = variables_of(*ROUTED, *lines, " default_backend main", *BACKS)
    raw = found.services[0]["frontend_lines"] if found.services else found.variables["haproxy_extra_lines"]
    assert [line.strip() for line in raw if "use_backend" in line] == [
        line.strip() for line in lines if "use_backend" in line
    ]
    assert not [each for each in found.services if "routes" in each]


def test_an_acl_stays_where_another_line_has_its_name():
    acls = [" acl api path_beg /api", " acl old path_beg /old", " http-request deny if old !api"]
    found = variables_of(*ROUTED, *acls, " use_backend other if api", " default_backend main", *BACKS)
    assert found.services[0]["frontend_lines"] == [line.strip() for line in acls]
    assert found.services[0]["routes"][0]["paths"] == ["/api"]


LIMITED = (
    " stick-table type ip size 100k expire 30s store http_req_rate(10s)",
    " http-request track-sc1 src",
    " http-request deny deny_status 429 if { sc1_http_req_rate gt 100 }",
)
LIMITING = (*ROUTED, *LIMITED, " default_backend main", *BACKS[2:])


def test_the_usual_limit_of_requests_is_a_key_and_what_differs_is_said():
    found = variables_of(*LIMITING)
    assert found.services[0]["rate_limit"] == {"requests": 100, "period": "10s", "size": "100k"}
    assert "frontend_lines" not in found.services[0]
    assert any("the host itself is not limited" in note for note in found.notes)


@pytest.mark.parametrize(
    "old, new",
    [
        ("deny_status 429 ", ""),
        (" if { sc1", " if { path_beg /a } { sc1"),
        ("sc1_http_req_rate gt", "sc0_http_req_rate gt"),
        ("track-sc1 src", "track-sc1 hdr(X-Real-IP)"),
        ("http_req_rate(10s)", "http_req_rate(10s),conn_cur"),
        ("expire 30s", "expire 5s"),
        (" http-request track", " http-request deny if { path /x }\n http-request track"),
        (" default_backend", " http-request set-header X-Rate %[sc_http_req_rate(1)]\n default_backend"),
        (" default_backend", " http-request deny if { src,table_http_req_rate(web) gt 900 }\n default_backend"),
        ("bind :80", "bind :::80"),
    ],
)
def test_another_limit_stays_raw_lines(old, new):
    text = "\n".join(LIMITING)
    assert old in text
    found = haproxy.convert(text.replace(old, new))
    assert not [each for each in found.services if "rate_limit" in each]
    raw = found.services[0]["frontend_lines"] if found.services else found.variables["haproxy_extra_lines"]
    assert any("stick-table" in line for line in raw)
