"""One cell of the field test: a list under one system on a fresh control plane. `run` gives what was measured."""

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "real"))

import lists
from api import Client
from kueue import KUEUE, QUEUE, Kueue
from plane import DEPLOY, Failed, Plane, wait_for
from watch import Observer, measures, run_time

NAMESPACE = "team"
# Ports of a plane: etcd, its peers, API server, ours, Kueue.
NUM_PORTS = 5
# Whose requests are counted, by user.
USERS = {"system:kube-scheduler": "kube-scheduler", "kueue": "kueue", "system:serviceaccount:pleach:pleach": "pleach"}
CLOCK = os.sysconf("SC_CLK_TCK")


class System:
    """What is tried: `kube-scheduler`, `native-gangs` (it, with the gates for gangs), `kueue`, `pleach`, `kueue+pleach-order`, and
    the two with Kueue as `kueue-tas` with its topology-aware scheduling; where ours is part of it `NAME[:POLICY[:KEY=VALUE,...]]` with
    keys of the controller's settings, those of `[rounds]` after `rounds.`, and `estimates=none`: users say no run times."""

    NAMES = ("kube-scheduler", "native-gangs", "kueue", "kueue-tas", "pleach", "kueue+pleach-order", "kueue-tas+pleach-order")

    def __init__(self, text):
        self.text = text
        self.name, policy, more = (text.split(":", 2) + ["", ""])[:3]
        if self.name not in self.NAMES:
            raise Failed(f"system {self.name!r}: use one of {', '.join(self.NAMES)}")
        self.policy = policy or "sjf"
        self.settings = dict(one.split("=", 1) for one in more.split(",") if one)
        self.says_run_times = self.settings.pop("estimates", "exact") != "none"
        self.has_kueue, self.has_ours = "kueue" in self.name, "pleach" in self.name
        self.has_gates, self.knows_nodes = self.name == "pleach", "-tas" in self.name


