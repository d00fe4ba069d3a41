# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proxy's report as a web page: one document that loads nothing but itself. Pure."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from html import escape
from typing import Iterable, Sequence

from ...runtime.prometheus import Report
from ...runtime.text_table import ago, short, size
from . import http, text

BYTES = (("bytes_in", "received"), ("bytes_out", "sent"))

STYLE = """
:root { color-scheme: light dark; --ground: #f6f7f9; --card: #fff; --text: #1b2330; --faint: #667085; --line: #e3e7ee;
  --up: #12805c; --up-back: #e2f5ec; --down: #b42318; --down-back: #fde8e6; --drain: #9a6700; --drain-back: #fdf3d7;
  --maint: #475467; --maint-back: #e9edf3; --bar: #3b6fd4; }
@media (prefers-color-scheme: dark) { :root { --ground: #12161d; --card: #1b212b; --text: #e6eaf1; --faint: #97a3b6;
  --line: #2d3645; --up: #5bd6a4; --up-back: #12372b; --down: #ff9d92; --down-back: #4a1c19; --drain: #f0c453;
  --drain-back: #40330f; --maint: #b7c2d3; --maint-back: #2e3747; --bar: #7ba4f4; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); line-height: 1.45;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 0; }
.faint, th { color: var(--faint); } .faint { font-size: .875rem; }
header, .title { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: baseline; }
header { margin-bottom: 1rem; } header .faint { margin-left: auto; }
.note { border-left: 4px solid var(--down); background: var(--down-back); padding: .6rem .9rem; margin: 0 0 1rem;
  border-radius: 4px; overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin: 0 0 1.25rem; }
.title { padding: .9rem 1rem .3rem; }
.figures { display: flex; flex-wrap: wrap; gap: .2rem 2rem; margin: 0; padding: .2rem 1rem .8rem; }
.figures div { display: flex; gap: .4rem; align-items: baseline; }
.figures dt { color: var(--faint); font-size: .875rem; order: 1; } .figures dd { margin: 0; font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { font-weight: 500; font-size: .8125rem; text-align: left; white-space: nowrap; }
th, td { padding: .45rem .6rem; border-top: 1px solid var(--line); vertical-align: top; }
.wide:first-child th { border-top: 0; } td:last-child { min-width: 9rem; }
th:first-child, td:first-child { padding-left: 1rem; } th:last-child, td:last-child { padding-right: 1rem; }
.number { text-align: right; white-space: nowrap; } .tight { white-space: nowrap; }
.state { display: inline-block; border-radius: 999px; padding: .05rem .6rem; font-size: .8125rem; font-weight: 600; }
.up, .serving { color: var(--up); background: var(--up-back); }
.down, .hung { color: var(--down); background: var(--down-back); }
.drain, .draining, .late { color: var(--drain); background: var(--drain-back); }
.maint { color: var(--maint); background: var(--maint-back); }
svg { display: block; width: 100%; min-width: 3.5rem; height: 4px; margin-top: .25rem; background: var(--line);
  border-radius: 2px; overflow: hidden; } rect { fill: var(--bar); }
"""
# Replaces only the contents, so that the reader keeps the position; without scripts the page is reloaded.
SCRIPT = """
setInterval(async () => {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, {cache: "no-store"});
    if (!answer.ok) throw answer.status;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelector("main").replaceWith(found.querySelector("main"));
    document.title = found.title;
  } catch (fault) {
    document.title = "no answer: " + document.title.replace(/^(no answer: )+/, "");
    document.querySelector("#age").textContent = "The proxy does not answer.";
  }
}, 2000);
"""


@lru_cache(maxsize=None)
def policy() -> str:
    """Return a content security policy: even injected markup could not run or load anything."""
    import hashlib  # loads OpenSSL, and many hosts never serve the page

    style, script = (b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (STYLE, SCRIPT))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def page(report: Report, now: float) -> http.Page:
    headers = f"Content-Security-Policy: {policy()}\r\nReferrer-Policy: no-referrer\r\n"
    return http.Page(document(report, now), type="text/html; charset=utf-8", headers=headers)


def document(report: Report, now: float) -> str:
    """
    :param now: seconds since 1970, for how long ago something was
    """
    down = sum(service["state"] != "up" for service in report["services"])
    title = escape(f"{f'{down} down: ' if down else ''}{report['host']}, proxy of {report['agent']}")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<noscript><meta http-equiv="refresh" content="5"></noscript>'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n"
        f"{_head(report, now)}"
        f"{''.join(_note(note) for note in text.notes(report))}"
        f"{''.join(_service(service, now) for service in report['services'])}"
        f"{_monitors(report['monitors'])}"
        f"{_workers(report, now)}"
        f"</main><script>{SCRIPT}</script></body></html>\n"
    )


