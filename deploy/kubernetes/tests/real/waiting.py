"""Jobs that wait suspended, quotas of namespaces and classes of priority, on a real control plane."""

import time

from api import GATE, MERGE, OTHER, TEAM, gates, notes
from operators import install, job_set, pytorch_job
from plane import CONTROLLER, expect, wait_for

JOBS = f"/apis/batch/v1/namespaces/{TEAM}/jobs"


class Waiting:
    """Steps beside those of `Steps`, which has the plane, the watcher and the ways to submit."""

    def __init__(self, steps):
        self.steps, self.plane, self.client = steps, steps.plane, steps.client

    def fill(self, life_s):
        """Takes all GPUs of the nodes of 8."""
        wide = [self.steps.add("wide", 8, life_s=life_s, estimate_s=1) for _ in range(3)]
        wait_for("the nodes are full", lambda: all(self.steps.watcher.node_of(name) for name in wide))

    def job(self, name):
        return self.client.must("GET", f"{JOBS}/{name}")

    def submit(self, name, size, gpus, spec=None, pod=None, **how):
        """A Job of which no pod is waited for; its name."""
        job = self.client.job(name, size, gpus, annotations={"test/gang": name, "test/gang-size": str(size)}, **how)
        job["spec"] |= spec or {}
        job["spec"]["template"]["spec"] |= pod or {}
        self.client.must("POST", JOBS, job)
        return name

    def pods(self, name):
        return self.steps.watcher.of_job(name)

    def is_over(self, name, kind="Complete"):
        conditions = self.job(name).get("status", {}).get("conditions") or []
        return any(one["type"] == kind and one["status"] == "True" for one in conditions)

    def suspended(self):
        """A Job that waits longer than its deadline is suspended, has no pods, and runs when it is its turn. One that its user
        suspends stays so until he lets it go."""
        self.fill(life_s=9)
        self.submit("mine", 1, 1, spec={"suspend": True}, life_s=0.3)
        gang = self.submit("patient", 2, 8, spec={"activeDeadlineSeconds": 4}, life_s=0.5, estimate_s=1)
        made = self.job(gang)
        expect(made["spec"]["suspend"] and "pleach/suspended" in notes(made), f"the webhook left it: {made['spec'].get('suspend')}")
        time.sleep(6)
        expect(not self.is_over(gang, "Failed") and not self.pods(gang), f"while it waits: {self.job(gang)['status']}")
        wait_for("the Job is complete", lambda: self.is_over(gang))
        done = self.job(gang)
        expect("pleach/suspended" not in notes(done), f"annotations stay: {notes(done)}")
        expect(done["status"]["startTime"] > done["metadata"]["creationTimestamp"], "the time began when the Job was made")
        expect(self.job("mine")["spec"]["suspend"] and not self.pods("mine"), "a Job of its user was let go")
        self.client.must("PATCH", f"{JOBS}/mine", {"spec": {"suspend": False}}, MERGE)
        wait_for("the user's Job is complete", lambda: self.is_over("mine"))
        self.steps.until_all_ended()

    def given_back(self):
        """Pods of a Job that wait with the gate are given back: it waits suspended, and its deadline begins anew."""
        self.fill(life_s=18)
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/pleach"
        was = self.client.must("GET", path)
        self.client.must("PUT", path, {**was, "webhooks": was["webhooks"][:1]})
        time.sleep(2)
        gang = self.submit("gated", 2, 8, spec={"activeDeadlineSeconds": 14}, life_s=0.5, estimate_s=1)
        wait_for("its pods are held", lambda: len(self.pods(gang)) == 2)
        expect(all(GATE in gates(self.client.pod(name)) for name in self.pods(gang).values()), "a pod has no gate")
        now = self.client.must("GET", path)
        self.client.must("PUT", path, {**now, "webhooks": was["webhooks"]})
        wait_for("its pods are given back", lambda: not self.pods(gang) and self.job(gang)["spec"]["suspend"])
        wait_for("the Job is complete", lambda: self.is_over(gang))
        self.steps.until_all_ended()

    def bounded(self):
        """What the admission policy of `guarded` forbids the controller, which its rights allow: of Jobs, JobSets, training jobs, pods."""
        install(self.client)
        self.plane.kill("pleach")
        pods = f"/api/v1/namespaces/{TEAM}/pods"
        running = self.submit("runs", 1, 1)
        self.client.must("PATCH", f"{JOBS}/{running}", {"spec": {"suspend": False}}, MERGE)
        user = self.submit("own", 1, 1, spec={"suspend": True})
        ours = {"metadata": {"annotations": {"pleach/suspended": "0"}}, "spec": {"suspend": True}}
        other = self.client.job("elsewhere", 1, 1)
        self.client.must("POST", JOBS.replace(TEAM, OTHER), other)
        sets = [(job_set(self.client, "bound-set"), {"replicatedJobs": []}, {"suspend": False}, {"suspend": True},
                 {"replicatedJobsStatus": [{"name": "train", "ready": 1}]}),
                (pytorch_job(self.client, "bound-torch"), {"pytorchReplicaSpecs": {"Master": None}}, {"runPolicy": {"suspend": False}},
                 {"runPolicy": {"suspend": True}}, {"replicaStatuses": {"Worker": {"active": 1}}})]
        note = {"metadata": {"annotations": {"other": "note"}}}
        tries = [("an image", f"{pods}/{self.client.add_pod('bound', 1)['metadata']['name']}",
                  {"spec": {"containers": [{"name": "main", "image": "other:1"}]}}),
                 ("a user's Job", f"{JOBS}/{user}", {"spec": {"suspend": False}}),
                 ("a template", f"{JOBS}/{user}", {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
                 ("an annotation", f"{JOBS}/{user}", note), ("a label", f"{JOBS}/{user}", {"metadata": {"labels": {"a": "b"}}}),
                 ("another namespace", f"{JOBS.replace(TEAM, OTHER)}/elsewhere", ours)]
        for gang, spec, resumed, suspended, status in sets:
            path = f"{gang.path}/{gang.name}"
            self.client.must("PATCH", path, {"metadata": {"annotations": {"pleach/suspended": None}}, "spec": suspended}, MERGE)
            tries += [(f"the pods of {gang.kind}", path, {"spec": spec}), (f"a user's {gang.kind}", path, {"spec": resumed}),
                      (f"an annotation of {gang.kind}", path, note)]
        kinds = {"containers": "application/strategic-merge-patch+json"}
        for what, path, patch in tries:
            kind = next((kinds[key] for key in patch.get("spec", {}) if key in kinds), MERGE)
            code, answer = self.client.ask("PATCH", path, patch, kind, token=CONTROLLER)
            expect(code in (403, 422) and "ValidatingAdmissionPolicy" in answer.get("message", ""), f"{what}: {code} {answer}")
        # One that runs is not suspended; one without pods is, and is let go again.
        for gang, _, resumed, suspended, status in sets:
            path = f"{gang.path}/{gang.name}"
            self.client.must("PATCH", path, {"spec": resumed}, MERGE)
            again = {**ours, "spec": suspended}
            self.client.must("PATCH", f"{path}/status", {"status": status}, MERGE)
            code, answer = self.client.ask("PATCH", path, again, MERGE, token=CONTROLLER)
            expect(code in (403, 422), f"{gang.kind} with pods was suspended: {code} {answer}")
            self.client.must("PATCH", f"{path}/status", {"status": {key: None for key in status}}, MERGE)
            back = {"metadata": {"annotations": {"pleach/suspended": None, "pleach/decided": "{}"}}, "spec": resumed}
            for patch in (again, back):
                code, answer = self.client.ask("PATCH", path, patch, MERGE, token=CONTROLLER)
                expect(code == 200, f"{gang.kind}, {patch}: {code} {answer}")
            self.client.must("DELETE", path)
        for path in (f"{JOBS}/{running}", f"{JOBS}/{user}", f"{JOBS.replace(TEAM, OTHER)}/elsewhere", f"{pods}/bound"):
            self.client.must("DELETE", f"{path}?propagationPolicy=Background")
        self.steps.start_ours()

    def quota(self):
        """Of two Jobs of a namespace whose quota holds one, the second has no pods until the first is over, and its user reads why."""
        path = f"/api/v1/namespaces/{TEAM}/resourcequotas"
        self.client.must("POST", path, {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "8"}}})
        wait_for("the quota is counted", lambda: "used" in self.client.must("GET", f"{path}/gpus").get("status", {}))
        first = self.submit("first", 1, 8, life_s=6, estimate_s=1)
        wait_for("the first runs", lambda: self.pods(first) and self.steps.watcher.node_of(self.pods(first)[0]))
        runs = self.pods(first)[0]
        second = self.submit("second", 2, 4, life_s=0.5, estimate_s=1)

        def said():
            events = self.client.must("GET", f"/api/v1/namespaces/{TEAM}/events?fieldSelector=involvedObject.name={second}")
            return [one["message"] for one in events["items"] if "quota gpus" in one.get("message", "")]
        wait_for("its user reads of the quota", said)
        expect(not self.pods(second) and self.job(second)["spec"]["suspend"], "pods were made that the quota refuses")
        wait_for("the second gets its pods", lambda: self.pods(second))
        expect(runs in self.steps.watcher.ends, "it did not wait for the first to end")
        wait_for("the second is complete", lambda: self.is_over(second))
        self.client.must("DELETE", f"{path}/gpus")
        self.steps.until_all_ended()

    def classes(self):
        """A Job of a higher class of priority starts before an older and shorter one."""
        for name, value in (("urgent", 1000), ("batch", -10)):
            self.client.must("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
                "metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"})
        self.fill(life_s=4)
        low = self.submit("low", 3, 8, pod={"priorityClassName": "batch"}, life_s=0.5, estimate_s=1)
        usual = self.submit("usual", 3, 8, life_s=0.5, estimate_s=10)
        high = self.submit("high", 3, 8, pod={"priorityClassName": "urgent"}, life_s=0.5, estimate_s=1000)
        wait_for("all are complete", lambda: all(self.is_over(name) for name in (low, usual, high)))
        begun = [self.job(name)["status"]["startTime"] for name in (high, usual, low)]
        expect(begun == sorted(begun) and len(set(begun)) == 3, f"high, usual and low began at {begun}")
        self.steps.until_all_ended()
