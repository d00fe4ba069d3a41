# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the release notes of a tag, from CHANGELOG.md.

    make notes TAG=v1.2.3

Refuses a tag that is not galaxy.yml's version, or that the changelog does not describe.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Sequence

import yaml
from support.paths import ROOT

# The headings of antsibull-changelog: an anchor, and the version with escaped dots.
HEADING = re.compile(r'^(?:<a id="[^"]*"></a>\n)?## (.+)\n', re.MULTILINE)


def notes(tag: str, version: str, changelog: str, fragments: Sequence[str] = ()) -> str:
    """Return the part of the changelog that describes this version.

    :param fragments: files of changes that are not yet in the changelog
    :raises ValueError: the tag is not this version's, or the changelog does not describe all of it
    """
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, but galaxy.yml says {version}")
    if fragments:
        raise ValueError(f"not in the changelog yet: {', '.join(fragments)}; run antsibull-changelog release")
    _preamble, *parts = HEADING.split(changelog)
    described = {title.replace("\\", ""): text.strip() for title, text in zip(parts[::2], parts[1::2])}
    if not described.get(tag):
        raise ValueError(f"CHANGELOG.md says nothing of {tag}")
    return described[tag] + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
    fragments = sorted(path.name for path in ROOT.glob("changelogs/fragments/*.y*ml"))
    try:
        text = notes(chosen.tag, version, (ROOT / "CHANGELOG.md").read_text(), fragments)
    except ValueError as error:
        sys.exit(f"release: {error}")
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text)


if __name__ == "__main__":
    main()
