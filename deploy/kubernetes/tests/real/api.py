"""A client of the API server for tests, and the objects that tests make."""

import http.client
import json
import ssl
import threading

from plane import ADMIN, Failed

TEAM, OTHER, SERVE = "team-a", "team-b", "serve-a"
MERGE = "application/merge-patch+json"
GATE = "pleach/hold"
PRODUCT = "A100-SXM4-80GB"
JOB_NAME, JOB_INDEX = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"


class Client:
    """Requests as the administrator; one connection a thread, made anew where it breaks."""

    def __init__(self, plane):
        self.port, self.local = plane.api_port, threading.local()
        self.context = ssl.create_default_context(cafile=plane.at("servers.crt"))

    def open(self, limit_s=20):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=limit_s)

    def ask(self, method, path, body=None, kind="application/json", token=ADMIN):
        """Code and JSON of an answer; code 0 where there is none."""
        head = {"Authorization": f"Bearer {token}", "Content-Type": kind, "Accept": "application/json"}
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

    def add_node(self, name, gpus, product=PRODUCT):
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

    def add_pod(self, name, gpus, namespace=TEAM, labels=None, spec=None, **how):
        """A pod of one container that nobody owns; `how` as for `template`."""
        pod = template(gpus, labels=labels, **how)
        pod["metadata"]["name"] = name
        pod["spec"] |= spec or {}
        return self.must("POST", f"/api/v1/namespaces/{namespace}/pods", {"apiVersion": "v1", "kind": "Pod", **pod})

    def job(self, name, size, gpus, labels=None, **how):
        """An Indexed Job that runs all its pods at once, and makes those anew that were disrupted; `how` as for `template`."""
        # A policy for failures: without one the Job controller waits 10 s before it makes a pod anew.
        ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        return {"metadata": {"name": name, "labels": labels or {}}, "spec": {
            "completions": size, "parallelism": size, "completionMode": "Indexed", "podFailurePolicy": {"rules": [ignore]},
            "template": template(gpus, labels=labels, **how)}}

    def add_job(self, name, size, gpus, namespace=TEAM, **how):
        return self.must("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", self.job(name, size, gpus, **how))

    def jobs_left(self):
        """Names of Jobs that have not ended, but those that nobody is to start."""
        jobs = self.ask("GET", f"/apis/batch/v1/namespaces/{TEAM}/jobs")[1].get("items", [{"metadata": {"name": "no answer"}}])
        over = lambda job: any(one["type"] in ("Complete", "Failed") for one in job.get("status", {}).get("conditions") or [])
        return [job["metadata"]["name"] for job in jobs if not over(job)]

    def pod(self, name, namespace=TEAM):
        return self.must("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")


def template(gpus, life_s=0.3, estimate_s=None, gang=None, labels=None, annotations=None):
    """What a pod is made from: one container, and how long kwok runs it; `gang` is a name and a size."""
    told = {"test/run": f"{life_s}s", **(annotations or {})}
    if estimate_s is not None:
        told["pleach/estimate-s"] = str(estimate_s)
    if gang:
        told |= {"pleach/gang": gang[0], "pleach/gang-size": str(gang[1])}
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    if gpus:
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    return {"metadata": {"labels": labels or {}, "annotations": told}, "spec": {
        "containers": [{"name": "main", "image": "train:1", "resources": resources}], "restartPolicy": "Never"}}


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
