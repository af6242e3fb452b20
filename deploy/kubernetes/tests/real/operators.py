"""What makes the pods of gangs of thirteen shapes: definitions of kinds that this plane lacks, and what their operators do with them.

The definitions have the group, version and fields that Pleach reads, and take any others. An operator here makes pods with the
owner, names and labels of the real one, makes lost ones anew, has none while its object is suspended, and writes its status.
"""

import threading
import time

from api import MERGE, TEAM, has_ended, notes, template
from plane import Failed, wait_for

# Group, version, kind, plural of each. Of the source that stands beside a shape below.
KINDS = (("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"), ("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs"),
         ("kubeflow.org", "v1", "MPIJob", "mpijobs"), ("ray.io", "v1", "RayCluster", "rayclusters"),
         ("ray.io", "v1", "RayJob", "rayjobs"),
         ("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets"),
         ("batch.volcano.sh", "v1alpha1", "Job", "vcjobs"), ("grove.io", "v1alpha1", "PodClique", "podcliques"),
         # What stands for anything else that makes pods of a group.
         ("test.example", "v1", "Group", "groups"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIZE, GPUS = 3, 2


def install(client):
    """The definitions, each with a status of its own."""
    for group, version, kind, plural in KINDS:
        name = f"{plural}.{group}"
        any_field = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        client.ask("POST", DEFINITIONS, {"metadata": {"name": name}, "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": plural[:-1]},
            "versions": [{"name": version, "served": True, "storage": True, "subresources": {"status": {}},
                          "schema": {"openAPIV3Schema": any_field}}]}})
        path = f"/apis/{group}/{version}/namespaces/{TEAM}/{plural}"
        wait_for(f"{name} is served", lambda path=path: client.ask("GET", path)[0] == 200)


def of_kind(plural):
    group, version, kind, _ = next(one for one in KINDS if one[3] == plural)
    return group, version, kind


def pod_template(gang, size=SIZE, gpus=GPUS, words=None, labels=None):
    """Pods that end once their gang was whole for a while: the time is written then."""
    pod = template(gpus, annotations={"test/gang": gang, "test/gang-size": str(size), **(words or {})}, labels=labels)
    del pod["metadata"]["annotations"]["test/run"]
    return pod


class Gang:
    """A gang, the object behind it, and what its operator has to know. `suspend` is the path to that field; none: it has none.
    Where `is_stuck`, one of its first pods does not begin."""

    is_stuck = False
    done = {"conditions": [{"type": "Succeeded", "status": "True"}]}

    def __init__(self, client, name, plural, spec, pods, suspend=None, whole_restart=False):
        self.client, self.name, self.size = client, name, len(pods)
        self.group, self.version, self.kind = of_kind(plural)
        self.path = f"/apis/{self.group}/{self.version}/namespaces/{TEAM}/{plural}"
        self.pods, self.suspend, self.whole_restart = pods, suspend, whole_restart
        self.num_made, self.is_done, self.was_whole = 0, False, False
        body = {"apiVersion": f"{self.group}/{self.version}", "kind": self.kind, "metadata": {"name": name}, "spec": spec}
        self.uid = client.must("POST", self.path, body)["metadata"]["uid"]

    def state(self):
        """What its object says, for a person."""
        one = self.client.must("GET", f"{self.path}/{self.name}")
        return one.get("spec", {}).get("suspend"), notes(one), one.get("status")

    def is_suspended(self):
        one = self.client.must("GET", f"{self.path}/{self.name}")
        for key in self.suspend or ():
            one = one.get(key) or {}
        return self.suspend is not None and one is True

    def act(self, live, ended):
        """One turn: `live` and `ended` are its pods by place."""
        if self.is_suspended():
            for pod in live.values():
                self.client.ask("DELETE", f"/api/v1/namespaces/{TEAM}/pods/{pod['metadata']['name']}")
            return
        missing = [place for place in range(self.size) if place not in live and place not in ended]
        if self.whole_restart and self.was_whole and missing:
            # RecreateGroupOnPodRestart: all others go too.
            self.was_whole = False
            for pod in live.values():
                self.client.ask("DELETE", f"/api/v1/namespaces/{TEAM}/pods/{pod['metadata']['name']}")
            return
        for place in missing:
            self.make(place)
        self.was_whole |= len(live) == self.size
        if len(ended) == self.size and not self.is_done:
            self.is_done = True
            self.client.ask("PATCH", f"{self.path}/{self.name}/status", {"status": self.done}, MERGE)

    def owner(self):
        return {"apiVersion": f"{self.group}/{self.version}", "kind": self.kind, "name": self.name, "uid": self.uid,
                "controller": True}

    def make(self, place):
        """The same name again only once the old pod is gone, as operators do."""
        stem, pod = self.pods[place]
        owner = self.owner()
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {**pod["metadata"], "name": stem, "ownerReferences": [owner]},
                "spec": pod["spec"]}
        body["metadata"]["annotations"] = {**pod["metadata"]["annotations"], "test/place": str(place)}
        if self.is_stuck and place == 1 and self.num_made < self.size:
            body["metadata"]["annotations"]["test/stuck"] = "no image"
        if self.client.ask("POST", f"/api/v1/namespaces/{TEAM}/pods", body)[0] == 201:
            self.num_made += 1


