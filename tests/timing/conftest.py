# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long something takes, with real sockets in network namespaces: for `make matrix`, alone on the machine.

Each test plays several rounds and judges a percentile of them; see `support.rounds`.
"""

from __future__ import annotations

from support import collection, leaks

collection.make_importable()
nothing_is_left = leaks.nothing_is_left
