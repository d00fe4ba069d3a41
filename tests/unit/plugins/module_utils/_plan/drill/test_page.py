# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a recorded drill by its structure: what it says, which marks it has, and who can tell them apart."""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
from xml.etree import ElementTree

import pytest
from ansible_collections.onprem.lb.plugins.filter import drill
from support import drills, rendering

XHTML, SVG = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2000/svg}"
FILTERS = drill.FilterModule().filters()
LB1 = {
    "engine": "native",
    "versions": {"haproxy": "2.6.12"},
    "instances": [{"addresses": [drills.VIP], "state": "Active"}],
    "servers": {"total": 6, "up": 6},
}
ABOUT = {
    "at": 1769860800,
    "layout": "pair",
    "ansible": "2.19.0",
    "interval_ms": 5.0,
    "plans": [{"vips": [drills.VIP], "members": {}}],
    "members": {"lb1": [LB1, LB1], "lb2": [{}, {}]},
}


def rendered(results=None, budget=0, notes=()):
    results = drills.recorded() if results is None else results
    found = FILTERS["drill_report"](results, budget)
    history = FILTERS["drill_history"](found, ABOUT, [])
    page = FILTERS["drill_page"](results, found, {**history, "lines": list(notes)})
    return rendering.render("drill", "report.html.j2", drill_page=page)


@pytest.fixture(scope="module")
def html():
    return rendered()


@pytest.fixture(scope="module")
def page(html):
    return ElementTree.fromstring(html)


def figures(page, kind):
    return [svg for svg in page.iter(f"{SVG}svg") if svg.get("class") == kind]


def shapes(figure, name, of_class=""):
    return [shape for shape in figure.iter(f"{SVG}{name}") if of_class in shape.get("class", "").split() + [""]]


def words(page):
    return " ".join("".join(page.itertext()).split())


def test_the_recorded_drill_is_what_the_probe_would_record():
    if os.environ.get("WRITE_GOLDEN"):
        drills.write()
    assert drills.recorded() == drills.simulated()


def test_the_page_needs_nothing_else(html, page):
    assert html.startswith("<!DOCTYPE html>")
    names = {element.tag.rpartition("}")[2] for element in page.iter()}
    assert not names & {"script", "link", "img", "iframe", "object", "foreignObject"}
    assert not [
        each for element in page.iter() for each in element.attrib if each in ("src", "href") or each[:2] == "on"
    ]
    assert "url(" not in html and "@import" not in html


def test_the_head_is_evidence(page):
    told = {
        item.find(f"{XHTML}dt").text: item.find(f"{XHTML}dd").text
        for item in page.iter(f"{XHTML}div")
        if len(item) == 2
    }
    assert told["Date"] == "2026-01-31 12:00:00 UTC" and re.fullmatch("[0-9a-f]{64}", told["Inventory, SHA-256"])
    assert told["lb1"] == f"haproxy 2.6.12; before and after: Active for {drills.VIP}, 6 of 6 servers up"
    assert told["lb2"] == "versions not known; before and after: not read"
    assert told["Events"] == "haproxy killed, keepalived stopped, host cut, haproxy reloaded"
    assert "ansible-core 2.19.0" in told["Software"]


@pytest.mark.parametrize(
    "budget, verdict, said",
    [
        (0, "good", "4 events went as planned. The longest outage was 3045 ms, at host cut; the plan allows 3072 ms."),
        (100, "bad", "1 of 4 events failed. The longest outage was 3045 ms"),
    ],
)
def test_the_verdict_is_in_words(budget, verdict, said):
    page = ElementTree.fromstring(rendered(budget=budget))
    (told,) = [each for each in page.iter(f"{XHTML}p") if "verdict" in each.get("class", "")]
    assert told.get("class") == f"verdict {verdict}" and told.text.startswith(said)
    over = f"drill_budget is {budget} ms."
    assert (over in words(page)) == bool(budget)


def tables(page):
    return [[[cell.text for cell in line] for line in table.iter(f"{XHTML}tr")] for table in page.iter(f"{XHTML}table")]


def test_the_table_has_a_line_for_each_event_and_no_column_that_says_nothing(page):
    head, *lines = tables(page)[0]
    assert head[:5] == ["VIP", "event", "probe", "before", "after"] and not {"extra rounds", "reason"} & set(head)
    assert [line[1] for line in lines] == ["haproxy killed", "keepalived stopped", "host cut", "haproxy reloaded"]


def test_an_event_of_several_rounds_has_a_line_for_each(page):
    _events, rounds = tables(page)
    assert rounds[0][:5] == ["round", "before", "after", "outage", "longest gap"] and "worst" not in rounds[0]
    assert [line[:4] for line in rounds[1:]] == [[str(at), "lb1", "lb2", ms] for at, ms in ROUNDS]


ROUNDS = [(1, "15 ms"), (2, "20 ms"), (3, "15 ms")]


