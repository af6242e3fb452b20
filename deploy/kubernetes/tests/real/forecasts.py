"""Forecasts of starts on a real control plane: the controller drives, `capture --every` writes the list as it stands, `pleach when
--answers` forecasts from it, the controller serves the answer and writes an Event. Printed, it is a transcript of docs/when.md."""

import json
import os
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

from api import TEAM
from first_day import FirstDay
from plane import expect, wait_for


class Forecasts(FirstDay):
    """The step. PLEACH names the program `pleach`; without it, that beside `pleach-kubernetes`."""

    def served(self, query=""):
        """What `GET /v1/when` answers, with the certificate of the webhook's client; none where it has no forecast."""
        context = ssl.create_default_context(cafile=self.plane.at("servers.crt"))
        context.load_cert_chain(self.plane.at("client.crt"), self.plane.at("client.key"))
        try:
            url = f"https://127.0.0.1:{self.plane.ours_port}/v1/when{query}"
            with urllib.request.urlopen(url, context=context, timeout=10) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            expect(error.code == 404, f"GET /v1/when{query}: {error.code}")
            return None

    def told(self, name):
        """Messages of the Events about when a Job starts."""
        path = f"/api/v1/namespaces/{TEAM}/events?fieldSelector=involvedObject.name={name}"
        events = self.client.must("GET", path)["items"]
        return [one.get("message") or one.get("note", "") for one in events if one["reason"] == "PleachForecast"]

    def forecasts(self):
        steps, plane = self.steps, self.plane
        pleach = Path(os.environ.get("PLEACH") or Path(plane.program).with_name("pleach"))
        expect(pleach.exists(), f"{pleach} is not there: PLEACH names the program")
        state = plane.folder / "state"
        for _ in range(3):
            steps.add("short", 8, life_s=2, estimate_s=60)
        steps.until_all_ended()
        wide = [steps.add("wide", 8, life_s=80, estimate_s=120) for _ in range(3)]
        wait_for("the nodes are full", lambda: all(steps.watcher.node_of(name) for name in wide))
        job = self.client.job("later", 1, 8, life_s=0.5, estimate_s=60)
        self.client.must("POST", f"/apis/batch/v1/namespaces/{TEAM}/jobs", job)
        plane.start("capture", plane.program, "--config", plane.settings, "capture", state, "--to", state / "queue.csv", "--every", "1s")
        plane.start("when", pleach, "when", state / "queue.csv", "--policy", "fifo", "--answers", state / "when.json", "--every", "1s",
                    "--quiet")
        # The id of an indexed Job is of its UID and the index: the one job that waits has it in the list of answers.
        waiting = lambda: list(json.loads((state / "when.json").read_text())["jobs"]) if (state / "when.json").exists() else []
        wait_for("one job that waits has a forecast", lambda: len(waiting()) == 1)
        uid = waiting()[0]
        wait_for("the forecast is served", lambda: self.served(f"?job={uid}"))
        # All nodes of eight are full: once it has waited longer than any job before, its median is not now.
        wait_for("its median is later", lambda: self.served(f"?job={uid}")["jobs"][uid]["median_s"] > 0)
        answer = self.served(f"?job={uid}")
        expect(list(answer["jobs"]) == [uid] and answer["is_fresh"], f"it answers {answer}")
        self.say("operator", f"curl https://pleach:8443/v1/when?job={uid}", json.dumps(answer))
        every = self.served()
        expect(every["jobs"] == {} and every["requests"], f"of all jobs it says {every}")
        wait_for("its user reads the forecast", lambda: self.told("later"))
        self.say("user", "kubectl -n team-a get events --field-selector involvedObject.name=later", "\n".join(self.told("later")))
        plane.kill("when")
        text = plane.text(pleach, "when", state / "queue.csv", "--policy", "fifo", "--job", uid)
        self.say("operator", f"pleach when queue.csv --policy fifo --job {uid}", text)
        expect("has waited" in text and "now 3 jobs run and 1 wait" in text, f"pleach when: {text}")
        plane.kill("capture")
        num_told = len(self.told("later"))
        time.sleep(3)
        old = self.served(f"?job={uid}")
        expect(old["age_s"] >= 3 and len(self.told("later")) == num_told, f"without a forecaster: {old}")
        (state / "when.json").write_text('{"version":1')
        wait_for("half a file is no forecast", lambda: self.served(f"?job={uid}") is None)
        steps.until_all_ended()
