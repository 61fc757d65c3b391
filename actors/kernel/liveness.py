"""Who this process is, and whether another one is still alive.

Two processes can be compared only when boot, pid namespace, pid and start time are all
known; otherwise the honest answer is that nobody knows. The facts come from Linux'
``/proc``; where that is missing they are not known.
"""

import os
import socket
from pathlib import Path

from ...storage.commands import OwnerFacts

_PROC = Path("/proc")
_START_TIME_FIELD = 19
"""Of ``/proc/PID/stat``, counted after the command's closing parenthesis."""


def this_process() -> OwnerFacts:
    """Describe this process."""
    pid = os.getpid()
    return OwnerFacts(
        host=socket.gethostname(),
        pid=pid,
        boot_id=_boot_id(),
        pid_namespace=_pid_namespace(),
        process_start=_process_start(pid),
    )


def is_alive(owner: OwnerFacts) -> bool | None:
    """Tell whether the owner's process lives; None when that cannot be known."""
    here = (_boot_id(), _pid_namespace())
    if None in here or owner.process_start is None:
        return None
    if here != (owner.boot_id, owner.pid_namespace):
        return None
    try:
        return _start_of(owner.pid) == owner.process_start
    except OSError:
        return None


def _boot_id() -> str | None:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _pid_namespace() -> str | None:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return None


def _process_start(pid: int) -> str | None:
    try:
        return _start_of(pid)
    except OSError:
        return None


def _gone(pid: int) -> None:
    """Make sure that nobody has this pid, for ``/proc`` may hide other users' processes.

    Raises:
        OSError: Somebody has it, and may not be looked at.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return
    raise PermissionError(f"process {pid} exists and is hidden")


def _start_of(pid: int) -> str | None:
    """Read when a process started; None when there is none that runs.

    Raises:
        OSError: Nothing could be read, which does not prove that nobody is there.
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        _gone(pid)
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[_START_TIME_FIELD]