@pytest.mark.parametrize(
    "given, said",
    [
        (slice(None), "6: haproxy killed 3, keepalived stopped 1, host cut 1, haproxy reloaded 1"),
        (slice(2, None), "one"),
    ],
)
def test_the_head_says_how_many_rounds_each_event_had(given, said):
    page = words(ElementTree.fromstring(rendered(drills.recorded()[given])))
    assert f"Rounds{said}" in page


def test_each_cell_names_its_column_where_the_page_is_narrow(html, page):
    assert "td::before { content: attr(data-column)" in html
    for table in page.iter(f"{XHTML}table"):
        head = [cell.text for cell in table.iter(f"{XHTML}th")]
        for line in table.find(f"{XHTML}tbody"):
            assert [cell.get("data-column") for cell in line] == head


LETTER, SPACE = 7.3, 8  # pixels, of a wide font of .76rem
CUT = re.compile(r"[ -]|/(?=[a-z])")  # where a browser may begin a new line


def test_the_widest_table_is_whole_where_its_lines_are_no_blocks():
    """What a browser cannot break decides how narrow a column can be; names and addresses can be broken anywhere."""
    results = [{**each, "event": "keepalived_stopped"} for each in drills.recorded()[:3]]
    for each in results:
        each["question"]["words"] = "connects only: no answer to drill_send at 65535"
        each["seen"]["takeover"].update(outage_ms=60000.0, response_gap_ms=60000.0)
    html = rendered([*results[:1], *({**each, "because": "late"} for each in results[1:])])
    (rem,) = re.findall(r"@media \(max-width: (\d+)rem\)", html)
    assert f"max-width: {rem}rem; padding" in html and "td.named { overflow-wrap: anywhere; }" in html
    for table in ElementTree.fromstring(html).iter(f"{XHTML}table"):
        columns = zip(*table.iter(f"{XHTML}tr"))
        wide = sum(max(map(widest, column)) * LETTER + SPACE for column in columns)
        assert wide <= 16 * int(rem) - 40, wide


def widest(cell):
    return 0 if cell.get("class") == "named" else max(map(len, CUT.split(cell.text or "")))


def test_a_gap_of_the_probe_is_in_the_legend(page):
    (legend,) = [each for each in page.iter(f"{XHTML}ul") if each.get("class") == "legend"]
    assert "blank: no connection was tried, because the host of the probe was busy" in words(legend)


def test_what_was_not_measured_is_no_zero_on_the_page():
    (hung,) = drills.recorded()[:1]
    hung.update(event="haproxy_hung", measured=False, question={"port": 5000, "words": "connects only"})
    page = ElementTree.fromstring(rendered([hung]))
    said = words(page)
    assert "For 1 event the outage was not measured." in said and "The longest outage was" not in said
    assert "may have been gone: that was not measured" in said and "Probe: connects only." in said
    assert [text.text for text in shapes(figures(page, "bars")[0], "text", "name")] == ["forecast"]


def test_what_was_measured_before_stands_beside_the_promise():
    results = drills.recorded()[4:5]
    found = FILTERS["drill_report"](results)
    before = {"format": 1, "at": "2026-01-30T00:00:00Z", "rows": [{**found["rows"][0], "outage_ms": 3000.0}]}
    before["rows"][0]["took_ms"] = [3000.0, 3100.0]
    kept = [{"path": "x.json", "text": json.dumps(before), "wrong": ""}]
    page = FILTERS["drill_page"](results, found, FILTERS["drill_history"](found, ABOUT, kept))
    page = ElementTree.fromstring(rendering.render("drill", "report.html.j2", drill_page=page))
    bars = [text.text for text in shapes(figures(page, "bars")[0], "text", "figure")]
    assert bars == ["3045 ms", "at most 3072 ms", "3050 ms, worst 3100 ms"]
    assert "Before: measured 3050 ms, at worst 3100 ms (1 drill on 2026-01-30): THE BOUND WAS BROKEN" in words(page)


def test_lasting_connections_are_told(page):
    assert "Of 60 lasting connections 60 ended." in words(page) and "Of 20 lasting connections none ended." in words(
        page
    )


def test_each_event_has_each_figure_of_its_slowest_round(page):
    assert [len(figures(page, kind)) for kind in ("bars", "strip", "lanes", "latency")] == [4, 4, 4, 4]
    assert "(round 2 of 3, the slowest)" in words(page)


def test_a_strip_has_the_answers_of_its_round_coloured_by_holder(page):
    slowest = [drills.recorded()[at] for at in (1, 3, 4)]
    for strip, result in zip(figures(page, "strip"), slowest):
        marks = shapes(strip, "rect", "mark")
        silent = [mark for mark in marks if mark.get("class") == "mark silent"]
        assert sum(int(mark.get("data-answers")) for mark in silent) >= 1
        assert all(mark.find(f"{SVG}title").text for mark in marks)
        tones = [key for key, _same in itertools.groupby(mark.get("class") for mark in marks) if "unknown" not in key]
        assert tones == ["mark who-1", "mark silent", "mark who-2", "mark silent", "mark who-1"], result["event"]
    cut = shapes(figures(page, "strip")[2], "rect", "silent")
    (whole,) = [mark for mark in cut if mark.get("data-answers") == "200"]  # stands for two seconds alike
    assert float(whole.get("width")) == 780 and len(cut) == 4


