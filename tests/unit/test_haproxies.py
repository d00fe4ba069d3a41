# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HAProxy of tests, `support.haproxies`."""

from __future__ import annotations

from support.haproxies import Haproxy


def test_a_reload_is_not_lost_however_soon_after_the_start_or_another_one_it_comes(tmp_path, monkeypatch):
    monkeypatch.setattr(Haproxy, "accepts", lambda _self: True)  # which takes longer than a master that is not frozen
    with Haproxy(tmp_path, "bind 127.0.0.1:{port}") as running:
        for _each in range(3):
            running.reload()