def several(name, num, pod, stem=None):
    return [((stem or "{name}-{place}").format(name=name, place=place), pod) for place in range(num)]


# Shapes: each makes the objects of its user, and gives the gang.

def pytorch_job(client, name):
    """training-operator 1.9: `pytorchReplicaSpecs`, `runPolicy.suspend`; labels of `common.GenLabels`; PET_NNODES in each container."""
    pod = pod_template(name, labels={"training.kubeflow.org/job-name": name, "training.kubeflow.org/operator-name": "pytorchjob-controller"})
    pod["spec"]["containers"][0]["env"] = [{"name": "PET_NNODES", "value": str(SIZE)}]
    role = lambda num: {"replicas": num, "template": pod}
    spec = {"pytorchReplicaSpecs": {"Master": role(1), "Worker": role(SIZE - 1)}}
    pods = [(f"{name}-master-0", pod), *several(name, SIZE - 1, pod, "{name}-worker-{place}")]
    return Gang(client, name, "pytorchjobs", spec, pods, suspend=("spec", "runPolicy", "suspend"))


def mpi_job(client, name):
    """training-operator 1.9: `mpiReplicaSpecs`; workers with GPUs (its launcher has none, and is no part of the gang)."""
    pod = pod_template(name, labels={"training.kubeflow.org/job-name": name, "training.kubeflow.org/replica-type": "worker"})
    spec = {"mpiReplicaSpecs": {"Worker": {"replicas": SIZE, "template": pod}}, "runPolicy": {"cleanPodPolicy": "Running"}}
    return Gang(client, name, "mpijobs", spec, several(name, SIZE, pod, "{name}-worker-{place}"), suspend=("spec", "runPolicy", "suspend"))


def ray_cluster(client, name):
    """KubeRay 1.4, a RayCluster of its own: label `ray.io/cluster`; nothing tells the number of its pods."""
    pod = pod_template(name, labels={"ray.io/cluster": name, "ray.io/is-ray-node": "yes"})
    return Gang(client, name, "rayclusters", {"workerGroupSpecs": []}, several(name, SIZE, pod, "{name}-workers-{place}"))


class RayJob(Gang):
    """KubeRay 1.4: `suspend`, and a RayCluster that it makes when it is let go, whose name its status has; the pods are that one's."""

    done = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}

    def __init__(self, client, name):
        self.cluster, self.cluster_uid = f"{name}-x2k9q", None
        pod = pod_template(name, labels={"ray.io/cluster": self.cluster, "ray.io/is-ray-node": "yes"})
        workers = {"groupName": "workers", "replicas": SIZE, "template": pod}
        spec = {"entrypoint": "python fit.py", "shutdownAfterJobFinishes": True, "rayClusterSpec": {"workerGroupSpecs": [workers]}}
        pods = several(self.cluster, SIZE, pod, "{name}-workers-{place}")
        super().__init__(client, name, "rayjobs", spec, pods, suspend=("spec", "suspend"))

    def owner(self):
        if self.cluster_uid is None:
            body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": self.cluster}, "spec": {}}
            found = self.client.must("POST", self.path.replace("rayjobs", "rayclusters"), body)
            self.cluster_uid = found["metadata"]["uid"]
            status = {"status": {"jobDeploymentStatus": "Initializing", "rayClusterName": self.cluster}}
            self.client.must("PATCH", f"{self.path}/{self.name}/status", status, MERGE)
        return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": self.cluster, "uid": self.cluster_uid, "controller": True}