class FieldPlane(Plane):
    """A plane whose API server counts requests by user."""

    TRIED = {}

    def start_counted_api(self):
        etc = self.folder / "etc"
        with open(etc / "tokens.csv", "a") as tokens:
            tokens.write(f'{KUEUE},kueue,kueue,"system:masters"\n')
        rules = [{"level": "Metadata", "users": list(USERS)}, {"level": "None"}]
        (etc / "audit.json").write_text(json.dumps({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": rules}))
        self.start_api(f"--audit-policy-file={etc / 'audit.json'}", f"--audit-log-path={self.folder / 'log' / 'audit'}",
                       "--audit-log-maxsize=1000")

    def calls(self):
        """Requests so far by component."""
        found = dict.fromkeys(USERS.values(), 0)
        for line in self.log_lines("audit"):
            user = line.split('"user":{"username":"', 1)[-1].split('"', 1)[0]
            if user in USERS:
                found[USERS[user]] += 1
        return found

    def log_lines(self, name):
        path = self.folder / "log" / name
        return path.read_text().splitlines() if path.exists() else []

    def cpu_s(self):
        """Processor time so far by process, s."""
        found = {}
        for name, process in self.processes.items():
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            found[name] = (int(fields[11]) + int(fields[12])) / CLOCK
        return found


class Cell:
    """A list, a system and whether gangs wait for each other ("barrier") or not ("free")."""

    def __init__(self, folder, binaries, program, port, system, number, mode, scale, limit_s):
        self.system, self.jobs, self.mode, self.scale, self.limit_s = system, lists.make(number), mode, scale, limit_s
        self.port, self.num_nodes = port, lists.NUM_NODES
        self.plane = FieldPlane(folder, binaries, program, range(port, port + 4))
        if system.name == "native-gangs":
            self.plane.gates = ("GenericWorkload", "GangScheduling", "WorkloadWithJob")
        self.client = Client(self.plane)

    def up(self):
        plane, client = self.plane, self.client
        plane.start_etcd()
        plane.start_counted_api()
        wait_for("the API server is ready", lambda: client.ask("GET", "/readyz")[0] == 200)
        wait_for("the default namespace", lambda: client.ask("GET", "/api/v1/namespaces/default")[0] == 200)
        plane.start_manager("job-controller")
        plane.start_kwok()
        labels = {"pleach/drive": "true"} if self.system.has_gates else {}
        client.must("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
        for number in range(self.num_nodes):
            client.add_node(f"g{number + 1}", lists.GPUS_PER_NODE)
        if self.system.has_kueue:
            components = Path(plane.binaries) / "kueue-components"
            num_gpus = self.num_nodes * lists.GPUS_PER_NODE
            Kueue(plane, client, components, self.port + 4, num_gpus, self.system.knows_nodes).up(NAMESPACE)
        if self.system.has_ours:
            self.start_ours()
        plane.start_scheduler()
        self.probe()

    def start_ours(self):
        """With the manifests' rights and the controller's defaults; the time between rounds is scaled like the list."""
        plane, settings = self.plane, dict(self.system.settings)
        plane.kubectl("apply", "-k", str(DEPLOY / ("shadow" if self.system.has_gates else "order")))
        rounds = "\n".join(f"{key[7:]} = {value}" for key, value in settings.items() if key.startswith("rounds."))
        keys = {"tick_s": 2.0 / self.scale}
        keys |= {key: json.loads(value) for key, value in settings.items() if not key.startswith("rounds.")}
        if not self.system.has_gates:
            keys["drive"] = "order"
        plane.write_settings(rounds=rounds, **keys)
        if self.system.has_gates:
            text = plane.kubectl("create", "--dry-run=client", "-o", "json", "-f", str(DEPLOY / "live/webhook.yaml"))
            config = json.loads(text)
            for webhook in config["webhooks"]:
                webhook["clientConfig"] = {"url": f"https://127.0.0.1:{plane.ours_port}/webhook", "caBundle": plane.authority()}
            self.client.must("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", config)
        plane.start_ours(self.system.policy)
        wait_for("two rounds of the controller", lambda: self.num_rounds() >= 2)

    def status(self):
        try:
            return json.loads((self.plane.folder / "state/status.json").read_text())
        except (OSError, ValueError):
            return {}

    def num_rounds(self):
        return self.status().get("num_rounds", 0)

    def probe(self):
        """One Job through everything, twice: webhooks are known and caches are filled."""
        for number in range(2):
            job = lists.Job(f"probe-{number}", 0, 1, 1, 0.2)

            def is_made(job=job):
                return self.client.ask("POST", self.path(), self.body(job))[0] in (201, 409)
            wait_for("a Job is taken", is_made, pause_s=0.5)
            wait_for("a Job ends", lambda job=job: self.client.must("GET", f"{self.path()}/{job.name}")
                     .get("status", {}).get("succeeded") == 1, pause_s=0.2)
            time.sleep(1.2)

    def path(self):
        return f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"

    def body(self, job):
        said = {"pleach/estimate-s": str(max(1, round(job.run_s)))} if self.system.says_run_times else {}
        notes = dict(said)
        if self.mode == "free" or not job.is_gang:
            notes["test/run"] = run_time(job, self.scale)
        if self.system.knows_nodes:
            notes["kueue.x-k8s.io/podset-unconstrained-topology"] = "true"
        resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": str(job.gpus)}}
        body = {"metadata": {"name": job.name, "labels": {}}, "spec": {
            "completions": job.num_pods, "parallelism": job.num_pods, "completionMode": "Indexed",
            "template": {"metadata": {"annotations": notes}, "spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1", "resources": resources}]}}}}
        if self.system.has_kueue:
            body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = QUEUE
            body["spec"]["suspend"] = True
            # The order of workloads is decided before there are pods.
            body["metadata"]["annotations"] = said
        return body

    def run(self):
        self.up()
        observer = Observer(self.client, NAMESPACE, self.jobs, self.mode == "barrier", self.scale)
        observer.start()
        seen, calls, cpu_s = observer.seen, self.plane.calls(), self.plane.cpu_s()
        began_s, loads = time.monotonic(), []
        for job in self.jobs:
            time.sleep(max(0, began_s + job.at_s / self.scale - time.monotonic()))
            seen.posted_s[job.name] = time.monotonic()
            self.client.must("POST", self.path(), self.body(job))
        while len(seen.done_s) < len(self.jobs) and time.monotonic() < began_s + self.limit_s / self.scale:
            time.sleep(0.1)
            loads.append(os.getloadavg()[0])
        end_s = time.monotonic()
        observer.stop()
        after_calls, after_cpu_s = self.plane.calls(), self.plane.cpu_s()
        with observer.lock:
            found = measures(seen, self.jobs, end_s, self.scale, lists.NUM_NODES * lists.GPUS_PER_NODE)
        return found | {
            "calls": {name: num - calls[name] for name, num in after_calls.items()},
            "cpu_s": {name: value - cpu_s.get(name, 0) for name, value in after_cpu_s.items()},
            "wall_s": end_s - began_s, "load": sum(loads) / max(1, len(loads)), "version": self.plane.version,
        }
