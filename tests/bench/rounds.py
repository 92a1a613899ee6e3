"""The rounds: what is done to whom, in which order.

A round is a fresh pod for each contender, in an order that changes: fresh attach, reconnect, ssh,
throughput, the idle agent. Round 0 warms the caches and counts kubectl processes with a wrapper,
which would cost time; nothing of it is timed.
"""

import contextlib
import hashlib
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path

from calls import Wrapped
from figures import FLOOR, OURS, TOOL, Samples
from process import Failed, run, say

BLOB = 100_000_000  # bytes, both ways
IDLE_ROUNDS = 5  # 5 s each
PLACE = "/tmp/podbench-bench"  # in the seat

# Run by a shell in the seat: the agent's RSS in KiB and its threads' voluntary switches, 5 s apart.
IDLE = """
for p in /proc/[0-9]*; do
  case $(tr '\\0' ' ' <$p/cmdline) in *podbench" agent "*) agent=$p ;; esac
done 2>/dev/null
switches() { cat $agent/task/*/status | awk '/^voluntary/ { n += $2 } END { print n }'; }
before=$(switches); sleep 5; after=$(switches)
awk '/^VmRSS/ { print $2 }' $agent/status
echo $((after - before))
"""


class Bench:
    """One run."""

    def __init__(self, namespace, contenders, connects):
        self.namespace, self.contenders, self.connects = namespace, contenders, connects
        self.samples, self.troubles, self.miscounted = Samples(), [], False
        self.lost = {who: 0 for who in contenders if who != FLOOR}
        self.blob = tempfile.NamedTemporaryFile()
        left = BLOB
        while left:
            left -= self.blob.write(random.randbytes(min(left, 1 << 20)))
        self.blob.flush()
        self.digest = digest(self.blob.name)

    def trouble(self, words):
        """Said now and in the page."""
        say(words)
        self.troubles.append(words)

    def count(self, folder):
        """Round 0: kubectl processes by a wrapper. Where ours fails, there is nothing to measure."""
        names = {who: f"{who}-0" for who in self.contenders}
        with self.namespace.pods(names.values()):
            for who, contender in self.contenders.items():
                wrapped = Wrapped(Path(folder) / who)
                for row in ("fresh", "again") if who != FLOOR else ("fresh",):
                    with self.step(f"count, {who}") if who != OURS else contextlib.nullcontext():
                        attached = contender.attach(names[who], wrapped.env(contender.person.env))
                        processes, chain = wrapped.take()
                        if attached.calls is None:
                            self.samples.add(f"{row}-calls", who, processes)
                            self.samples.add(f"{row}-chain", who, chain)
                        elif attached.calls[0] != processes:
                            self.miscounted = True
                            self.trouble(f"{row}: {who} reports {attached.calls[0]} kubectl processes, not {processes}")

    def round(self, at, rounds):
        """A round of everything."""
        self.samples.round = at
        order = rotated(list(self.contenders), at)
        names = {who: f"{who}-{at}" for who in order}
        with self.namespace.pods(names.values()):
            seats = {}
            for who in order:
                with self.step(f"fresh attach, {who}"):
                    seats[who] = self.attach("fresh", who, names[who])
            seated = [who for who in order if who in seats and who != FLOOR]
            for who in seated:
                with self.step(f"reconnect, {who}"):
                    seats[who] = self.attach("again", who, names[who])
            self.connect(seats, seated, -(-self.connects // rounds))
            for who in seated:
                with self.step(f"ssh over a master, {who}"):
                    self.master(who, seats[who])
            if at <= IDLE_ROUNDS:
                time.sleep(1)  # what is left of the connections
                self.idle(names, seats, seated)
        self.help()
        medians = (self.samples.of("fresh", who)[-1:] for who in order)
        say(f"round {at}/{rounds}: " + ", ".join(f"{w} {m[0]:.2f} s" for w, m in zip(order, medians) if m))

    @contextlib.contextmanager
    def step(self, what):
        """A step that may fail without ending the run."""
        try:
            yield
        except (Failed, KeyError, TypeError, ValueError, OSError) as e:
            self.trouble(f"round {self.samples.round}: {what}: {e}")

    def attach(self, row, who, pod):
        """One attach, timed and counted."""
        attached = self.contenders[who].attach(pod)
        self.samples.add(row, who, attached.seconds)
        if attached.calls:
            self.samples.add(f"{row}-calls", who, attached.calls[0])
            self.samples.add(f"{row}-chain", who, attached.calls[1])
        if attached.writes is not None and row == "again":
            self.samples.add("again-writes", who, attached.writes)
        return attached

    def connect(self, seats, seated, times):
        """Cold connections, each with a process of its own."""
        for n in range(times):
            for who in rotated(seated, n):
                ran = self.contenders[who].person.ssh(seats[who].alias, "echo", f"connect-{n}", limit=30)
                if ran.code == 0 and ran.stdout == f"connect-{n}\n":
                    self.samples.add("cold", who, ran.seconds)
                else:
                    self.lost[who] += 1
                    say(f"connect {n}, {who}: exit {ran.code}: {ran.stderr.strip()[-200:]}")

    def master(self, who, seat):
        """Over one connection that stays: short commands, and 100 MB each way."""
        person = self.contenders[who].person
        try:
            person.ssh(seat.alias, "true", master=True).expect()
            for _ in range(5):
                self.samples.add("mux", who, person.ssh(seat.alias, "true", master=True).expect().seconds)
            with open(self.blob.name, "rb") as source:
                up = person.ssh(seat.alias, f"cat >{PLACE}", master=True, stdin=source).expect()
            there = person.ssh(seat.alias, f"sha256sum <{PLACE}", master=True).expect().stdout.split()[0]
            with tempfile.NamedTemporaryFile() as back:
                down = person.ssh(seat.alias, f"cat {PLACE}", master=True, stdout=back).expect()
                here = digest(back.name)
            for row, ran, came in ("up", up, there), ("down", down, here):
                if came != self.digest:
                    raise Failed(f"100 MB {row}: the digest differs")
                self.samples.add(row, who, BLOB / ran.seconds / 1e6)
        finally:
            person.hang_up(seat.alias)

    def idle(self, names, seats, seated):
        """The agents, left alone, at the same time."""
        asked = {}
        for who in seated:
            argv = ["kubectl", "-n", self.namespace.name, "exec", "-i", names[who], "-c", seats[who].seat]
            asked[who] = subprocess.Popen([*argv, "--", "sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            asked[who].stdin.write(IDLE)
            asked[who].stdin.close()
        for who, process in asked.items():
            with self.step(f"idle, {who}"), process.stdout:
                rss, switches = process.stdout.read().split()
                process.wait()
                self.samples.add("rss", who, int(rss))
                self.samples.add("wakes", who, int(switches))

    def help(self):
        """The start of the program, beside one that does nothing."""
        programs = {OURS: 10, TOOL: 1, FLOOR: 10}
        for who, times in programs.items():
            if who in self.contenders:
                argv = ["true"] if who == FLOOR else [self.contenders[who].program, "--help"]
                for _ in range(times):
                    self.samples.add("help", who, run(argv, env=self.contenders[who].person.env).expect().seconds)

    def total(self):
        """Adds what is one figure of all rounds."""
        for who, lost in self.lost.items():
            self.samples.add("lost", who, lost)

    def sizes(self, row, who, archive):
        """Of an image, from the JSON beside its archive."""
        if archive:
            said = json.loads(Path(archive).with_suffix(".json").read_text())
            self.samples.add(row, who, said["unpackedBytes"])
            self.samples.add(f"{row}-packed", who, said["compressedBytes"])


def rotated(items, by):
    """Nobody is always first."""
    by %= len(items) or 1
    return items[by:] + items[:by]


def digest(path):
    """sha256, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
