# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python tests/pictures`, which `make pictures` calls: draws the pictures of the documentation again."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this folder is run as a script, not as a package

from support import collection  # noqa: E402

collection.make_importable()

from pictures import gallery  # noqa: E402

gallery.write()