def leader_worker_set(client, name):
    """LeaderWorkerSet 0.6, one group: its labels and `size`; RecreateGroupOnPodRestart, its default."""
    at = "leaderworkerset.sigs.k8s.io"
    pod = pod_template(name, words={f"{at}/size": str(SIZE)}, labels={f"{at}/name": name, f"{at}/group-index": "0"})
    return Gang(client, name, "leaderworkersets", {"replicas": 1}, several(name, SIZE, pod, "{name}-0-{place}"), whole_restart=True)


def of_group(client, name, words=None, labels=None, spec=None, plural="groups"):
    pod = pod_template(name, words={"pleach/gang-size": str(SIZE), **(words or {})}, labels=labels)
    pod["spec"] |= spec or {}
    return Gang(client, name, plural, {}, several(name, SIZE, pod))


def native_group(client, name):
    """scheduling.k8s.io/v1alpha2 of Kubernetes 1.36: `spec.schedulingGroup.podGroupName`."""
    return of_group(client, name, spec={"schedulingGroup": {"podGroupName": name}})


def plugins_group(client, name):
    """scheduler-plugins 0.31: the label of a PodGroup."""
    return of_group(client, name, labels={"scheduling.x-k8s.io/pod-group": name})


def volcano_group(client, name):
    """Volcano 1.12: the annotation of a PodGroup, pods of its own kind of Job, under another scheduler than Volcano's."""
    return of_group(client, name, words={"scheduling.k8s.io/group-name": name}, plural="vcjobs")


def kueue_group(client, name):
    """Kueue 0.17, plain pod groups: label and annotation (its own gate is not here)."""
    pod = pod_template(name, words={"kueue.x-k8s.io/pod-group-total-count": str(SIZE)},
                       labels={"kueue.x-k8s.io/pod-group-name": name})
    return Gang(client, name, "groups", {}, several(name, SIZE, pod))


def grove(client, name):
    """Grove 0.1: label `grove.io/podgang` of pods that a PodClique owns."""
    return of_group(client, name, labels={"grove.io/podgang": name}, plural="podcliques")


