"""kubectl processes: how many, and how many one after another."""

import json
import shutil
from pathlib import Path

# Notes each start and end; the program behind it is asked as it would have been.
WRAPPER = """#!/bin/bash
printf 'start %s %s\\n' "$$" "$EPOCHREALTIME" >>'{log}'
'{kubectl}' "$@"
code=$?
printf 'end %s %s\\n' "$$" "$EPOCHREALTIME" >>'{log}'
exit $code
"""

# The first of these words in an argv is its verb. A rehearsal counts as a write.
READS = {"api-resources", "auth", "config", "exec", "get", "logs", "top", "version", "wait"}
WRITES = {"annotate", "apply", "create", "debug", "delete", "edit", "label", "patch", "replace", "set"}


class Wrapped:
    """A kubectl in front of PATH that counts."""

    def __init__(self, folder):
        folder = Path(folder)
        folder.mkdir()
        self.log = folder / "log"
        self.log.touch()
        self.folder = folder / "path"
        self.folder.mkdir()
        program = self.folder / "kubectl"
        program.write_text(WRAPPER.format(log=self.log, kubectl=shutil.which("kubectl")))
        program.chmod(0o755)

    def env(self, env):
        """The same environment with that kubectl."""
        return {**env, "PATH": f"{self.folder}:{env['PATH']}"}

    def take(self):
        """(processes, in sequence) since the last time."""
        calls = {}
        for line in self.log.read_text().splitlines():
            edge, process, at = line.split()
            calls.setdefault(process, {})[edge] = float(at.replace(",", "."))
        self.log.write_text("")
        spans = [(c["start"], c.get("end", c["start"])) for c in calls.values()]
        return len(spans), sequence(spans)


class Transcript:
    """The JSON lines that the launcher writes of a run."""

    def __init__(self, path):
        path = Path(path)
        self.calls = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def sequence(self):
        """How many one after another."""
        return sequence([(c["startedMs"], c["endedMs"]) for c in self.calls])

    def writes(self):
        """How many of them ask the server to change something."""
        verbs = (next((w for w in c["argv"] if w in READS | WRITES), None) for c in self.calls)
        return sum(1 for verb in verbs if verb in WRITES)


def sequence(spans):
    """The longest chain of calls of which each starts after the one before has ended."""
    chain, free = 0, float("-inf")
    for start, end in sorted(spans, key=lambda span: span[1]):
        if start >= free:
            chain, free = chain + 1, end
    return chain
