"""Who is measured: ours, the tool, and the floor below both."""

import json
import re
import subprocess
import tempfile
import time

from calls import Transcript
from process import Failed, run
from world import kubectl

START = 120  # seconds that a seat may take


class Attached:
    """A verb that landed or found a seat: `seconds`, `seat` (the container), `alias` and, where
    the contender says them, `calls` (processes, in sequence) and `writes`."""

    def __init__(self, seconds, seat, alias, calls=None, writes=None):
        self.seconds, self.seat, self.alias, self.calls, self.writes = seconds, seat, alias, calls, writes


class Ours:
    """The podbench on PATH."""

    def __init__(self, program, person, namespace):
        self.program, self.person, self.namespace, self.runs = program, person, namespace, 0

    def attach(self, pod, env=None):
        """`podbench attach`, fresh or a reconnect as the pod has it."""
        self.runs += 1
        log = self.person.home / f"calls-{self.runs}.jsonl"
        argv = [self.program, "attach", pod, "-n", self.namespace, "--identity", str(self.person.key), "-o", "json"]
        ran = run(argv, env={**(env or self.person.env), "PODBENCH_TRANSCRIPT": str(log)}).expect()
        try:
            report = json.loads(ran.stdout)
            seat, alias, processes = report["seat"]["name"], report["ssh"]["alias"], report["calls"]["kubectl"]
        except (ValueError, KeyError, TypeError) as e:
            raise Failed(f"attach -o json said something else: {e!r}") from e
        if not alias:
            raise Failed(f"no ssh: {report['ssh'].get('why')}")
        transcript = Transcript(log)
        if not transcript.calls:
            raise Failed("no transcript was written")
        return Attached(ran.seconds, seat, alias, (processes, transcript.sequence()), transcript.writes())


class Tool:
    """podbench 0.11.0."""

    def __init__(self, program, person, namespace):
        self.program, self.person, self.namespace = program, person, namespace

    def attach(self, pod, env=None):
        """`podbench attach`, likewise."""
        argv = [self.program, "attach", pod, "-n", self.namespace, "--identity", str(self.person.key)]
        ran = run(argv, env=env or self.person.env).expect()
        # It prints a page for people; the stanza that it wrote says the same to programs.
        stanzas = sorted((self.person.home / ".podbench" / "config.d").glob(f"{self.namespace}-{pod}-*.conf"))
        if not stanzas:
            raise Failed(f"no stanza: {' / '.join(ran.stdout.strip().splitlines()[-3:])}")
        stanza = stanzas[-1].read_text()
        alias, seat = re.search(r"^Host (\S+)", stanza, re.M), re.search(r"^\s*ProxyCommand .* -c (\S+) ", stanza, re.M)
        return Attached(ran.seconds, seat[1], alias[1])


class Floor:
    """What no tool of this kind gets under: one write, one watch, one exec, by kubectl alone.

    The pod is read beforehand. Nobody checks, rehearses, measures or reports.
    """

    def __init__(self, image, person, namespace):
        self.image, self.person, self.namespace = image, person, namespace

    def attach(self, pod, env=None):
        """Lands a container that sleeps, and runs `true` in it."""
        env = env or self.person.env
        body = json.loads(kubectl("-n", self.namespace, "get", "pod", pod, "-o", "json"))
        del body["metadata"]["resourceVersion"]  # no conflict with a late status write
        body["spec"]["ephemeralContainers"] = [self._container(body["spec"]["containers"][0]["name"])]
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/ephemeralcontainers"
        with tempfile.NamedTemporaryFile("w+") as file:
            json.dump(body, file)
            file.flush()
            began = time.perf_counter()
            run(["kubectl", "replace", "--raw", path, "-f", file.name], env=env).expect()
            self._watch(pod, env)
            run(["kubectl", "-n", self.namespace, "exec", pod, "-c", "floor", "--", "true"], env=env).expect()
            seconds = time.perf_counter() - began
        return Attached(seconds, "floor", None)

    def _container(self, target):
        context = {
            "runAsUser": 65532, "runAsGroup": 65532, "runAsNonRoot": True, "privileged": False,
            "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        return {
            "name": "floor", "image": self.image, "imagePullPolicy": "IfNotPresent", "targetContainerName": target,
            "command": ["sleep", "3600"], "securityContext": context, "terminationMessagePolicy": "File",
        }  # fmt: skip

    def _watch(self, pod, env):
        running = 'jsonpath={.status.ephemeralContainerStatuses[*].state.running.startedAt}{"\\n"}'
        argv = ["kubectl", "-n", self.namespace, "get", "pod", pod, "-w", "-o", running]
        watch = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + START
            for line in watch.stdout:
                if line.strip():
                    return
                if time.monotonic() > until:
                    break
            raise Failed("the floor's container didn't start")
        finally:
            watch.kill()
            watch.wait()
            watch.stdout.close()
