# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A server of direct return: `agent.pyz direct-server`.

``setup`` says what a server has, and what changes lead there. It is pure. ``kernel`` reads and changes the kernel, and
``command`` puts both together, and records what was there before.
"""
