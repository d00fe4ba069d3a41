# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records what this tree renders as that of galaxy.yml's version, which is being released; see `support.releases`."""

from __future__ import annotations

from support import collection

collection.make_importable()

from support import releases  # noqa: E402

if __name__ == "__main__":
    releases.record()
