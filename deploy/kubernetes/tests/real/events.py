"""Ordinary events of a production week, and users who look for the front of the queue, on a real control plane."""

import base64
import json
import time
from pathlib import Path

from api import GATE, MERGE, OTHER, SERVE, TEAM, gates, notes, template
from plane import expect, wait_for

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class Events:
    """Steps beside those of `Steps`, which has the plane, the watcher and the ways to submit."""

    def __init__(self, steps):
        self.steps, self.plane, self.client = steps, steps.plane, steps.client

    @property
    def watcher(self):
        return self.steps.watcher

    def restart(self, **keys):
        self.plane.kill("pleach")
        self.plane.write_settings(**keys)
        self.steps.start_ours()

    def turns(self):
        """Six older jobs wait for three nodes: whatever others ask for that the tables cannot say, they come after them."""
        steps = self.steps
        wide = [steps.add("wide", 8, life_s=4, estimate_s=1) for _ in range(3)]
        wait_for("the nodes are full", lambda: all(self.watcher.node_of(name) for name in wide))
        begin = len(self.watcher.lifts)
        older = [steps.add("older", 8, life_s=0.5, estimate_s=100) for _ in range(6)]
        time.sleep(1.1)  # the API server keeps whole seconds of arrivals
        hard = {"maxSkew": 9, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"no": "pod"}}}
        nobody = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"no": "pod"}}}]
        not_in = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["g9"]}]}]
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        ways = {
            "spread": {"topologySpreadConstraints": [hard]},
            "apart": {"affinity": {"podAntiAffinity": {required: nobody}}},
            "notin": {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": not_in}}}},
            "named": {"nodeSelector": {"kubernetes.io/hostname": "g2"}},
        }
        newer = [steps.add(name, 8, life_s=0.3, estimate_s=100, spec=spec) for name, spec in ways.items()]
        newer += [steps.add("uneven", num, life_s=0.3, estimate_s=100, gang=("uneven", 2)) for num in (7, 8)]
        # A held pod is not freed by a patch of its selector.
        patched = steps.add("patched", 8, life_s=0.3, estimate_s=100)
        self.client.must("PATCH", f"/api/v1/namespaces/{TEAM}/pods/{patched}",
                         {"spec": {"nodeSelector": {"kubernetes.io/hostname": "g1"}}}, MERGE)
        steps.until_all_ended()
        order = self.watcher.lifts[begin:]
        last = max(order.index(name) for name in older)
        early = [name for name in (*newer, patched) if order.index(name) < last]
        expect(not early, f"{early} went before the last of {older}: {order}")

    def taints(self):
        """A tainted pool is for those that tolerate the taint, and for no others."""
        taint = {"key": "dedicated", "value": "team-a", "effect": "NoSchedule"}
        self.client.must("PATCH", "/api/v1/nodes/g3", {"spec": {"taints": [taint]}}, MERGE)
        steps = self.steps
        time.sleep(1)
        plain = [steps.add("plain", 8, life_s=1.5) for _ in range(3)]
        own = steps.add("own", 8, life_s=0.5, spec={"tolerations": [{"key": "dedicated", "operator": "Exists"}]})
        wait_for("the tolerant pod is bound", lambda: self.watcher.node_of(own))
        steps.until_all_ended()
        nodes = [node for name, node in self.watcher.binds if name in plain]
        self.client.must("PATCH", "/api/v1/nodes/g3", {"spec": {"taints": []}}, MERGE)
        expect("g3" not in nodes and len(nodes) == 3, f"pods that do not tolerate the taint ran on {nodes}")

    def volume(self, number, node, is_bound):
        """A volume that only one node reaches, and its claim: bound to it, or to be bound by kube-scheduler once a pod comes."""
        near = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
        name, storage = f"local-{number}", f"storage-{number}"
        self.client.must("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "metadata": {"name": storage}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})
        room = {"storage": "1Gi"}
        self.client.must("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": {
            "capacity": room, "accessModes": ["ReadWriteOnce"], "storageClassName": storage, "local": {"path": "/data"},
            "persistentVolumeReclaimPolicy": "Retain", "nodeAffinity": {"required": {"nodeSelectorTerms": near}}}})
        claim = {"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": storage, "resources": {"requests": room}}}
        if is_bound:
            claim["spec"]["volumeName"] = name
        self.client.must("POST", f"/api/v1/namespaces/{TEAM}/persistentvolumeclaims", claim)
        if is_bound:
            path = f"/api/v1/namespaces/{TEAM}/persistentvolumeclaims/{name}"
            wait_for("the claim is bound", lambda: self.client.must("GET", path).get("status", {}).get("phase") == "Bound")
        return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]

    def places(self):
        """Volumes, ports of the host, a device that one node has, what a pod asks for as a whole: pods go where they can, at once."""
        steps = self.steps
        self.plane.start_manager_of_volumes()
        self.restart(release_limit_s=3)
        evicted = len(self.watcher.deleted())
        name = steps.add("near", 2, life_s=0.3, spec={"volumes": self.volume(1, "g3", is_bound=True)})
        wait_for("the pod is where its volume is", lambda: self.watcher.node_of(name) == "g3")
        self.client.set_node("g2", {"capacity": {"rdma/hca": "1"}, "allocatable": {"rdma/hca": "1"}})
        main = template(1)["spec"]["containers"][0]
        rich = {**main, "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1", "rdma/hca": "1"}}}
        name = steps.add("rich", 1, life_s=0.3, spec={"containers": [rich]})
        wait_for("the pod is where the device is", lambda: self.watcher.node_of(name) == "g2")
        port = {**main, "ports": [{"containerPort": 29500, "hostPort": 29500}]}
        gang = [steps.add("port", 1, life_s=1, gang=("port", 4), spec={"containers": [port]}) for _ in range(4)]
        wait_for("the gang runs", lambda: all(self.watcher.node_of(name) for name in gang))
        expect(len({self.watcher.node_of(name) for name in gang}) == 4, "pods of one port are on one node")
        bare = {**main, "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        whole = {"containers": [bare], "resources": {"requests": {"cpu": "60"}, "limits": {"cpu": "60"}}}
        names = [steps.add("whole", 1, life_s=1, spec=whole) for _ in range(3)]
        wait_for("pods of 60 CPUs run", lambda: all(self.watcher.node_of(name) for name in names))
        steps.until_all_ended()
        expect(len(self.watcher.deleted()) == evicted, "a pod was made anew")

    def refused(self):
        """A reason that no object shows before kube-scheduler binds: the pod is made anew, and no node is tried twice."""
        steps, job = self.steps, "hidden"
        body = template(2, life_s=0.3)
        body["spec"] |= {"volumes": self.volume(2, "g4", is_bound=False)}
        ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        self.client.must("POST", f"/apis/batch/v1/namespaces/{TEAM}/jobs", {"metadata": {"name": job}, "spec": {
            "podFailurePolicy": {"rules": [ignore]}, "template": body}})
        wait_for("the pod runs", lambda: any(name.startswith(f"{job}-") for name in self.watcher.ends), limit_s=120)
        pods = {pod["metadata"]["name"]: notes(pod) for pod in (*self.watcher.deleted(), *self.watcher.all())}
        tries = [told for name, told in pods.items() if name.startswith(f"{job}-") and "pleach/decided" in told]
        seats = [json.loads(told["pleach/decided"])["seat"] for told in tries]
        expect(len(set(seats)) == len(seats) and "g4" in seats, f"it was sent to {seats}")
        steps.until_all_ended()
        self.restart()

    def shrinks(self):
        """A device of a running gang fails: what the gang holds elsewhere stays its own, and nobody is sent there."""
        steps = self.steps
        gang, pods = steps.add_job("shrink", 2, 8, life_s=8, estimate_s=1)
        wait_for("the gang runs", lambda: all(self.watcher.node_of(name) for name in pods.values()))
        first, second = (self.watcher.node_of(pods[rank]) for rank in (0, 1))
        self.client.set_node(first, {"allocatable": {"nvidia.com/gpu": "7"}})
        time.sleep(1)
        others = [steps.add("other", 8, life_s=1, estimate_s=1) for _ in range(2)]
        wait_for("one of two others runs", lambda: any(self.watcher.node_of(name) for name in others))
        time.sleep(1)
        sent = [name for name in others if not self.watcher.is_held(name)]
        expect(len(sent) == 1 and self.watcher.node_of(sent[0]) not in (first, second), f"{sent} were let go beside the gang")
        self.client.set_node(first, {"allocatable": {"nvidia.com/gpu": "8"}})
        steps.until_all_ended()
        expect(steps.take(gang) == pods, "a pod of the gang was evicted")

    def pages(self):
        """Pods of others that are longer than an answer may be, all together, fail no round."""
        self.restart(answer_bytes_max=1 << 20)
        before = self.steps.status()["num_failed"]
        big = {"name": "main", "image": "x", "env": [{"name": "BIG", "value": "x" * 400_000}]}
        for _ in range(12):
            self.steps.add("fat", 0, life_s=12, namespace=OTHER, spec={"containers": [big]})
        name = self.steps.add("thin", 1, life_s=0.3)
        wait_for("a held pod is let go", lambda: name in self.watcher.ends)
        expect(self.steps.status()["num_failed"] == before, f"rounds failed: {self.steps.status()['last_error']}")
        self.steps.until_all_ended()
        self.restart()

    def lease(self):
        """The Lease is renewed between rounds that are far apart; killed, another controller has it once it has ended."""
        spec = lambda: self.client.must("GET", "/apis/coordination.k8s.io/v1/namespaces/pleach/leases/pleach")["spec"]
        self.restart(lease="pleach/pleach", lease_s=3, tick_s=1)
        name = self.steps.add("driven", 1, life_s=0.3)
        wait_for("it drives", lambda: name in self.watcher.ends)
        killed = spec()["holderIdentity"]
        self.plane.kill("pleach")
        self.plane.write_settings(lease="pleach/pleach", lease_s=3, tick_s=15)
        self.plane.start_ours(self.steps.policy)
        wait_for("another one has the Lease", lambda: spec()["holderIdentity"] != killed, limit_s=60)
        times = {}

        def beside():
            """A round by itself renews it once; the clock of renewals counts whole seconds."""
            here = times.setdefault(self.steps.status()["num_rounds"], set())
            here.add(spec()["renewTime"])
            return len(here) >= 5
        wait_for("the Lease is renewed beside the rounds", beside, limit_s=60)
        self.restart()

    def webhook(self, change):
        """Changes the webhook of the plane; what it was."""
        was = self.client.must("GET", f"{WEBHOOKS}/pleach")
        now = json.loads(json.dumps(was))
        change(now["webhooks"][0])
        self.client.must("PUT", f"{WEBHOOKS}/pleach", now)
        return was["webhooks"]

    def put_back(self, webhooks):
        now = self.client.must("GET", f"{WEBHOOKS}/pleach")
        self.client.must("PUT", f"{WEBHOOKS}/pleach", {**now, "webhooks": webhooks})

    def guarded(self):
        """With the webhook of `guarded` and no controller: what runs ends, its Job is complete, pods are deleted; no gate goes."""
        steps = self.steps
        own = steps.webhooks["guarded"][0]
        was = self.webhook(lambda webhook: webhook.update(
            {key: own[key] for key in ("failurePolicy", "rules", "matchConditions")}, objectSelector={}))
        job, _ = steps.add_job("done", 1, 2, life_s=4)
        bare = steps.add("bare", 1, life_s=4)
        kept = steps.add("kept", 1, life_s=0.3, gang=("kept", 2))
        wait_for("they run", lambda: self.watcher.node_of(bare) and all(
            self.watcher.node_of(name) for name in self.watcher.of_job(job).values()))
        self.plane.kill("pleach")
        path = f"/api/v1/namespaces/{TEAM}/pods"
        gpu_pod = {"apiVersion": "v1", "kind": "Pod", **template(1)}
        gpu_pod["metadata"]["name"] = "refused"
        wait_for("no GPU pod is made", lambda: self.client.ask("POST", path + "?dryRun=All", gpu_pod)[0] >= 400, pause_s=0.5)
        wait_for("the pods end", lambda: bare in self.watcher.ends)

        def is_complete():
            found = self.client.must("GET", f"/apis/batch/v1/namespaces/{TEAM}/jobs/{job}")
            return any(one["type"] == "Complete" and one["status"] == "True" for one in found["status"].get("conditions", []))
        wait_for("the Job is complete", is_complete)
        self.client.must("DELETE", f"{path}/{bare}")
        wait_for("a pod is deleted", lambda: self.client.ask("GET", f"{path}/{bare}")[0] == 404)
        for what, patch in [("gate", {"spec": {"schedulingGates": []}}),
                            ("mark", {"metadata": {"annotations": {"pleach/decided": "{}"}}})]:
            code, _ = self.client.ask("PATCH", f"{path}/{kept}", patch, MERGE)
            expect(code >= 400, f"a {what} was changed while no controller answers: {code}")
        self.client.must("PATCH", f"{path}/{kept}", {"metadata": {"labels": {"my": "label"}}}, MERGE)
        self.client.must("DELETE", f"{path}/{kept}")
        self.put_back(was)
        steps.start_ours()
        wait_for("the webhook holds a pod", lambda: GATE in gates(self.client.pod(steps.add("probe", 1, life_s=0.1))), pause_s=0.5)
        steps.until_all_ended()

    def whole_gangs(self):
        """A lease for which only a gang could yield whose budget allows one of two pods: neither of them is stopped."""
        steps = self.steps
        self.restart(rounds=f'preemption = true\nrestart_cost_s = 1.0\n[leases]\nnamespaces = ["{SERVE}"]')
        path = f"/apis/policy/v1/namespaces/{TEAM}/poddisruptionbudgets"
        for kind, least in (("ranks", 1), ("single", 2)):
            self.client.must("POST", path, {"metadata": {"name": kind}, "spec": {
                "minAvailable": least, "selector": {"matchLabels": {"kind": kind}}}})
        gang, ranks = steps.add_job("ranks", 2, 8, life_s=16, estimate_s=100_000, labels={"kind": "ranks"})
        names = list(ranks.values())
        for num in (8, 4):
            names += steps.add_job("single", 1, num, life_s=16, estimate_s=100_000, labels={"kind": "single"})[1].values()
        wait_for("training runs", lambda: all(self.watcher.node_of(name) for name in names))
        time.sleep(1.1)  # clocks of pods count whole seconds
        replica = template(1, life_s=0.3)
        replica["metadata"]["name"] = "chat"
        self.client.must("POST", f"/api/v1/namespaces/{SERVE}/pods", {"apiVersion": "v1", "kind": "Pod", **replica})
        wait_for("the gang was asked", lambda: "the disruption budget ranks allows" in self.plane.log("pleach"))
        time.sleep(3)
        expect(self.watcher.of_job(gang) == ranks, f"of {ranks} {self.watcher.of_job(gang)} are left")
        steps.until_all_ended()
        for kind in ("ranks", "single"):
            self.client.must("DELETE", f"{path}/{kind}")
        self.restart()

    def unheld(self):
        """The authority in the webhook is not the server's: pods go past it, and log, status and `check` say so."""
        other = base64.b64encode(Path(self.plane.at("clients.crt")).read_bytes()).decode()
        self.restart()
        time.sleep(6)  # what comes in the first seconds may be early
        was = self.webhook(lambda webhook: webhook["clientConfig"].update(caBundle=other))
        wait_for("a pod goes past the webhook", lambda: GATE not in gates(
            self.client.pod(self.steps.add("past", 1, life_s=5))), pause_s=0.5)
        wait_for("the status says so", lambda: self.steps.status().get("num_unheld", 0) > 0)
        expect("arrived unheld" in self.plane.log("pleach"), "the log does not say so")
        code, text = self.plane.ours("check")
        expect(code != 0 and "ERROR" in text and "arrived unheld" in text, f"check: {code} {text}")
        self.put_back(was)
        wait_for("the webhook holds again", lambda: GATE in gates(
            self.client.pod(self.steps.add("probe", 1, life_s=0.1))), pause_s=0.5)
        self.steps.until_all_ended()
        self.restart()