def test_a_lane_for_each_member_and_the_event_is_on_one(page):
    for lanes in figures(page, "lanes"):
        assert [lane.find(f"{SVG}text").text for lane in lanes.iter(f"{SVG}g")] == ["lb1", "lb2"]
        assert len(shapes(lanes, "rect", "event")) == 1
    assert [len(shapes(lanes, "rect", "held")) for lanes in figures(page, "lanes")] == [3, 3, 3, 1]


def test_latency_has_every_answer_on_a_logarithmic_axis_with_the_event_shaded(page):
    for latency, at in zip(figures(page, "latency"), (1, 3, 4, 5)):
        counted = sum(int(dots.get("data-answers")) for dots in shapes(latency, "path", "dots"))
        assert counted == drills.recorded()[at]["seen"]["tried"]
        levels = [text.text for text in shapes(latency, "text", "name")]
        assert levels == ["0.1 ms", "1 ms", "10 ms", "100 ms", "no answer"]
        assert len(shapes(latency, "rect", "event")) == 1


def test_no_mark_or_text_leaves_its_figure(page):
    for svg in page.iter(f"{SVG}svg"):
        _x, _y, width, height = map(float, svg.get("viewBox").split())
        for shape in svg.iter(f"{SVG}rect"):
            x, y, wide, high = (float(shape.get(name)) for name in ("x", "y", "width", "height"))
            assert x >= 0 and x + wide <= width and y + high <= height
        for text in svg.iter(f"{SVG}text"):
            long = 6.8 * len(text.text)  # of a wide font
            x = float(text.get("x")) - {"end": long, "middle": long / 2}.get(text.get("text-anchor"), 0)
            assert x >= 0 and x + long <= width and float(text.get("y")) <= height, text.text


def test_words_cannot_end_a_tag():
    results = drills.recorded()[:1]
    results[0]["member"] = "<b>"
    html = rendered(results, notes=["drills/<script>.json & co"])
    assert "drills/&lt;script&gt;.json &amp; co" in html and "&lt;b&gt; did not hold the VIP" in html
    ElementTree.fromstring(html)


def test_a_probe_that_saw_no_holders_and_an_old_one_without_a_series_still_have_a_page():
    blind, old = copy.deepcopy(drills.recorded()[:2])
    blind["seen"].update(holders_known=False, holder_before=None, timeline=[])
    del old["seen"]["series"], old["seen"]["started_at"], old["seen"]["lasting"]
    for result, strips, lanes in ((blind, 1, 0), (old, 0, 1)):
        page = ElementTree.fromstring(rendered([result]))
        assert (len(figures(page, "strip")), len(figures(page, "lanes"))) == (strips, lanes)


# What those with each kind of colour blindness see of linear red, green and blue (Machado and others, 2009).
EYES = {
    "any": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}
THEMES = ("light", "dark", "print")


def colours(html, theme):
    blocks = re.findall(r":root \{(.*?)\}", html, re.DOTALL)
    assert len(blocks) == len(THEMES)
    return dict(re.findall(r"--([\w-]+): (#\w{6});", blocks[THEMES.index(theme)]))


def linear(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one, other):
    lights = sorted(
        sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear(each))) for each in (one, other)
    )
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def lab(colour, eye):
    """Return a colour as an eye sees it, in CIELAB."""
    rgb = [max(0, sum(share * part for share, part in zip(row, linear(colour)))) for row in EYES[eye]]
    shares = ((0.4339, 0.3762, 0.1899), (0.2126, 0.7152, 0.0722), (0.0178, 0.1095, 0.8727))
    x, y, z = (sum(share * part for share, part in zip(row, rgb)) for row in shares)
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("theme", THEMES)
def test_marks_stand_out_from_the_page_and_letters_can_be_read(html, theme):
    tones = colours(html, theme)
    for name in [*(f"who-{number}" for number in range(1, 7)), "silent", "unknown"]:
        assert contrast(tones[name], tones["page"]) >= 3, name
    for name in ("ink", "quiet", "good", "bad"):
        assert contrast(tones[name], tones["page"]) >= 4.5, name


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES)
def test_the_holders_of_a_pair_and_silence_look_different_to_every_eye(html, theme, eye):
    tones = colours(html, theme)
    for one, other in itertools.combinations(("who-1", "who-2", "silent", "unknown"), 2):
        distance = sum((a - b) ** 2 for a, b in zip(lab(tones[one], eye), lab(tones[other], eye))) ** 0.5
        assert distance >= 20, (one, other, round(distance))
