"""What is asked of a real control plane, step by step. `main` runs all of it and ends every process; with PLEACH_STEPS, a list of
names with commas, the first two and those that it names."""

import json
import os
import random
import signal
import sys
import time

from api import GATE, MERGE, OTHER, SERVE, TEAM, Client, gates, notes, template
from events import Events
from first_day import FirstDay
from forecasts import Forecasts
from plane import DEPLOY, Failed, Plane, expect, wait_for
from shapes import Shapes
from waiting import Waiting
from watcher import Watcher

NODES = {"g1": 8, "g2": 8, "g3": 8, "g4": 4}


class Steps:
    """A plane, who watches it, and who submits."""

    def __init__(self, plane, policy):
        self.plane, self.policy = plane, policy
        self.client = Client(plane)
        self.num_made, self.names, self.webhooks, self.nodes = 0, set(), {}, NODES

    def up(self):
        """Starts etcd, the API server, the manifests, the nodes, and kube-scheduler."""
        plane, client = self.plane, self.client
        plane.start_etcd()
        plane.start_api()
        self.wait_for_api()
        self.apply_manifests()
        for name, labels in ((TEAM, {"pleach/drive": "true"}), (SERVE, {"pleach/drive": "true"}), (OTHER, {})):
            client.must("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        plane.start_manager("job-controller", "disruption-controller", "pod-garbage-collector-controller",
                            "deployment-controller", "replicaset-controller", "resourcequota-controller")
        plane.start_kwok()
        for name, num in NODES.items():
            client.add_node(name, num)
        plane.start_scheduler()
        self.watcher = Watcher(client, NODES)
        self.watcher.start()
        self.add_webhook()

    def apply_manifests(self):
        """Both steps of the documented way into production, the second one without effect: its service is not here."""
        self.plane.kubectl("apply", "-k", str(DEPLOY / "shadow"))
        # The controller that is tried runs beside the plane, not in a pod.
        self.plane.kubectl("-n", "pleach", "scale", "deploy/pleach", "--replicas=0")
        for folder, num in [("live", 11), ("guarded", 18), ("order", 10)]:
            text = self.plane.kubectl("apply", "--dry-run=server", "-o", "json", "-k", str(DEPLOY / folder))
            objects = json.loads(text)["items"]
            args = [one["spec"]["template"]["spec"]["containers"][0]["args"] for one in objects if one["kind"] == "Deployment"]
            kinds = [one["kind"] for one in objects]
            self.webhooks[folder] = [one["webhooks"][0] for one in objects if one["kind"] == "MutatingWebhookConfiguration"]
            expect(len(objects) == num and "--live" in args[0], f"apply -k {folder}: {kinds}, {args}")
        # The controller that is tried is bound by it in all steps.
        self.plane.kubectl("apply", "-f", str(DEPLOY / "guarded/admission.yaml"))

    def wait_for_api(self):
        wait_for("the API server is ready", lambda: self.client.ask("GET", "/readyz")[0] == 200)
        wait_for("the default namespace", lambda: self.client.ask("GET", "/api/v1/namespaces/default")[0] == 200)

    def add_webhook(self):
        """deploy/kubernetes/deploy/live/webhook.yaml with this plane's address and authority."""
        text = self.plane.kubectl("create", "--dry-run=client", "-o", "json", "-f", str(DEPLOY / "live/webhook.yaml"))
        config = json.loads(text)
        for webhook in config["webhooks"]:
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{self.plane.ours_port}/webhook",
                                       "caBundle": self.plane.authority()}
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        self.client.must("POST", path, config)

    def add(self, stem, gpus, **how):
        self.num_made += 1
        name = f"{stem}-{self.num_made}"
        self.client.add_pod(name, gpus, **how)
        self.names.add(name)
        return name

    def add_job(self, stem, size, gpus, annotations=None, **how):
        """A Job and the pods that its controller has made, by index; they are a gang of that size."""
        self.num_made += 1
        job = f"{stem}-{self.num_made}"
        told = {"test/gang": job, "test/gang-size": str(size), **(annotations or {})} if size > 1 else annotations
        self.client.add_job(job, size, gpus, annotations=told, **how)
        wait_for(f"the pods of {job} are made", lambda: len(self.watcher.of_job(job)) == size)
        return job, self.take(job)

    def take(self, job):
        """Names of the pods that a Job has now, by index."""
        pods = self.watcher.of_job(job)
        self.names |= set(pods.values())
        return pods

    def until_anew(self, job, old):
        """Waits until each of some pods of a Job has another one in its place; these."""
        def anew():
            pods = self.watcher.of_job(job)
            return all(pods.get(index, name) != name for index, name in old.items())
        wait_for(f"pods of {job} are made anew", anew)
        return {index: name for index, name in self.take(job).items() if index in old}

    def start_ours(self, mode="--live", policy=None):
        self.plane.start_ours(policy or self.policy, mode)
        pid = self.plane.processes["pleach"].pid
        wait_for("two rounds of the controller", lambda: self.status().get("pid") == pid
                 and self.status().get("num_rounds", 0) >= 2)

    def status(self):
        try:
            return json.loads((self.plane.folder / "state/status.json").read_text())
        except (OSError, ValueError):
            return {}

    def until_all_ended(self, limit_s=120):
        def none_left():
            self.well()
            # An event may come later than the answer to who made the pod.
            return self.names <= self.watcher.known() and not self.watcher.left() and not self.client.jobs_left()
        try:
            wait_for("all pods end", none_left, limit_s)
        except Failed as error:
            raise Failed(f"{error}; left: {self.watcher.left()}, {self.client.jobs_left()}") from None
        self.well()

    def well(self):
        if self.watcher.wrong:
            raise Failed("; ".join(self.watcher.wrong))

    # Steps

    def rights(self):
        code, text = self.plane.ours("check", "--policy", self.policy)
        expect(code == 0 and "NOT ALLOWED" not in text, f"check: {text}")
        expect("4 nodes with GPUs" in text, f"check: {text}")

    def holds(self):
        """New pods get the gate. The API server reads webhooks anew every second or so."""
        self.start_ours()
        wait_for("the webhook holds a pod", lambda: GATE in gates(self.client.pod(self.add("probe", 1, life_s=0.1))), pause_s=0.5)
        self.until_all_ended()

    def shadow(self):
        """Nothing is held and nothing is touched."""
        self.plane.kill("pleach", signal.SIGTERM)
        self.start_ours("--shadow")
        name = self.add("shadow", 2, life_s=0.2)
        expect(gates(self.client.pod(name)) == [], "the shadow holds a pod")
        self.until_all_ended()
        expect(all(not key.startswith("pleach/") for pod in self.watcher.all() for key in notes(pod)
                   if pod["metadata"]["name"] == name), "the shadow wrote into a pod")
        self.plane.kill("pleach", signal.SIGTERM)
        self.start_ours()

    def order(self):
        """Jobs that need the whole of a node start one after the other, the shortest first, whatever the order of arrival."""
        blockers = [self.add("wide", 8, life_s=3, estimate_s=1) for _ in range(3)]
        wait_for("the blockers run", lambda: all(self.watcher.node_of(name) for name in blockers))
        begin = len(self.watcher.lifts)
        expected = {}
        for estimate_s in (500, 100, 300, 200, 600, 400):
            name = self.add("job", 8, life_s=0.3, estimate_s=estimate_s)
            expect(GATE in gates(self.client.pod(name)), f"{name} is not held")
            expected[estimate_s] = name
        self.until_all_ended()
        order = self.watcher.lifts[begin:]
        wanted = [expected[key] for key in sorted(expected)]
        # Those of one round, at most one for each of the three nodes, are let go side by side.
        near = all(abs(order.index(name) - place) < 3 for place, name in enumerate(wanted))
        expect(sorted(order) == sorted(wanted) and near, f"the order was {order}, not {wanted}")

    def mixed(self, num_jobs, seed, faults=None):
        """Single jobs and gangs by three of the signs for them, beside pods that nobody drives; every one ends once."""
        random.seed(seed)
        names, begin = [], (len(self.watcher.ends), len(self.watcher.lifts))
        for number in range(num_jobs):
            kind = number % 5
            life_s, estimate_s = round(random.uniform(0.2, 1.0), 2), random.randint(10, 900)
            if kind == 3:
                size, gpus, gang = random.choice([2, 3, 4]), random.choice([2, 4]), f"gang-{seed}-{number}"
                names += [self.add(f"w{number}", gpus, life_s=life_s, estimate_s=estimate_s, gang=(gang, size))
                          for _ in range(size)]
            elif kind == 4:
                names += self.indexed_job(f"job-{seed}-{number}", 3, 4, life_s, is_set=number % 2 == 0)
            else:
                names.append(self.add(f"s{number}", random.choice([1, 2, 4, 8]), life_s=life_s, estimate_s=estimate_s))
            if number % 7 == 0:
                names.append(self.add("cpu", 0, life_s=0.3))
                names.append(self.add("other", 1, life_s=0.3, namespace=OTHER))
        if faults:
            faults()
        self.until_all_ended()
        ended = self.watcher.ends[begin[0]:]
        expect(sorted(ended) == sorted(names), f"{len(names)} pods were made and {len(ended)} ended")
        lifted = self.watcher.lifts[begin[1]:]
        expect(len(set(lifted)) == len(lifted), "a gate was lifted twice")
        return names, lifted

    def indexed_job(self, name, size, gpus, life_s, is_set):
        """A Job whose pods are a gang: because it is Indexed, or because it is all that a JobSet has."""
        labels = {"jobset.sigs.k8s.io/jobset-name": name} if is_set else None
        return list(self.add_job(name, size, gpus, life_s=life_s, labels=labels)[1].values())

    def whole(self):
        names, lifted = self.mixed(30, seed=1)
        driven = [name for name in names if not name.startswith(("cpu", "other"))]
        expect(sorted(lifted) == sorted(driven), f"{len(lifted)} gates were lifted of {len(driven)}")
        # Pods of one gang are let go one after the other, with no other pod between them.
        gang = {name: notes(self.watcher.named(name)).get("pleach/gang") for name in lifted}
        runs = [key for index, key in enumerate(map(gang.get, lifted)) if key and (index == 0 or gang[lifted[index - 1]] != key)]
        expect(len(runs) == len(set(runs)), f"a gang was let go in parts: {runs}")

    def killed(self):
        """The controller is killed again and again while it lets go."""
        def faults():
            for number in range(8):
                time.sleep(0.25 + 0.11 * number)
                self.plane.kill("pleach")
                self.plane.start_ours(self.policy)
        self.mixed(30, seed=2, faults=faults)

    def restarts(self):
        """kube-scheduler and the API server are killed and come back."""
        def faults():
            time.sleep(0.7)
            self.plane.kill("kube-scheduler")
            time.sleep(1.5)
            self.plane.start_scheduler()
            time.sleep(0.7)
            self.plane.kill("kube-apiserver")
            time.sleep(1.5)
            self.plane.start_api()
            self.wait_for_api()
        self.mixed(30, seed=3, faults=faults)
        # Rounds go on by what is kept until that is too old: a watch of 5 s and two requests of 10 s.
        before = self.status()["num_failed"]
        self.plane.kill("kube-apiserver")
        wait_for("a round fails while the API server is away", lambda: self.status().get("num_failed", 0) > before, 40)
        self.plane.start_api()
        self.wait_for_api()

    def hangs(self):
        """A controller that hangs holds nobody up: new pods go in free, and what was held goes on once it answers again."""
        wide = [self.add("wide", 8, life_s=2, estimate_s=1) for _ in range(3)]
        wait_for("the nodes are full", lambda: all(self.watcher.node_of(name) for name in wide))
        held = self.add("held", 8, life_s=0.3)
        self.plane.pause("pleach")
        free = self.add("free", 2, life_s=0.3)
        expect(gates(self.client.pod(free)) == [], "a pod is held by nobody")
        wait_for("the free pod is bound", lambda: self.watcher.node_of(free))
        expect(self.watcher.is_held(held), "the held pod was let go by nobody")
        self.plane.processes["pleach"].send_signal(signal.SIGCONT)
        self.until_all_ended()

    def preemption(self):
        """A long job gives way to a short one by an eviction, which a disruption budget can forbid."""
        self.plane.kill("pleach")
        self.plane.write_settings(rounds="preemption = true\nrestart_cost_s = 1.0")
        self.start_ours(policy="srtf")
        budget = {"metadata": {"name": "keep"}, "spec": {"minAvailable": 3, "selector": {"matchLabels": {"kind": "long"}}}}
        path = f"/apis/policy/v1/namespaces/{TEAM}/poddisruptionbudgets"
        self.client.must("POST", path, budget)
        long = dict(self.add_job("long", 1, 8, life_s=10, estimate_s=100_000, labels={"kind": "long"}) for _ in range(3))
        wait_for("the long jobs run", lambda: all(self.watcher.node_of(pods[0]) for pods in long.values()))
        time.sleep(1.1)  # clocks of pods count whole seconds
        short = self.add("short", 8, life_s=0.3, estimate_s=5)
        wait_for("the budget forbids it", lambda: "disruption budget" in self.plane.log("pleach"))
        expect(self.watcher.is_held(short), "the short job was let go where nothing could be stopped")
        # The disruption controller counts who may go.
        self.client.must("PATCH", f"{path}/keep", {"spec": {"minAvailable": 2}}, MERGE)
        wait_for("the short job ends", lambda: short in self.watcher.ends)
        wait_for("a long job is made anew", lambda: any(self.watcher.of_job(job) != pods for job, pods in long.items()))
        self.client.must("DELETE", f"{path}/keep")
        anew = [job for job, pods in long.items() if self.until_held_or_same(job, pods)]
        expect(len(anew) == 1, f"made anew: {anew}")
        self.until_all_ended()
        self.plane.kill("pleach")
        self.plane.write_settings()
        self.start_ours()

    def leases(self):
        """Replicas of a Deployment go before jobs: of those that lose least one yields that no budget keeps, once. A user's pod that
        calls itself a lease waits. What is scaled down is the jobs' again."""
        self.plane.kill("pleach")
        self.plane.write_settings(rounds=f'preemption = true\nrestart_cost_s = 1.0\n[leases]\nnamespaces = ["{SERVE}"]')
        self.start_ours()
        budget = {"metadata": {"name": "kept"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"kind": "kept"}}}}
        path = f"/apis/policy/v1/namespaces/{TEAM}/poddisruptionbudgets"
        self.client.must("POST", path, budget)
        wide = dict(self.add_job("train", 1, 8, life_s=40, estimate_s=40) for _ in range(3))
        small, kept = self.add_job("small", 1, 4, life_s=40, estimate_s=40, labels={"kind": "kept"})
        names = [pods[0] for pods in (*wide.values(), kept)]
        wait_for("training runs", lambda: all(self.watcher.node_of(name) for name in names))
        time.sleep(1.1)  # clocks of pods count whole seconds
        enemy = self.add("enemy", 1, life_s=0.3, labels={"app": "chat", "pleach/lease": "true"})
        time.sleep(1.5)
        expect(self.watcher.is_held(enemy) and all(self.watcher.named(name) for name in names), "a user's pod made room for itself")
        replica = template(1, labels={"app": "chat"})
        replica["metadata"]["annotations"] = {}
        replica["spec"] |= {"restartPolicy": "Always", "terminationGracePeriodSeconds": 5}
        deployments = f"/apis/apps/v1/namespaces/{SERVE}/deployments"
        self.client.must("POST", deployments, {"metadata": {"name": "chat"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "chat"}}, "template": replica}})
        wait_for("the replica runs", lambda: len(self.replicas()) == 1)
        expect("disruption budget" in self.plane.log("pleach"), "the budget of the job that loses least was not asked")
        yielded = [job for job, pods in wide.items() if self.until_held_or_same(job, pods)]
        expect(len(yielded) == 1 and self.watcher.of_job(small) == kept, f"{yielded} yielded, and of {small} {kept}")
        self.client.must("PATCH", f"{deployments}/chat", {"spec": {"replicas": 3}}, MERGE)
        wait_for("three replicas run", lambda: len(self.replicas()) == 3)
        expect(len(set(self.replicas().values())) == 1, f"replicas are on {self.replicas()}")
        leases = self.status()["leases"]
        expect(leases["num_stopped"] == 1, f"stopped for leases: {leases}")
        self.client.must("PATCH", f"{deployments}/chat", {"spec": {"replicas": 0}}, MERGE)
        wait_for("the replicas are gone", lambda: not self.replicas())
        self.client.must("DELETE", f"{path}/kept")
        self.until_all_ended()
        self.plane.kill("pleach")
        self.plane.write_settings()
        self.start_ours()

    def replicas(self):
        """Nodes of the replicas that are bound and not being stopped, by name."""
        pods = [pod for pod in self.watcher.all() if pod["metadata"]["namespace"] == SERVE]
        pods = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and pod["spec"].get("nodeName")]
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods}

    def until_held_or_same(self, job, old):
        """Whether a Job has another pod than before; one that it has was held."""
        wait_for(f"{job} has its pod", lambda: self.watcher.of_job(job))
        pods = self.take(job)
        expect(pods == old or self.watcher.was_held(pods[0]), f"{pods} was not held")
        return pods != old

    def lost_node(self):
        """A gang is pinned to nodes one of which is lost before kube-scheduler binds it: its pods are made anew elsewhere."""
        self.plane.kill("pleach")
        self.plane.write_settings(release_limit_s=3)
        self.start_ours()
        self.plane.kill("kube-scheduler")
        job, pods = self.add_job("pin", 2, 8, life_s=8)
        wait_for("the gang is let go", lambda: all(name in self.watcher.lifts for name in pods.values()))
        lost = json.loads(notes(self.watcher.named(pods[0]))["pleach/decided"])["seat"]
        self.client.set_ready(lost, False)
        self.plane.start_scheduler()
        anew = self.until_anew(job, pods)
        self.until_all_ended()
        nodes = [node for name, node in self.watcher.binds if name in anew.values()]
        expect(len(nodes) == 2 and lost not in nodes, f"{lost} was lost, and the gang ran on {nodes}")
        self.client.set_ready(lost, True)
        self.plane.kill("pleach")
        self.plane.write_settings()
        self.start_ours()

    def without_place(self):
        """Pods of 5 go to a node each; gangs and pods that no nodes hold go to kube-scheduler at once, with the reason."""
        pair = [self.add("pair", 5, life_s=0.3, gang=("pair", 2)) for _ in range(2)]
        self.until_all_ended()
        nodes = {self.watcher.node_of(name) for name in pair}
        expect(len(nodes) == 2, f"two pods of 5 ran on {nodes}")
        names = [self.add("odd", 5, life_s=0.3, gang=("odd", 4)) for _ in range(4)]
        self.until_all_ended()
        for name in names:
            left = notes(self.watcher.named(name)).get("pleach/left", "")
            expect("hold 3" in left, f"{name} was left for: {left}")
        name = self.add("huge", 16)
        wait_for("the pod of 16 is given back",
                 lambda: "16 GPUs on one node" in notes(self.client.pod(name)).get("pleach/left", ""))
        self.client.must("DELETE", f"/api/v1/namespaces/{TEAM}/pods/{name}")
        self.until_all_ended()

    def lost_pod(self):
        """A gang loses a pod while others wait for its node: the pod that is made anew goes there, and nobody is evicted."""
        job, gang = self.add_job("lose", 3, 8, life_s=20, estimate_s=1)
        wait_for("the gang runs", lambda: all(self.watcher.node_of(name) for name in gang.values()))
        others = [self.add("next", 8, life_s=0.2, estimate_s=1) for _ in range(2)]
        time.sleep(1.1)  # clocks of pods count whole seconds
        node = self.watcher.node_of(gang[1])
        self.client.must("POST", f"/api/v1/namespaces/{TEAM}/pods/{gang[1]}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": gang[1]}})
        again = self.until_anew(job, {1: gang[1]})[1]
        wait_for("it is bound", lambda: self.watcher.node_of(again))
        expect(self.watcher.node_of(again) == node, f"{again} is on {self.watcher.node_of(again)}, not on {node}")
        expect(all(self.watcher.is_held(name) for name in others), "somebody else got the node")
        self.until_all_ended()
        expect(self.take(job) == gang | {1: again}, "another pod of the gang was evicted")

    def forged(self):
        """Marks that a user writes take no node and open no gate."""
        mark = json.dumps({"at_s": int(time.time()), "seat": "g1", "seats": [["g1", 1], ["g2", 1]], "by": "user"})
        loose = [self.client.add_pod(f"forged-{name}", 1, namespace=OTHER, annotations={"pleach/decided": mark},
                                     spec={"nodeSelector": {"nowhere": "yes"}}) for name in NODES]
        names = [self.add("honest", 8, life_s=0.3) for _ in range(3)]
        wait_for("honest pods run", lambda: all(self.watcher.node_of(name) for name in names))
        for pod in loose:
            self.client.must("DELETE", f"/api/v1/namespaces/{OTHER}/pods/{pod['metadata']['name']}")
        self.until_all_ended()

    def handed_back(self):
        """Without a controller pods wait; `hand-back` gives all of them to kube-scheduler, and takes the marks of a gang off."""
        wide = [self.add("wide", 8, life_s=1, estimate_s=1) for _ in range(3)]
        wait_for("the nodes are full", lambda: all(self.watcher.node_of(name) for name in wide))
        names = [self.add("back", 8, life_s=0.2, gang=("back", 2)) for _ in range(2)]
        names.append(self.add("alone", 8, life_s=0.2))
        self.plane.kill("pleach")
        mark = json.dumps({"at_s": 1, "seat": "g1", "seats": [["g1", 1], ["g2", 1]], "by": "test"})
        path = f"/api/v1/namespaces/{TEAM}/pods/{names[0]}"
        self.client.must("PATCH", path, {"metadata": {"annotations": {"pleach/decided": mark}}}, MERGE)
        wait_for("the nodes are free", lambda: all(name in self.watcher.ends for name in wide))
        expect(all(self.watcher.is_held(name) for name in names), "somebody let the held pods go")
        code, text = self.plane.ours("hand-back")
        expect(code == 0 and "3 pods were given back" in text, f"hand-back: {text}")
        expect("pleach/decided" not in notes(self.client.pod(names[0])), "a mark stayed")
        self.until_all_ended()
        late = self.add("late", 1, life_s=0.2)
        expect(gates(self.client.pod(late)) == [], "a pod is held without a controller")
        self.until_all_ended()


