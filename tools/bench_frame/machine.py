"""Describe the machine of the measurement.

No host name: the page is meant to be passed on.
"""

import os
import platform
import re
import subprocess
import time
from pathlib import Path


def _read(path):
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _first_line(*argv):
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else ""


def _cpu():
    found = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.M)
    return found.group(1) if found else platform.machine()


def _memory():
    found = re.search(r"^MemTotal:\s*(\d+)", _read("/proc/meminfo"), re.M)
    return f"{int(found.group(1)) / 2**20:.0f} GiB" if found else ""


def _system():
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)', _read("/etc/os-release"), re.M)
    return found.group(1) if found else platform.system()


def describe(root):
    """A flat dictionary, in the order it should be read; what is unknown is left out."""
    facts = {
        "cpu": f"{_cpu()}, {len(os.sched_getaffinity(0))} CPUs, {platform.machine()}",
        "memory": _memory(),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _system(),
        "cc": _first_line(os.environ.get("CC", "cc"), "--version"),
        "load": "%.1f before the run" % os.getloadavg()[0],
        "commit": _first_line("git", "-C", str(root), "describe", "--always", "--dirty"),
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }
    return {key: value for key, value in facts.items() if value}


def is_busy():
    """Others keep more than half a CPU: the figures will be noisy."""
    return os.getloadavg()[0] > 0.5
