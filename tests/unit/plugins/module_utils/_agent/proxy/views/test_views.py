# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy's report as a table, as metrics and as a page."""

from __future__ import annotations

import copy
import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import html, metrics
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.views import text as show
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import text_table
from support.proxy.reports import NOW, QUIET, REPORT

TABLE = """\
onprem.lb 1.0.0, process 815, up 3d 4h, /etc/onprem-lb-agent/proxy.json

It is stopping: the last sessions may finish.

The last change of the configuration was refused: services[0] (web).port is 0: a port from 1 to 65535 is required.

Not available: the user haproxy: only root can become another one than nobody.

SERVICE  STATE  SERVERS UP  LISTENS ON              BALANCE     SESSIONS  QCUR  QMAX  PER S  IN/S  OUT/S  REFUSED
web      up     1 of 3   *:80 [2001:db8::80]:80  roundrobin  42        6  17  52     2.3k  8.9M   4
api      down   0 of 1   *:6443 [2001:db8::80]:6443  roundrobin  0  0  0  0  0  0  0

SERVER   STATE  SINCE  ADDRESS  WEIGHT  SESSIONS  QCUR  QMAX  PER S  IN/S  OUT/S  ERRORS  LAST CHECK
web/a    up     1m 10s  192.0.2.1:8080  0.75 of 3  42  6  17  52  2.3k  8.9M  3  http: status 200  12 ms, 1s ago
web/b    down (backup)  1m 10s  [2001:db8::2]:8080  1  0  0  0  0  0  0  0  http: connection refused  0.4 ms, 0s ago
web/new  maint  1m 10s  [2001:db8::2]:8080  1  0  0  0  0  0  0  0  tcp: not known yet
api/x    drain (backup)  1m 10s  [2001:db8::2]:8080  1  0  0  0  0  0  0  0  not checked

MONITOR  PATH               ANSWERS  WHY
alive    127.0.0.1:9444/    200
api      *:9454/x           503      api has 0 of 1 servers

WORKER  STATE     SINCE    SESSIONS
816     serving   5s       40
814     draining  16m 39s  2
"""


def test_the_table_has_everything():
    found = show.table(REPORT, NOW)
    assert re.sub(" +", " ", found) == re.sub(" +", " ", TABLE)


def test_where_there_is_nothing_there_is_still_a_table():
    assert show.table(QUIET, NOW).startswith("onprem.lb 1.0.0, process 815")


@pytest.mark.parametrize(
    "number, text",
    [(0, "0"), (0.4, "0.4"), (1, "1"), (9.94, "9.9"), (9.96, "10"), (999, "999"), (999.6, "1.0k"), (1500, "1.5k"),
     (34_000_000, "34M"), (2.1e9, "2.1G"), (5e18, "5000P")],
)  # fmt: skip
def test_a_number_is_as_long_as_it_matters(number, text):
    assert text_table.short(number) == text


@pytest.mark.parametrize(
    "seconds, text", [(0.0, "0.0 ms"), (0.00042, "0.4 ms"), (0.0123, "12 ms"), (0.9996, "1.0 s"), (12.4, "12 s")]
)
def test_a_span_is_as_long_as_it_matters(seconds, text):
    assert text_table.span(seconds) == text


# -- metrics


LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-z_]+)((?:\{{{LABEL}(?:,{LABEL})*\}})?) ([0-9.e+-]+)")


def samples(report):
    """Read it as strictly as Prometheus does: each metric with its help and its type, then its samples, each once."""
    text = metrics.prometheus(report)
    assert text.endswith("\n")
    found, heads, name = {}, [], None
    for line in text.splitlines():
        if line.startswith("#"):
            _mark, kind, name, rest = line.split(" ", 3)
            assert rest in ("gauge", "counter") or kind == "HELP", line
            heads.append((kind, name))
            continue
        match = SAMPLE.fullmatch(line)
        assert match and match.group(1) == name and match.expand(r"\1\2") not in found, line
        found[match.expand(r"\1\2")] = float(match.group(3))
    names = [name for _kind, name in heads[::2]]
    assert heads == [(kind, name) for name in names for kind in ("HELP", "TYPE")] and len(set(names)) == len(names)
    return found


