"""Programs, timed. The clock runs from just before the start to the reaped end."""

import subprocess
import sys
import tempfile
import threading
import time


class Failed(Exception):
    """A step that didn't do what it is measured for."""


class Ran:
    """What a program did: `seconds`, `code`, `stdout` and `stderr`."""

    def __init__(self, argv, seconds, code, stdout, stderr):
        self.argv, self.seconds, self.code, self.stdout, self.stderr = argv, seconds, code, stdout, stderr

    def expect(self):
        """Itself where the program exited with 0."""
        if self.code != 0:
            said = (self.stderr.strip() or self.stdout.strip()).splitlines()[-3:]
            raise Failed(f"{' '.join(self.argv[:4])} … exited with {self.code}: {' / '.join(said)}")
        return self


def run(argv, env=None, stdin=None, stdout=None, limit=180):
    """Runs a program to its end, which comes by force after `limit` seconds.

    Its output goes to files, because an ssh master lives on and would hold a pipe; `stdin` and
    `stdout` are open files. The limit is a timer, because `wait(timeout=…)` looks only every 50 ms.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        child = subprocess.Popen(
            argv, env=env, stdin=stdin or subprocess.DEVNULL, stdout=stdout or out, stderr=err, close_fds=False
        )
        timer = threading.Timer(limit, child.kill)
        timer.start()
        try:
            code = child.wait()
            seconds = time.perf_counter() - began
        finally:
            timer.cancel()
            if child.poll() is None:
                child.kill()
                child.wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Ran(argv, seconds, code, *texts)


def say(words):
    """Progress, on stderr."""
    print(f"bench: {words}", file=sys.stderr, flush=True)
