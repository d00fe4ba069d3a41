# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether what serves here could start again: what its configuration names may have changed, or gone, since it did.

keepalived starts with whatever its file has.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Optional, Sequence

from ..._shared.engines import AGENT, CONFIGS, HAPROXY, NATIVE, UNITS
from ..._shared.load_records import read_record, record_of
from .. import interpreter, masking
from . import loaded_files, start_options
from .reader import Reader

AGENT_PROGRAM = "/usr/local/lib/onprem-lb-agent/agent.pyz"


def faults(reader: Reader, units: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each of these units whose program would refuse its configuration as it is now."""
    for unit in units:
        why = TESTS[unit](reader) if unit in TESTS else None
        if why:
            yield f"{unit} would not start again: {why}"


def _haproxy(reader: Reader) -> Optional[str]:
    program = reader.find(HAPROXY)
    path = read_record(loaded_files.text(record_of(HAPROXY))).config or CONFIGS[UNITS[NATIVE].balancer]
    if not program:
        return "haproxy is not installed."
    code, out, err = reader.run([program, "-c", *start_options.loaded(path, reader.run)])
    lines = [line.strip() for line in (err + out).splitlines()]
    return _said([line for line in lines if "[ALERT]" in line] or lines, path) if code else None


def _agent(unit: str) -> Callable[[Reader], Optional[str]]:
    def test(reader: Reader) -> Optional[str]:
        command = [interpreter.lasting(), "-I", AGENT_PROGRAM, "check-config", "--config", CONFIGS[unit]]
        code, out, err = reader.run(command)
        return _said((err or out).splitlines(), CONFIGS[unit]) if code else None

    return test


def _said(lines: List[str], path: str) -> str:
    """Return what a program says, in one sentence, without what may be secret in its configuration."""
    text = " ".join(line.strip() for line in lines)
    return masking.hidden(text, loaded_files.text(path), loaded_files.named_in(text, path)) or f"it refuses {path}."


TESTS: Dict[str, Callable[[Reader], Optional[str]]] = {
    UNITS[NATIVE].balancer: _haproxy,
    **{unit: _agent(unit) for unit in UNITS[AGENT]},
}
