"""Who watches all pods and notes what must never happen."""

import json
import threading
import time

from api import GATE, JOB_INDEX, JOB_NAME, gates, gpus, has_ended, notes


def gang_of(pod):
    """Name and size of a gang: as its annotations tell, or for one that only its Job or JobSet tells, as the test noted them."""
    told = notes(pod)
    return told.get("pleach/gang") or told.get("test/gang"), told.get("pleach/gang-size") or told.get("test/gang-size")


# Pods that come back so long after others were on nodes are those of a gang that begins, s.
BACK_S = 20


class Watcher(threading.Thread):
    """Events in the order of the API server. `wrong` is empty as long as all is well."""

    def __init__(self, client, nodes):
        super().__init__(daemon=True)
        self.client, self.nodes, self.lock = client, nodes, threading.RLock()
        self.pods, self.gone = {}, {}
        self.held = set()
        # When a pod of a gang was last seen on a node.
        self.begun_s = {}
        self.lifts, self.binds, self.ends, self.wrong = [], [], [], []
        self.is_over = False

    def run(self):
        while not self.is_over:
            code, answer = self.client.ask("GET", "/api/v1/pods")
            if code != 200:
                time.sleep(0.2)
                continue
            self.take_list(answer["items"])
            version = answer["metadata"]["resourceVersion"]
            for event in self.client.watch("/api/v1/pods", version):
                if self.is_over or event["type"] == "ERROR":
                    break
                if event["type"] != "BOOKMARK":
                    with self.lock:
                        self.take(event["object"], event["type"] == "DELETED")
            time.sleep(0.05)

    def take_list(self, items):
        """What happened while nobody watched, in the order of its versions."""
        with self.lock:
            here = {pod["metadata"]["uid"] for pod in items}
            for uid in [uid for uid in self.pods if uid not in here]:
                self.gone[uid] = self.pods.pop(uid)
            for pod in sorted(items, key=lambda pod: int(pod["metadata"]["resourceVersion"])):
                self.take(pod, False)

    def take(self, pod, is_deleted):
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        old = self.pods.get(uid)
        if (old or pod)["spec"].get("nodeName"):
            self.begun_s[gang_of(pod)[0]] = time.monotonic()
        if is_deleted:
            self.gone[uid] = self.pods.pop(uid, pod)
            return
        self.pods[uid] = pod
        held, was_held = GATE in gates(pod), old is not None and GATE in gates(old)
        node, old_node = pod["spec"].get("nodeName"), (old or {"spec": {}})["spec"].get("nodeName")
        mark = json.loads(notes(pod)["pleach/decided"]) if "pleach/decided" in notes(pod) else None
        if held:
            self.held.add(name)
        if was_held and not held:
            self.lifts.append(name)
            self.check_gang(pod, mark)
        if held and old is not None and not was_held:
            self.wrong.append(f"{name} has got our gate back")
        if old_node and node != old_node:
            self.wrong.append(f"{name} went from {old_node} to {node}")
        if node and not old_node:
            self.binds.append((name, node))
            if gates(pod):
                self.wrong.append(f"{name} is bound with gates {gates(pod)}")
            if mark and mark["seat"] != node:
                self.wrong.append(f"{name} is on {node}, and was let go to {mark['seat']}")
            used = sum(gpus(other) for other in self.pods.values()
                       if other["spec"].get("nodeName") == node and not has_ended(other))
            if used > self.nodes.get(node, 0):
                self.wrong.append(f"{node} has {used} GPUs in use of {self.nodes.get(node, 0)}")
        if has_ended(pod) and not (old and has_ended(old)):
            self.ends.append(name)

    def check_gang(self, pod, mark):
        """Nobody of a gang is free before all of it have a place. Pods of one that has begun come back one by one."""
        gang, size = gang_of(pod)
        if not gang or mark is None:
            return
        mine = [other for other in self.pods.values() if gang_of(other)[0] == gang]
        has_begun = time.monotonic() - self.begun_s.get(gang, -BACK_S) < BACK_S
        if not has_begun and any("pleach/decided" not in notes(other) for other in mine if not has_ended(other)):
            self.wrong.append(f"{pod['metadata']['name']} was let go before all of {gang} had a place")
        if sum(num for _, num in mark["seats"]) != int(size):
            self.wrong.append(f"{gang} has seats {mark['seats']}")

    # Questions

    def all(self):
        with self.lock:
            return list(self.pods.values())

    def deleted(self):
        with self.lock:
            return list(self.gone.values())

    def named(self, name):
        with self.lock:
            found = [pod for pod in self.pods.values() if pod["metadata"]["name"] == name]
        return found[0] if found else None

    def node_of(self, name):
        pod = self.named(name)
        return pod["spec"].get("nodeName") if pod else None

    def is_held(self, name):
        pod = self.named(name)
        return pod is not None and GATE in gates(pod)

    def was_held(self, name):
        """Whether a pod ever had our gate."""
        return name in self.held

    def of_job(self, job):
        """Names of the pods that a Job has made and that are still there, by index."""
        with self.lock:
            pods = [pod["metadata"] for pod in self.pods.values() if pod["metadata"].get("labels", {}).get(JOB_NAME) == job]
        pods = [meta for meta in pods if "deletionTimestamp" not in meta]
        return {int(meta["annotations"][JOB_INDEX]): meta["name"] for meta in pods}

    def known(self):
        """Names of all pods that were ever seen."""
        with self.lock:
            return {pod["metadata"]["name"] for pods in (self.pods, self.gone) for pod in pods.values()}

    def left(self):
        """Names of pods that have not ended."""
        return [pod["metadata"]["name"] for pod in self.all() if not has_ended(pod)]
