"""What is measured on: a namespace with pods of the zoo, and a person for each contender."""

import contextlib
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from process import run, say

ZOO = Path(__file__).parent.parent / "cluster" / "zoo.sh"
LABEL = "pod-security.kubernetes.io/enforce=restricted"


def kubectl(*argv, **more):
    """An admin's kubectl, which has to succeed; what it printed."""
    return run(["kubectl", *argv], **more).expect().stdout


class Namespace:
    """A namespace under Pod Security `restricted`; the guard deletes it."""

    def __init__(self):
        self.name = f"bench-{os.getpid()}"

    def __enter__(self):
        kubectl("create", "namespace", self.name)
        try:
            kubectl("label", "namespace", self.name, LABEL)
            run([str(ZOO), self.name, "odd-ids"]).expect()
            self.template = json.loads(kubectl("-n", self.name, "get", "pod", "odd-ids", "-o", "json"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        run(["kubectl", "delete", "namespace", self.name, "--wait=false"])

    @contextlib.contextmanager
    def pods(self, names):
        """Copies of `odd-ids`, running and left alone for a moment, gone afterwards.

        All on its node: nobody is measured on a busier one.
        """
        items = []
        for name in names:
            metadata = {"name": name, "labels": self.template["metadata"]["labels"]}
            items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.template["spec"]})
        with tempfile.NamedTemporaryFile("w+") as file:
            json.dump({"apiVersion": "v1", "kind": "List", "items": items}, file)
            file.flush()
            kubectl("-n", self.name, "create", "-f", file.name)
        pods = [f"pod/{name}" for name in names]
        try:
            kubectl("-n", self.name, "wait", "--for=condition=Ready", "--timeout=60s", *pods)
            time.sleep(1)  # the last status writes: a PUT right after a landing meets a conflict
            yield
        finally:
            run(["kubectl", "-n", self.name, "delete", "--now", *pods])


class Person:
    """A home folder of one's own with an ed25519 key; the guard ends its ssh masters."""

    def __init__(self, image):
        self._home = tempfile.TemporaryDirectory(prefix="pbb")  # short: it ends up in socket paths
        self.home = Path(self._home.name)
        self.key = self.home / ".ssh" / "id_ed25519"
        self.key.parent.mkdir(mode=0o700)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(self.key)]).expect()
        self.ssh_config = self.home / "ssh_config"
        self.ssh_config.write_text(f"Include {self.home}/.podbench/config.d/*.conf\n")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PODBENCH_") and k != "SSH_AUTH_SOCK"}
        self.env = {**kept, "HOME": str(self.home), "TERM": "dumb", "PODBENCH_IMAGE": image}
        self.masters = set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for alias in list(self.masters):
            self.hang_up(alias)
        self._home.cleanup()

    def ssh(self, alias, *command, master=False, **more):
        """ssh with the stanzas of this home: a connection of its own, or over a master."""
        if master:
            self.masters.add(alias)
        apart = [] if master else ["-S", "none"]
        return run(["ssh", "-F", str(self.ssh_config), *apart, alias, *command], env=self.env, **more)

    def hang_up(self, alias):
        """Ends the master."""
        run(["ssh", "-F", str(self.ssh_config), "-O", "exit", alias], env=self.env)
        self.masters.discard(alias)


def machine():
    """Cores, kernel and memory, as a line; never a name."""
    meminfo = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    gib = int(meminfo["MemTotal"].split()[0]) / 1024**2
    kernel = os.uname()
    return f"{os.cpu_count()} cores, {gib:.0f} GiB of memory, {kernel.sysname} {kernel.release} {kernel.machine}"


def versions():
    """What else takes part, as a line."""
    said = json.loads(kubectl("version", "-o", "json"))
    node = json.loads(kubectl("get", "nodes", "-o", "json"))["items"][0]["status"]["nodeInfo"]
    ssh = subprocess.run(["ssh", "-V"], stderr=subprocess.PIPE, text=True, check=True).stderr.split(",")[0]
    return (
        f"kubectl {said['clientVersion']['gitVersion']}, Kubernetes {said['serverVersion']['gitVersion']}, "
        f"{node['containerRuntimeVersion']}, {ssh.strip()}"
    )


def busy():
    """Warns where others use the machine: the figures would be theirs."""
    load, cores = os.getloadavg()[0], os.cpu_count()
    if load > cores / 2:
        say(f"a load of {load:.1f} on {cores} cores: these figures won't be quiet ones")
