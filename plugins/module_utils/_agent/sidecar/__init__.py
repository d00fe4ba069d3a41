# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sidecar container of the VRRP router's pod: it does for pods what systemd does for the units.

A unit runs commands once its program serves, before it stops and however it has ended. Kubernetes knows no such thing:
its hooks do not run when a program dies. So each program's container holds a FIFO open for writing, and the kernel
closes that when the container's first process has ended, whatever ended it. The sidecar reads the FIFO: it learns of
the end at once, without looking for processes that it may not see.
"""
