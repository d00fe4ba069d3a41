# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The first process of a container, as a shell runs it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.sidecar import standstill
from ansible_collections.onprem.lb.plugins.module_utils._host.read import in_force, loaded_files
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import held
from support import waiting


def hang_up_counts():
    """A shell cannot trap what it is told to ignore, as nohup(1) does; a container engine does not."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Container:
    """The first process, and who reads its FIFO."""

    def __init__(self, folder):
        self.folder, self.fifo = folder, folder / "run" / "fifo"
        self.fifo.parent.mkdir()
        self.config = folder / "config"
        self.config.write_text("as it starts")
        os.mkfifo(self.fifo)
        self.reader = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.process, self.heard = None, ""

    def starts(self, *program, pause=0.0, file=""):
        command = held.command(program, str(self.fifo), str(self.config), pause, file)
        self.process = subprocess.Popen(command, preexec_fn=hang_up_counts)

    def is_heard(self, text):
        def read():
            with contextlib.suppress(BlockingIOError):
                self.heard += os.read(self.reader, 100).decode()
            return self.heard == text

        waiting.until(read)

    def is_held(self):
        try:
            return bool(os.read(self.reader, 100))
        except BlockingIOError:
            return True


@pytest.fixture
def container(tmp_path):
    container = Container(tmp_path)
    yield container
    if container.process and container.process.poll() is None:
        container.process.terminate()
        container.process.wait(waiting.LIMIT_S)
    os.close(container.reader)


def pid_of(file):
    waiting.until(lambda: file.exists() and file.read_text().strip())
    return int(file.read_text())


def writes_its_pid(file):
    return ["/bin/sh", "-c", f"echo $$ > {file}; exec sleep 60"]


def test_it_says_that_it_has_started_and_holds_the_fifo_until_its_program_ends(container):
    container.starts("/bin/sh", "-c", f"until [ -e {container.folder}/end ]; do sleep 0.05; done; exit 3")
    container.is_heard("started\n")
    assert container.is_held()
    (container.folder / "end").touch()
    assert container.process.wait(waiting.LIMIT_S) == 3
    assert not container.is_held()


def test_the_fifo_is_let_go_at_once_when_the_program_is_killed(container):
    pid = container.folder / "pid"
    container.starts(*writes_its_pid(pid))
    os.kill(pid_of(pid), signal.SIGKILL)
    assert container.process.wait(waiting.LIMIT_S) == 128 + signal.SIGKILL


def test_what_the_program_leaves_running_does_not_hold_the_fifo(container):
    pid = container.folder / "pid"
    container.starts("/bin/sh", "-c", f"sleep 60 & echo $! > {pid}")
    assert container.process.wait(waiting.LIMIT_S) == 0
    container.is_heard("started\n")
    assert not container.is_held()
    os.kill(pid_of(pid), signal.SIGKILL)


def test_a_stop_is_announced_before_the_program_gets_it(container):
    pid = container.folder / "pid"
    container.starts(*writes_its_pid(pid), pause=0.3)
    program = pid_of(pid)
    container.is_heard("started\n")
    container.process.send_signal(signal.SIGTERM)
    container.is_heard("started\nstopping\n")
    os.kill(program, 0)  # it lives
    assert container.process.wait(waiting.LIMIT_S) == 128 + signal.SIGTERM


def test_its_exit_code_is_that_of_a_program_that_ends_by_itself_after_sigterm(container):
    ready = container.folder / "ready"
    container.starts("/bin/sh", "-c", f"trap 'sleep 0.2; exit 7' TERM; touch {ready}; while :; do sleep 0.05; done")
    waiting.until(ready.exists)
    container.is_heard("started\n")
    container.process.send_signal(signal.SIGTERM)
    assert container.process.wait(waiting.LIMIT_S) == 7


def test_a_reload_reaches_the_program(container):
    reloaded, ready = container.folder / "reloaded", container.folder / "ready"
    container.starts("/bin/sh", "-c", f"trap 'touch {reloaded}' HUP; touch {ready}; while :; do sleep 0.05; done")
    waiting.until(ready.exists)
    container.is_heard("started\n")
    container.process.send_signal(signal.SIGHUP)
    waiting.until(reloaded.exists)
    assert container.process.poll() is None


def loaded(container):
    """The SHA-256 that the record has, as `in_force` reads it."""
    record = container.fifo.with_name("fifo.loaded")
    return in_force.read_record(record.read_text() if record.exists() else "").checksum


def test_a_record_says_what_the_program_has_loaded_at_its_start_and_at_a_reload(container):
    pid = container.folder / "pid"
    container.starts("/bin/sh", "-c", f"trap : HUP; echo $$ > {pid}; while :; do sleep 0.05; done")
    pid_of(pid)
    assert loaded(container) == loaded_files.checksum(str(container.config))
    container.config.write_text("as it is reloaded")
    assert loaded(container) != loaded_files.checksum(str(container.config))
    container.process.send_signal(signal.SIGHUP)
    waiting.until(lambda: loaded(container) == loaded_files.checksum(str(container.config)))


def test_the_record_of_a_former_container_is_gone_before_the_program_starts(container):
    container.fifo.with_name("fifo.loaded").write_text("of before")
    container.starts("/bin/true", file=str(container.folder / "never"))
    waiting.until(lambda: not container.fifo.with_name("fifo.loaded").exists())


def test_it_waits_for_a_file_and_can_be_stopped_meanwhile(container):
    file, ran = container.folder / "file", container.folder / "ran"
    container.starts("/usr/bin/touch", str(ran), file=str(file))
    waiting.until(container.is_held)
    waiting.stays(lambda: container.process.poll() is None, 0.3)
    assert not ran.exists()
    file.touch()
    assert container.process.wait(waiting.LIMIT_S) == 0 and ran.exists()
    file.unlink()
    waiting.until(lambda: not container.is_held())
    container.starts("/usr/bin/touch", str(ran), file=str(file))
    waiting.until(container.is_held)
    container.process.send_signal(signal.SIGTERM)
    assert container.process.wait(waiting.LIMIT_S) == 0


def test_a_pid_file_of_before_is_removed_and_the_fifo_is_created(container):
    container.fifo.unlink()
    stale = container.fifo.parent / "keepalived.pid"
    stale.write_text("1\n")
    container.starts("/bin/sh", "-c", f"test ! -e {stale}")
    assert container.process.wait(waiting.LIMIT_S) == 0
    assert container.fifo.is_fifo()


def test_a_program_that_stands_still_is_ended_by_who_runs_beside_it(container):
    """A stopped process takes no other signal, and its container cannot be reached but by a file."""
    pid = container.folder / "pid"
    container.starts(*writes_its_pid(pid))
    os.kill(pid_of(pid), signal.SIGSTOP)
    container.is_heard("started\n")
    end = standstill.ending(str(container.fifo))

    def ended():
        with contextlib.suppress(OSError):  # nobody reads it yet
            end()
        return container.process.poll() is not None

    waiting.until(ended)
    assert container.process.returncode == 128 + signal.SIGKILL
    assert not container.is_held()


def test_nobody_waits_for_an_end_once_the_program_has_ended(container):
    container.starts("/bin/true")
    assert container.process.wait(waiting.LIMIT_S) == 0
    with pytest.raises(OSError, match="No such device"):
        standstill.ending(str(container.fifo))()
