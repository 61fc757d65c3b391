"""The peak memory of this process."""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_mib() -> float:
    """Read the peak of this process' resident memory.

    Linux lets a process begin with the ru_maxrss of the one that started it, so its
    own high-water mark is preferred.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