def _head(report: Report, now: float) -> str:
    about = f"{report['agent']} {report['version']}, up {ago(report['since'], now)}, {report['config']}"
    return f'<header><h1>{escape(report["host"])}</h1><span class="faint" id="age">{escape(about)}</span></header>\n'


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>\n'


def _service(service: Report, now: float) -> str:
    about = f"{text.listens(service)}, {service['mode']}, {service['balance']}, {text.up(service)} servers up"
    rows = [_server(server, service, now) for server in service["servers"]]
    return (
        f'<section><div class="title"><h2>{escape(service["name"])}</h2>{_state(service["state"])}'
        f'<span class="faint">{escape(about)}</span></div>\n{_figures(service)}'
        f"{_table(SERVER_HEADS, rows)}</section>\n"
    )


SERVER_HEADS = (
    ("Server", ""),
    ("State", ""),
    ("Sessions", "number"),
    ("Per second", "number"),
    ("Received", "number"),
    ("Sent", "number"),
    ("Errors", "number"),
    ("Weight", "number"),
    ("Last check", ""),
)


def _server(server: Report, service: Report, now: float) -> str:
    rates = server["rates"]
    return _row(
        ("tight", f"{escape(server['name'])}{_faint(text.place(server['address'], server['port']))}"),
        ("tight", f"{_state(server['state'])}{_faint(_circumstances(server, now))}"),
        ("number", f"{server['current']}{_queued(server)}{_bar(server['current'], service['current'])}"),
        ("number", f"{short(rates['sessions'])}{_faint(short(server['sessions']))}"),
        ("number", f"{size(rates['bytes_in'])}/s{_faint(size(server['bytes_in']))}"),
        ("number", f"{size(rates['bytes_out'])}/s{_faint(size(server['bytes_out']))}"),
        ("number", f"{short(server['connect_errors'])}{_faint(short(server['resets']) + ' resets')}"),
        ("number", escape(text.weight(server))),
        ("", f"{escape(text.check(server))}{_faint(text.checked(server, now))}"),
    )


def _circumstances(server: Report, now: float) -> str:
    return f"{'backup, ' if server['backup'] else ''}for {ago(server['since'], now)}"


def _queued(server: Report) -> str:
    return _faint(f"{server['qcur']} queued") if server["qcur"] else ""


def _figures(service: Report) -> str:
    limit = f" of {service['maxconn']}" if service["maxconn"] else ""
    figures = [(f"{service['current']}{limit}", "sessions")]
    figures += [(str(service["qcur"]), "queued"), (short(service["rates"]["sessions"]), "per second")]
    figures += [(f"{size(service['rates'][what])}/s", name) for what, name in BYTES]
    figures += [(short(service["sessions"]), "in all"), (short(service["refused"]), "refused")]
    items = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for value, name in figures)
    return f'<dl class="figures">{items}</dl>\n'


def _monitors(monitors: Sequence[Report]) -> str:
    if not monitors:
        return ""
    heads = (("Monitor", ""), ("Answers", ""), ("At", ""), ("Why", ""))
    rows = [
        _row(
            ("tight", escape(each["name"])),
            ("", _state("up" if each["good"] else "down", "200" if each["good"] else "503")),
            ("", escape(f"{text.listens(each)}{each['path']}")),
            ("", escape(each["detail"])),
        )
        for each in monitors
    ]
    return f"<section>{_table(heads, rows)}</section>\n"


def _workers(report: Report, now: float) -> str:
    heads = (("Worker", ""), ("State", ""), ("Since", ""), ("Sessions", "number"))
    rows = [
        _row(
            ("tight", f"{each['pid']}{_faint('generation ' + str(each['generation']))}"),
            ("", _state(each["state"])),
            ("tight", f"{ago(each['since'], now)}"),
            ("number", f"{each['current']}"),
        )
        for each in report["workers"]
    ]
    return f"<section>{_table(heads, rows)}</section>\n"


def _state(state: str, text: str = "") -> str:
    return f'<span class="state {escape(state)}">{escape(text or state)}</span>'


def _faint(text: str) -> str:
    return f'<div class="faint">{escape(text)}</div>' if text else ""


def _bar(part: float, whole: float) -> str:
    share = round(100 * part / whole) if whole else 0
    rectangle = f'<rect width="{share}" height="4"/>'
    return f'<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">{rectangle}</svg>'


def _table(heads: Iterable[Sequence[str]], rows: Iterable[str]) -> str:
    top = "".join(f'<th class="{kind}" scope="col">{name}</th>' for name, kind in heads)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _row(*cells: Sequence[str]) -> str:
    """Each cell is a class and what is in it, escaped."""
    inside = "".join(f'<td class="{kind}">{content}</td>' for kind, content in cells)
    return f"<tr>{inside}</tr>\n"
