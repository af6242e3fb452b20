"""A client of the API server for tests, and the objects that tests make."""

import http.client
import json
import ssl
import threading

from plane import ADMIN, Failed

TEAM, OTHER = "team-a", "team-b"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
GATE = "pleach/hold"


class Client:
    """Requests as the administrator; one connection a thread, made anew where it breaks."""

    def __init__(self, plane):
        self.port, self.local = plane.api_port, threading.local()
        self.context = ssl.create_default_context(cafile=plane.at("servers.crt"))

    def open(self, limit_s=20):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=limit_s)

    def ask(self, method, path, body=None, kind="application/json"):
        """Code and JSON of an answer; code 0 where there is none."""
        head = {"Authorization": f"Bearer {ADMIN}", "Content-Type": kind, "Accept": "application/json"}
        text = None if body is None else json.dumps(body)
        for is_last in (False, True):
            try:
                if getattr(self.local, "one", None) is None:
                    self.local.one = self.open()
                self.local.one.request(method, path, text, head)
                answer = self.local.one.getresponse()
                content = answer.read()
                try:
                    return answer.status, json.loads(content or b"{}")
                except ValueError:
                    return answer.status, {"text": content.decode(errors="replace")}
            except (OSError, http.client.HTTPException):
                self.local.one = None
                # A request that makes something is not sent twice.
                if is_last or method == "POST":
                    return 0, {}
        return 0, {}

    def must(self, method, path, body=None, kind="application/json"):
        code, answer = self.ask(method, path, body, kind)
        if not 200 <= code < 300:
            raise Failed(f"{method} {path}: {code} {answer.get('message', answer)}")
        return answer

    def watch(self, path, version):
        """Events from a version on, until the connection ends."""
        one = self.open(limit_s=60)
        try:
            one.request("GET", f"{path}?watch=1&resourceVersion={version}&allowWatchBookmarks=true",
                        headers={"Authorization": f"Bearer {ADMIN}"})
            answer = one.getresponse()
            while line := answer.readline():
                yield json.loads(line)
        except (OSError, ValueError, http.client.HTTPException):
            pass
        finally:
            one.close()

    # Objects

    def add_node(self, name, gpus, product="A100-SXM4-80GB"):
        labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": product}
        self.must("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        room = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        self.set_node(name, {"capacity": room, "allocatable": room})

    def set_node(self, name, status):
        self.must("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, MERGE)

    def set_ready(self, name, is_ready):
        ready = {"type": "Ready", "status": "True" if is_ready else "Unknown", "reason": "test", "message": "",
                 "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        self.set_node(name, {"conditions": [ready]})
        taints = [] if is_ready else [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
        self.must("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": taints}}, MERGE)

    def add_pod(self, name, gpus, life_s=0.3, estimate_s=None, gang=None, namespace=TEAM, labels=None, annotations=None,
                is_owned=False, spec=None):
        """A pod of one container; `gang` is a name and a size."""
        notes = {"test/life-s": str(life_s), **(annotations or {})}
        if estimate_s is not None:
            notes["pleach/estimate-s"] = str(estimate_s)
        if gang:
            notes |= {"pleach/gang": gang[0], "pleach/gang-size": str(gang[1])}
        resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
        if gpus:
            resources["limits"] = {"nvidia.com/gpu": str(gpus)}
        pod = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {}, "annotations": notes},
            "spec": {"containers": [{"name": "main", "image": "train:1", "resources": resources}], "restartPolicy": "Never",
                     **(spec or {})},
        }
        if is_owned:
            pod["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "of-a-test",
                                                   "controller": True}]
        return self.must("POST", f"/api/v1/namespaces/{namespace}/pods", pod)

    def pod(self, name, namespace=TEAM):
        return self.must("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")


def gates(pod):
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or []]


def notes(pod):
    return pod["metadata"].get("annotations") or {}


def gpus(pod):
    limits = [one.get("resources", {}).get("limits", {}) for one in pod["spec"]["containers"]]
    return sum(int(each.get("nvidia.com/gpu", 0)) for each in limits)


def phase(pod):
    return pod.get("status", {}).get("phase", "Pending")


def has_ended(pod):
    return phase(pod) in ("Succeeded", "Failed")