class JobSet(Gang):
    """JobSet 0.10: `replicatedJobs`, `suspend`, `dependsOn`; Jobs with its labels, which the real Job controller runs."""

    def __init__(self, client, name, has_initializer):
        at = "jobset.sigs.k8s.io"
        self.parts, ignore = [], {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        names = [("init", 1), ("train", SIZE)] if has_initializer else [("train", SIZE)]
        for part, num in names:
            labels = {f"{at}/jobset-name": name, f"{at}/replicatedjob-name": part, f"{at}/replicatedjob-replicas": "1"}
            pod = pod_template(name, labels=labels)
            if part == "init":
                pod = template(0, life_s=3, labels=labels)
            spec = {"parallelism": num, "completions": num, "completionMode": "Indexed", "template": pod,
                    "podFailurePolicy": {"rules": [ignore]}}
            self.parts.append((f"{name}-{part}-0", labels, spec))
        body = [{"name": part, "replicas": 1, "template": {"spec": spec}} for (part, _), (*_, spec) in zip(names, self.parts)]
        if has_initializer:
            body[1]["dependsOn"] = [{"name": "init", "status": "Complete"}]
        super().__init__(client, name, "jobsets", {"replicatedJobs": body}, [None] * SIZE, suspend=("spec", "suspend"))

    def state(self):
        jobs = self.client.must("GET", f"/apis/batch/v1/namespaces/{TEAM}/jobs")["items"]
        mine = [job for job in jobs if job["metadata"]["name"].startswith(f"{self.name}-")]
        return [(job["metadata"]["name"], job["spec"].get("suspend"), notes(job), job.get("status")) for job in mine]

    def act(self, live, ended):
        is_suspended, jobs = self.is_suspended(), f"/apis/batch/v1/namespaces/{TEAM}/jobs"
        for name, labels, spec in self.parts:
            code, job = self.client.ask("GET", f"{jobs}/{name}")
            if code == 404:
                owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": self.name, "uid": self.uid,
                         "controller": True}
                self.client.ask("POST", jobs, {"metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
                                               "spec": {**spec, "suspend": is_suspended}})
            elif code == 200 and (job["spec"].get("suspend") or False) != is_suspended:
                self.client.ask("PATCH", f"{jobs}/{name}", {"spec": {"suspend": is_suspended}}, MERGE)
            if code != 200 or not any(one["type"] == "Complete" for one in job.get("status", {}).get("conditions") or []):
                return
        self.is_done = True
        done = {"status": {"conditions": [{"type": "Completed", "status": "True"}]}}
        self.client.ask("PATCH", f"{self.path}/{self.name}/status", done, MERGE)


class IndexedJob:
    """An Indexed Job: all of it is the Job controller's."""

    def __init__(self, client, name):
        self.client, self.name, self.size, self.is_done, self.kind = client, name, SIZE, False, "Job"
        job = client.job(name, SIZE, GPUS)
        job["spec"]["template"] = pod_template(name)
        client.must("POST", f"/apis/batch/v1/namespaces/{TEAM}/jobs", job)

    def act(self, live, ended):
        job = self.client.must("GET", f"/apis/batch/v1/namespaces/{TEAM}/jobs/{self.name}")
        self.is_done = any(one["type"] == "Complete" for one in job.get("status", {}).get("conditions") or [])

    def state(self):
        return self.client.must("GET", f"/apis/batch/v1/namespaces/{TEAM}/jobs/{self.name}").get("status")


def job_set(client, name):
    return JobSet(client, name, has_initializer=False)


def job_set_in_parts(client, name):
    return JobSet(client, name, has_initializer=True)


SHAPES = {
    "indexed": IndexedJob, "jobset": job_set, "jobset-parts": job_set_in_parts, "pytorch": pytorch_job, "mpi": mpi_job, "ray": ray_cluster,
    "rayjob": RayJob,
    "lws": leader_worker_set, "native": native_group, "plugins": plugins_group, "volcano": volcano_group, "kueue": kueue_group,
    "grove": grove,
}


class Operators(threading.Thread):
    """All operators, in turns."""

    def __init__(self, watcher):
        super().__init__(daemon=True)
        self.watcher, self.gangs, self.lock, self.is_over, self.errors = watcher, [], threading.Lock(), False, []

    def run(self):
        while not self.is_over:
            with self.lock:
                gangs = [gang for gang in self.gangs if not gang.is_done]
            pods = self.pods()
            for gang in gangs:
                mine = pods.get(gang.name, [])
                try:
                    gang.act(*by_place(mine))
                except Failed as error:
                    self.errors.append(str(error))
            time.sleep(0.1)

    def pods(self):
        """Pods of all gangs, by their gang."""
        found = {}
        for pod in self.watcher.all():
            found.setdefault(notes(pod).get("test/gang"), []).append(pod)
        return found


def by_place(pods):
    """Live and ended pods by their place; one that is being deleted is neither, and its place is not taken anew before it is gone."""
    live, ended = {}, {}
    for pod in pods:
        place = notes(pod).get("test/place", notes(pod).get("batch.kubernetes.io/job-completion-index"))
        if has_ended(pod) and pod["status"]["phase"] == "Succeeded":
            ended[int(place)] = pod
        elif not has_ended(pod) and "deletionTimestamp" not in pod["metadata"]:
            live[int(place)] = pod
    return live, ended