def main():
    program, binaries, folder, policy = sys.argv[1:5]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    plane = Plane(folder, binaries, program)
    steps = Steps(plane, policy)
    events, waiting = Events(steps), Waiting(steps)
    if int(plane.version.split(".")[1]) >= 36:
        plane.gates = ("GenericWorkload",)  # pods keep the field of their group
    wanted = os.environ.get("PLEACH_STEPS")
    try:
        began = time.monotonic()
        steps.up()
        print(f"kube-apiserver {plane.version} and kube-scheduler run after {time.monotonic() - began:.1f} s", flush=True)
        for number, (words, step) in enumerate((
            ("the rights of the manifest are those that the program asks for", steps.rights),
            ("the webhook holds and the controller lets go", steps.holds),
            ("shadow mode holds and touches nothing", steps.shadow),
            ("six jobs start in the policy's order", steps.order),
            ("thirty jobs and gangs", steps.whole),
            ("the same, with a controller that is killed eight times", steps.killed),
            ("the same, with kube-scheduler and the API server killed", steps.restarts),
            ("a controller that hangs", steps.hangs),
            ("preemption, and a disruption budget that forbids it", steps.preemption),
            ("replicas of a Deployment go before jobs", steps.leases),
            ("a node that is lost after pods were pinned to it", steps.lost_node),
            ("gangs and pods that the tables have no place for", steps.without_place),
            ("a gang that loses a pod", steps.lost_pod),
            ("marks that users write", steps.forged),
            ("nobody comes before those that wait", events.turns),
            ("a tainted pool", events.taints),
            ("volumes, ports, devices, and what a pod asks for as a whole", events.places),
            ("nodes that refused a pod are not tried again for the one in its place", events.refused),
            ("a device of a running gang fails", events.shrinks),
            ("pods that are longer than an answer", events.pages),
            ("a Lease that is renewed beside the rounds", events.lease),
            ("Jobs complete under `guarded` while no controller answers", events.guarded),
            ("all of a gang yields or none", events.whole_gangs),
            ("Jobs wait suspended, and their deadlines do not run", waiting.suspended),
            ("pods that wait with the gate are given back", waiting.given_back),
            ("what the admission policy forbids the controller", waiting.bounded),
            ("a quota that holds one of two Jobs", waiting.quota),
            ("classes of priority", waiting.classes),
            ("a first day, as operator and user type it", FirstDay(steps).first_day),
            ("forecasts of starts", Forecasts(steps).forecasts),
            ("gangs of every shape under lost pods and nodes", Shapes(steps).shapes),
            ("a webhook that is not heard", events.unheld),
            ("hand-back", steps.handed_back),
        ), 1):
            if wanted and number > 2 and step.__name__ not in wanted.split(","):
                continue
            print(f"{number}. {words}", flush=True)
            step()
        steps.well()
        print(f"real_kubernetes: {len(steps.watcher.known())} pods on {plane.version}: all as expected", flush=True)
        return 0
    except Failed as error:
        print(f"real_kubernetes: {error}", file=sys.stderr)
        for name in ("pleach", "kube-scheduler", "kube-controller-manager", "kube-apiserver"):
            print(f"--- {name}\n" + "\n".join(plane.log(name).splitlines()[-20:]), file=sys.stderr)
        return 1
    finally:
        if hasattr(steps, "watcher"):
            steps.watcher.is_over = True
        plane.stop()


if __name__ == "__main__":
    sys.exit(main())
