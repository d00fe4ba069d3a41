# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an haproxy.cfg does, by a reader that shares nothing with the converter: where it listens, what is behind."""

from __future__ import annotations

import base64
import re
import shlex

MILLISECONDS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
HEADS = ("global", "defaults", "frontend", "backend", "listen", "userlist", "resolvers", "peers", "ring")
CHECKS = re.compile(r"option (\w+-check|httpchk|smtpchk)|http-check|tcp-check")
OF_PEERS = re.compile(r" peers (\S+)")
# A frontend without TLS leads every request there.
TO_HTTPS = re.compile(r"^(?:http-request )?(redirect scheme https code 301)(?: if !\{ ssl_fc \})?$")
OF_NAMES = ("resolvers", "init-addr", "resolve-prefer")
FLAGS = ("check", "backup", "ssl", "check-ssl", "send-proxy", "send-proxy-v2", "disabled", "agent-check")


def listeners(text):
    """Return what there is at each place: ``{(address, port): {mode, options, default, routes ...}}``."""
    sections = _sections(text)
    fronts = {}
    for kind, _name, body in sections:
        for words in body if kind in ("frontend", "listen") else ():
            if words[0] == "bind":
                for place in _places(words):
                    assert place not in fronts, f"{place} twice"
                    fronts[place] = _of_front(kind, _name, body, words, sections)
    return fronts


def others(text):
    """Return the sections that are no proxies, as they are. Peers have a name for the tables alone."""
    sections = _sections(text)
    kinds = ("userlist", "resolvers", "ring")
    found = [(kind, name, body) for kind, name, body in sections if kind in kinds and "haproxy_" not in name]
    peers = [(kind, "", body) for kind, _name, body in sections if kind == "peers" and not _is_alone(body)]
    return sorted([*found, *peers])


def _sections(text):
    found = []
    for line in text.split("\n"):
        words = shlex.split(line, comments=True)
        if words and words[0] in HEADS:
            found.append((words[0], words[1] if words[1:] and words[1] != "from" else "", words, []))
        elif words:
            found[-1][3].append(words)
    named, last, complete = {}, [], []
    for kind, name, head, body in found:
        parent = named[head[head.index("from") + 1]] if "from" in head else None
        if kind == "defaults":
            last = [*(parent or []), *body]
            named[name] = last
        inherits = kind in ("frontend", "backend", "listen")
        complete.append((kind, name, [*((parent if parent is not None else last) if inherits else []), *body]))
    return complete


def _of_front(kind, name, body, bind, sections):
    mode = _last(body, "mode", "tcp")
    taken = [words for words in body if words[0] == "use_backend"]
    default = name if kind == "listen" else _last(body, "default_backend", "")
    backs = {n: b for k, n, b in sections if k in ("backend", "listen")}
    port = next(iter(re.findall(r"\d+$", bind[1])), "")
    acls = {words[1]: " ".join(words[2:]) for words in body if words[0] == "acl"}
    routed = [(_condition(words[3:], acls), _of_back(backs.get(words[1]), port)) for words in taken]
    answered = [] if _servers(backs.get(default) or []) else backs.get(default) or []
    named = {word.lstrip("!") for words in body if words[0] not in ("acl", "use_backend") for word in words}
    body = [words for words in body if words[0] != "acl" or words[1] in named]
    rules = [
        words
        for words in [*body, *(each for each in answered if kind == "frontend" and each[0] == "http-request")]
        if re.match(r"(http|tcp)-request|redirect|acl|capture|maxconn|log-format|unique-id|compression", words[0])
    ]
    own = body + (backs.get(default) or [])
    used = [words[words.index("table") + 1] for words in own if "table" in words[:-1]]
    tables = [words for words in own + [w for name in used for w in backs.get(name, [])] if words[0] == "stick-table"]
    options = sorted(word for word in bind[2:] if word not in ("v6only", "v4v6") and not word.endswith(".pem"))
    return {
        "mode": mode,
        "options": options,
        "tables": sorted({_table(words, sections) for words in tables}),
        "default": _of_back(backs.get(default), port) if _servers(backs.get(default) or []) else None,
        "routes": routed,
        "rules": sorted(_rule(words) for words in rules),
        "timeout": _time(_last([words[1:] for words in body if words[0] == "timeout"], "client", "")),
    }


def _table(words, sections):
    """Return a table without what only says how long a client is known that is counted no more, and its peers."""
    text = " ".join(words).replace("type ipv6", "type ip")
    told = OF_PEERS.search(text)
    peers = next((body for kind, name, body in sections if told and (kind, name) == ("peers", told[1])), [])
    places = [] if _is_alone(peers) else sorted(" ".join(words) for words in peers)
    return re.sub(r" expire \w+(?= store http_req_rate)", "", OF_PEERS.sub("", text)), tuple(places)


