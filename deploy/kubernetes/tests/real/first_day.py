"""The first day of an operator and of a user, as they would type it; what the programs answer is printed, and is the transcript of
docs/deploy-kubernetes.md."""

import os
import time

from api import TEAM
from plane import expect, wait_for

JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: fit, namespace: team-a}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    metadata: {annotations: {test/run: 6s, pleach/estimate-s: "60"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: train:1, resources: {limits: {nvidia.com/gpu: 8}}}]
"""
# Longest line that is printed, letters.
WIDTH = 200


class FirstDay:
    """The step."""

    def __init__(self, steps):
        self.steps, self.plane, self.client = steps, steps.plane, steps.client

    def say(self, who, command, text, words=()):
        """Prints a command and the lines of its answer that have one of some words; all, where there are none."""
        lines = [line.replace(str(self.plane.folder), "...") for line in text.splitlines() if line.strip()]
        shown = [line for line in lines if not words or any(word in line for word in words)]
        if os.environ.get("PLEACH_STEPS"):
            print("\n".join([f"   {who}$ {command}", *(f"   {line[:WIDTH]}" for line in shown)]), flush=True)
        return text

    def ours(self, command, words=()):
        code, text = self.plane.ours(*command.split())
        return self.say("operator", f"pleach-kubernetes {command}", text, words) if code == 0 else self.fail(command, text)

    def fail(self, command, text):
        expect(False, f"{command}: {text}")

    def first_day(self):
        steps, plane = self.steps, self.plane
        plane.kill("pleach")
        self.ours("check --policy sjf")
        self.ours("run --policy sjf --shadow --rounds 3", words=("shadow", "drives"))
        steps.start_ours()
        wide = [steps.add("wide", 8, life_s=9, estimate_s=1) for _ in range(3)]
        wait_for("the nodes are full", lambda: all(steps.watcher.node_of(name) for name in wide))
        self.say("user", "kubectl apply -f fit.yaml", plane.kubectl("apply", "-f", "-", text=JOB))
        time.sleep(2)
        self.say("user", "kubectl -n team-a get job fit", plane.kubectl("-n", TEAM, "get", "job", "fit"))
        told = self.say("operator", "pleach-kubernetes status", plane.ours("status")[1])
        expect("waiting" in told, told)
        wait_for("the Job runs", lambda: any(steps.watcher.node_of(pod) for pod in steps.watcher.of_job("fit").values()))
        time.sleep(1)
        self.ours(f"explain {TEAM}/{next(iter(steps.take('fit').values()))}")
        wait_for("the Job is complete", lambda: self.client.must("GET", f"/apis/batch/v1/namespaces/{TEAM}/jobs/fit")
                 .get("status", {}).get("succeeded") == 2)
        told = self.say("user", "kubectl -n team-a describe job fit", plane.kubectl("-n", TEAM, "describe", "job", "fit"),
                        words=("Duration", "Pods Statuses", "Pleach", "Suspended", "SuccessfulCreate", "Resumed", "Completed"))
        expect("PleachWaits" in told and "PleachStarted" in told, f"its user reads: {told}")
        steps.until_all_ended()
