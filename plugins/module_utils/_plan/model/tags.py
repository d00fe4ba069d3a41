# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tags of a run. Of one that no task has, Ansible says nothing: it does nothing, or skips nothing. Pure."""

from __future__ import annotations

from typing import Collection, List

from ..._agent.config.schema import Faults

NOT_SKIPPED = ("always", "never")  # what may be skipped whatever a playbook's tags are

STAGES = ("preflight", "install", "configure", "verify")  # of a layout


def stages(run: Collection[str], skip: Collection[str]) -> List[str]:
    """Return the stages of a run. Without one of their tags it has all of them.

    :param run: as in ``ansible_run_tags``
    :param skip: as in ``ansible_skip_tags``
    """
    chosen = [stage for stage in STAGES if stage in run] or STAGES
    return [stage for stage in chosen if stage not in skip]


def tag_faults(run: List[str], skip: List[str], known: List[str]) -> Faults:
    """Return a sentence for ``--tags`` and one for ``--skip-tags``, where they select nothing, or all.

    :param run: as in ``ansible_run_tags``
    :param skip: as in ``ansible_skip_tags``
    :param known: the tags of the playbook. Every task that a stage needs has all of them.
    """
    usual = ["all", "tagged" if known else "untagged"]
    unknown = ", ".join(tag for tag in run if tag not in [*usual, *known])
    skipped = ", ".join(tag for tag in skip if tag not in NOT_SKIPPED)
    stages = ", ".join(known)
    found = []
    if unknown:
        mend = f"choose of {stages}." if known else "the playbook has no tags, leave it out."
        found.append(f"--tags names {unknown}, which no task has: {mend}")
    if skipped:
        mend = (
            f"name the stages to run with --tags, of {stages}." if known else "the playbook has no tags, leave it out."
        )
        found.append(f"--skip-tags names {skipped}, which skips everything or nothing: {mend}")
    return found