def _is_alone(peers):
    """Whether a host tells nobody but itself, at a reload."""
    return all(place.startswith("127.") for _peer, _name, place in peers)


def _rule(words):
    """Return a rule without the number of its counter, and its table where it is exempt from nothing but the host."""
    text = TO_HTTPS.sub(r"http-request \1", " ".join(words))
    text = re.sub(r"(track-sc)\d src table \S+-rate unless \{ src 127.0.0.0/8 ::1 \}", r"\1 src", text)
    return re.sub(
        r"sc\d_http_req_rate|sc_http_req_rate\(\d\)", "http_req_rate", re.sub(r"track-sc\d src$", "track-sc src", text)
    )


def _condition(words, acls):
    """Return the parts of a condition in one order, without names; the port in a host is none of it at usual ports."""
    text = " ".join(f"{{ {acls[word]} }}" if word in acls else word for word in words)
    text = re.sub(r"(?<!\.)\bhdr\(host\)", "req.hdr(host)", text).replace("req.hdr(host) ", "req.hdr(host),field(1,:) ")
    text = re.sub(r"path -m beg", "path_beg", text)
    return sorted(re.findall(r"\{.*?\}", text)) or text


def _of_back(body, port):
    if body is None:
        return None
    last = {}
    for words in body:
        if words[0] in ("cookie", "stick", "persist", "http-reuse") or words[0].startswith("http-response"):
            last[" ".join(words[: words.index("table")] if words[0] == "stick" and "table" in words else words)] = 1
    timeouts = {words[1]: _time(words[2]) for words in body if words[0] == "timeout"}
    return {
        "balance": _last(body, "balance", "roundrobin"),
        "check": _check(body),
        "servers": [_server(words, body, port) for words in _servers(body)],
        "retries": _last(body, "retries", "3"),
        "lines": sorted(last),
        "timeouts": [timeouts.get(name) for name in ("connect", "server")],
    }


def _servers(body):
    return [words for words in body if words[0] in ("server", "server-template")]


def _check(body):
    """Return what a check asks, however it is written."""
    found = [" ".join(words) for words in body if CHECKS.match(" ".join(words))]
    asked = next((words[2:] for words in body if words[:2] == ["option", "httpchk"]), None)
    if asked is None:
        return [line.replace(" post-41", "") for line in found]  # as it is without that
    sent = next((words for words in body if words[:2] == ["http-check", "send"]), None)
    if sent:
        values = dict(zip(sent[2::2], sent[3::2]))
        asked = [values.get("meth"), values.get("uri")] + (
            ["Host", sent[sent.index("Host") + 1]] if "Host" in sent else []
        )
    elif len(asked) < 2:
        asked = ["OPTIONS", *(asked or ["/"])]
    asked = [word for word in asked if word != "HTTP/1.0"]
    return [asked, [line for line in found if "expect" in line]]


def _server(words, body, port):
    options = {"inter": "2s", "fall": "3", "rise": "2", "weight": "1"}
    for given in (*(each[1:] for each in body if each[0] == "default-server"), words[3:]):
        given = list(given)
        while given:
            name = given.pop(0)
            options[name] = "yes" if name in FLAGS or name.startswith("no-") else given.pop(0)
    if "check" not in options and "agent-check" not in options:
        options = {name: value for name, value in options.items() if name not in ("inter", "fall", "rise")}
    if "agent-check" in options:
        options.setdefault("agent-inter", "2s")
    if options.get("resolvers") == "haproxy_resolvers":  # the role resolves names while it runs
        options = {name: value for name, value in options.items() if name not in OF_NAMES}
    for name in options:
        if name in ("inter", "fastinter", "downinter", "slowstart", "agent-inter"):
            options[name] = _time(options[name])
    address = words[2] if re.search(r":\d+$|\]:\d+$", words[2]) else f"{words[2]}:{port}"
    return words[1], address, sorted(options.items())


def _places(words):
    for address in words[1].split(","):
        host, _colon, port = address.rpartition(":")
        host = host.strip("[]")
        if host == "::" and "v6only" not in words[2:]:
            yield ("*", port)
        yield ("*" if host in ("", "*", "0.0.0.0") else host, port)


def _last(body, keyword, default):
    return next((" ".join(words[1:]) for words in reversed(body) if words[0] == keyword), default)


def _time(text):
    found = re.fullmatch(r"(\d+)(\w*)", text)
    return int(found[1]) * MILLISECONDS[found[2]] if found else text


def slurped(kind, text, path=""):
    """Return what `ansible.builtin.slurp` returns of a text in a loop."""
    data = text if isinstance(text, bytes) else text.encode()
    return {"item": {"key": kind, "value": path or f"/etc/{kind}"}, "content": base64.b64encode(data).decode()}
