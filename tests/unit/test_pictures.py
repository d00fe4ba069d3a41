# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pictures of the documentation are those that are drawn now, can be read in light and dark, and are shown."""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple
from xml.etree import ElementTree

import pytest
from pictures import choice, gallery, pair, svg, terminal, timeline
from support.documents import blocks
from support.paths import PICTURES, README

# The width of a character of a wide font, as a part of its size.
WIDE = {"": 0.53, "strong": 0.6, "code": 0.603, "code strong": 0.603}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", gallery.DRAWN)
def test_a_picture_is_what_is_drawn_now(name):
    assert gallery.path(name).read_text() == gallery.DRAWN[name](), "stale: run `make pictures`, and look at it"


def test_no_other_picture_is_left_and_the_readme_shows_each_with_words_for_it():
    assert {path.stem for path in PICTURES.iterdir()} == set(gallery.DRAWN)
    shown = dict(re.findall(r"!\[(.+)\]\(docs/pictures/(\w+)\.svg\)", README.read_text()))
    assert set(shown.values()) == set(gallery.DRAWN)


def test_the_readme_quotes_the_forecast_that_the_terminal_shows():
    (quoted,) = (block for block in blocks(README, "") if "(VRID" in block)
    drawn = [line.words for line in lines("forecast")]
    heads = re.compile("  |.* held by |.*, check ")
    assert quoted.splitlines() == [line for line in drawn if heads.match(line)]


@pytest.mark.parametrize("name", gallery.DRAWN)
def test_each_tone_has_a_dark_colour(name):
    light, dark = re.findall(
        r"<style>(.*?)@media \(prefers-color-scheme:dark\)\{(.*)\}", gallery.path(name).read_text(), re.DOTALL
    )[0]
    used = {each for shape in shapes(name) for each in shape.get("class", "").split() if "-" in each}
    assert used and used == set(re.findall(r"\.(\w+-\w+)\{", light)) == set(re.findall(r"\.(\w+-\w+)\{", dark))


class Line(NamedTuple):
    """A line of text, as wide as a wide font makes it."""

    words: str
    left: float
    right: float
    y: float


def lines(name: str) -> Iterator[Line]:
    for shape in shapes(name, "text"):
        words, style = "".join(shape.itertext()), re.sub(r"ink-\w+ ?", "", shape.get("class", ""))
        width = len(words) * float(shape.get("font-size")) * WIDE[style]
        x = float(shape.get("x")) - {"middle": width / 2, "end": width}.get(shape.get("text-anchor"), 0)
        yield Line(words, x, x + width, float(shape.get("y")))


def shapes(name: str, kind: str = "") -> list:
    return list(ElementTree.parse(gallery.path(name)).getroot().iter(f"{SVG}{kind}" if kind else None))


def boxes(name: str) -> Iterator[svg.Box]:
    for shape in shapes(name, "rect"):
        yield svg.Box(*(float(shape.get(side)) for side in ("x", "y", "width", "height")))


@pytest.mark.parametrize("name", gallery.DRAWN)
def test_no_text_leaves_the_box_that_it_begins_in(name):
    for line in lines(name):
        around = [box for box in boxes(name) if box.x <= line.left <= box.right and box.y <= line.y <= box.bottom]
        inside = min(around, key=lambda box: box.width * box.height, default=None)
        assert inside and line.right <= inside.right, line


def test_a_pair_of_one_group_of_servers_and_three_balancers_can_be_drawn():
    balancers = [pair.Balancer(f"lb{number}", f"192.0.2.{number}", 255 - number) for number in (1, 2, 3)]
    drawn = pair.draw(pair.Pair("192.0.2.10", 7, 0.1, balancers, [pair.Group([53], "tcp", ["192.0.2.9"])], "[::1]:1"))
    assert all(f">{each.name}<" in drawn for each in balancers) and "every 0.1 s" in drawn


def test_words_cannot_end_a_tag():
    assert "lb1 -&gt; &lt;b&gt;" in terminal.draw("a & b", ["lb1 -> <b>"])
    assert ElementTree.fromstring(terminal.draw("a & b", ["<"])).tag == f"{SVG}svg"


def test_a_bar_is_as_long_as_its_milliseconds():
    scale = timeline.Scale(100)
    assert scale.span(0, 50, 0).width == scale.span(50, 100, 0).width == timeline.SCALE[1] / 2


def test_a_choice_says_for_those_who_cannot_see_it_what_to_take_when():
    about = ElementTree.fromstring(choice.draw()).find(f"{SVG}desc").text
    assert "pair (two hosts or more, on which the ports of the services are free)" in about