def test_the_metrics_of_a_report():
    found = samples(REPORT)
    a = '{service="web",server="a"}'
    assert {
        'onprem_lb_proxy_agent_info{version="1.0.0"}': 1,
        "onprem_lb_proxy_config_refused": 1,
        "onprem_lb_proxy_stopping": 1,
        "onprem_lb_proxy_limits": 1,
        "onprem_lb_proxy_sessions_limit": 10_000,
        'onprem_lb_proxy_workers{state="draining"}': 1,
        'onprem_lb_proxy_monitor_good{monitor="api"}': 0,
        'onprem_lb_proxy_service_up{service="api"}': 0,
        'onprem_lb_proxy_service_usable_servers{service="web"}': 1,
        'onprem_lb_proxy_service_sessions{service="web"}': 42,
        'onprem_lb_proxy_service_current_queue{service="web"}': 6,
        'onprem_lb_proxy_service_max_queue{service="web"}': 17,
        'onprem_lb_proxy_server_current_queue{service="web",server="a"}': 6,
        'onprem_lb_proxy_server_max_queue{service="web",server="a"}': 17,
        'onprem_lb_proxy_service_refused_total{service="web"}': 4,
        f"onprem_lb_proxy_server_sessions_total{a}": 120_000,
        f"onprem_lb_proxy_server_received_bytes_total{a}": 5_400_000,
        f"onprem_lb_proxy_server_sent_bytes_total{a}": 7_100_000_000,
        f"onprem_lb_proxy_server_connect_errors_total{a}": 3,
        f"onprem_lb_proxy_server_retries_total{a}": 2,
        f"onprem_lb_proxy_server_resets_total{a}": 1,
        f"onprem_lb_proxy_server_weight{a}": 0.75,
        'onprem_lb_proxy_server_state{service="web",server="b",state="down"}': 1,
        'onprem_lb_proxy_server_state{service="web",server="b",state="up"}': 0,
        'onprem_lb_proxy_server_check_up{service="web",server="b",type="http"}': 0,
        'onprem_lb_proxy_server_check_duration_seconds{service="web",server="b",type="http"}': 0.0004,
    }.items() <= found.items()
    assert not [name for name in found if "_check_" in name and 'server="new"' in name]


def test_every_metric_has_a_type_that_fits_its_name_and_absent_values_have_no_sample():
    types = re.findall("# TYPE onprem_lb_proxy_([a-z_]+) (counter|gauge)\n", metrics.prometheus(QUIET))
    assert [name for name, _kind in types] == [metric.name for metric in metrics.METRICS]
    assert all((kind == "counter") == name.endswith("_total") for name, kind in types)
    assert samples(QUIET)


def test_no_name_makes_it_unreadable():
    evil = {**REPORT, "services": [{**REPORT["services"][0], "name": 'a"b\\c\nd', "servers": []}]}
    assert samples(evil)['onprem_lb_proxy_service_up{service="a\\"b\\\\c\\nd"}'] == 1


def test_the_metrics_page_says_what_it_is():
    assert metrics.page(REPORT).type == "text/plain; version=0.0.4; charset=utf-8"


# -- the page


class Reader(HTMLParser):
    """Sees that every element is closed in its order, and remembers elements and texts."""

    VOID = {"meta", "br", "rect"}

    def __init__(self, document):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(document)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data.strip())


def test_the_page_shows_what_there_is():
    texts = Reader(html.document(REPORT, NOW)).texts
    for wanted in (
        "lb1", "web", "*:80 [2001:db8::80]:80, http, roundrobin, 1 of 3 servers up", "a", "192.0.2.1:8080", "up",
        "for 1m 10s", "42", "6 queued", "42 of 100", "2.3 kB/s", "8.9 MB/s", "7.1 GB",
        "0.75 of 3", "http: status 200", "12 ms, 1s ago",
        "backup, for 1m 10s", "http: connection refused", "0.4 ms, 0s ago", "maint", "drain", "not checked", "503",
        "api has 0 of 1 servers", "generation 2", "It is stopping: the last sessions may finish.",
    ):  # fmt: skip
        assert wanted in texts, wanted
    assert "1 down: lb1, proxy of onprem.lb" in texts


def test_the_page_of_nothing_is_a_page():
    assert "lb1" in Reader(html.document(QUIET, NOW)).texts


def test_the_page_fetches_nothing_from_elsewhere():
    for _tag, attributes in Reader(html.document(REPORT, NOW)).elements:
        assert not {"src", "href", "style", "onclick", "onload"} & attributes.keys()
    assert "http" not in html.STYLE and "http" not in html.SCRIPT and "url(" not in html.STYLE


EVIL = "<script>alert('1')</script>&\"'\u2028"


def poisoned(item):
    """The same report with something evil wherever there is text."""
    if isinstance(item, dict):
        return {key: poisoned(value) for key, value in item.items()}
    if isinstance(item, list):
        return [poisoned(value) for value in item]
    return EVIL if isinstance(item, str) else item


def test_whatever_stands_in_the_report_is_text_on_the_page():
    document = html.document(poisoned(copy.deepcopy(REPORT)), NOW)
    assert EVIL not in document and "<script>alert" not in document
    found = Reader(document)
    usual = Reader(html.document(REPORT, NOW))
    assert [tag for tag, _attributes in found.elements].count("script") == 1
    assert {key for _tag, attributes in found.elements for key in attributes} == {
        key for _tag, attributes in usual.elements for key in attributes
    }


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else():
    found = html.page(REPORT, NOW)
    policy = re.search("Content-Security-Policy: (.*)\r\n", found.headers).group(1)
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag in ("style", "script"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", found.body, re.DOTALL).group(1)
        digest = b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert found.type == "text/html; charset=utf-8"


def test_the_page_renews_itself_with_and_without_scripts():
    document = html.document(REPORT, NOW)
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in document
    assert "setInterval" in html.SCRIPT and document.count("<main>") == 1
