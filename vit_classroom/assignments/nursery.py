"""Where students' processes come from: on Linux, copies of one that has imported torch already.

Importing torch takes seconds, and a class of two hundred would wait for it two hundred times. So a process
imports it once, calls nothing of it, and is forked for each notebook. Elsewhere, where forking is not safe
or not there, each process starts from scratch.
"""

import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
from typing import IO

from vit_classroom.assignments.limits import set_apart

DIE_WITH_PARENT = 1  # Linux: PR_SET_PDEATHSIG
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
GIVEN = re.compile(
    "PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|TMPDIR|TZ|VIRTUAL_ENV|LD_LIBRARY_PATH|MPLCONFIGDIR|XDG_CACHE_HOME|"
    "PYTHON.*|(LC|CONDA|DYLD|OMP|KMP|MKL|OPENBLAS|CUDA|VIT|NIX_LD)(_.*)?"
)
"""Variables that a student's process is given: what it prints and what its errors say, its student reads."""
SECRET = re.compile("TOKEN|KEY|SECRET|PASS", re.IGNORECASE)
"""What is in the names of those that it never is."""
NURSERY = "from vit_classroom.assignments import nursery; nursery.serve({fd})"
ALONE = "from vit_classroom.assignments import nursery; nursery.serve_alone({megabytes})"


class Nursery:
    """A process that has imported torch and waits to be copied."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", NURSERY.format(fd=theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**environment(), **ONE_THREAD},
            )

    def new(self, megabytes: int) -> tuple[IO[bytes], IO[bytes], int]:
        """Return where to read from a new process, where to write to it, and its number.

        Raises:
            OSError: the nursery is gone.
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            socket.send_fds(self.control, [str(megabytes).encode()], [theirs.fileno()])
            number = int(self.control.recv(64) or 0)
            if not number:
                raise OSError("the process from which students' processes are made has ended")
            return ours.makefile("rb"), ours.makefile("wb"), number


def environment() -> dict[str, str]:
    """Return what a student's process is given of the environment; on Windows that is nearly all."""
    names = os.environ if sys.platform == "win32" else filter(GIVEN.fullmatch, os.environ)
    return {name: os.environ[name] for name in names if not SECRET.search(name)}


_nurseries: list[Nursery] = []


def nursery() -> Nursery | None:
    """Return this process's nursery, made when it is first asked for; None where there is no safe one."""
    if sys.platform != "linux":
        return None
    if not _nurseries or _nurseries[0].process.poll() is not None:
        _nurseries[:] = [Nursery()]
    return _nurseries[0]


def serve(fd: int) -> None:
    """Be a nursery: copy this process for each message that comes."""
    from vit_classroom.assignments import student_process

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the copies
    control = socket.socket(fileno=fd)
    while True:
        message, fds, *_ = socket.recv_fds(control, 64, 1)
        if not message:
            return
        number = os.fork()
        if number == 0:
            with contextlib.suppress(BaseException):
                apart = _alone(control)
                connection = socket.socket(fileno=fds[0])
                streams = connection.makefile("rb"), connection.makefile("wb")
                student_process.serve(*streams, apart, int(message))
            os._exit(0)
        os.close(fds[0])


def end_with_parent() -> None:
    """On Linux, let this process end when the one that made it does, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)


def _alone(control: socket.socket) -> bool:
    """Go on as a process that is set apart where that is possible, and tell its number; say whether it is."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    number, apart = os.getpid(), set_apart()
    end_with_parent()
    if apart:
        try:
            number = os.fork()
        except OSError:
            control.send(b"0")
            raise
        if number:
            control.send(str(number).encode())
            control.close()
            os.waitpid(number, 0)
            os._exit(0)
        end_with_parent()
    else:
        control.send(str(number).encode())
    control.close()
    os.setsid()
    return apart


def serve_alone(megabytes: int) -> None:
    """Be a student's process without a nursery, on the standard streams."""
    from vit_classroom.assignments import student_process

    student_process.serve(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), False, megabytes)
