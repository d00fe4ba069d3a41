# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""keepalived beside this code: ``conf`` reads its configuration, ``resignation`` acts for one that was killed,
``peers`` for one that has yielded, ``answers`` asks the balancer for it, ``offers`` its VIPs, and ``senders`` sends."""
