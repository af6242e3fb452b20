"""Kueue beside a plane on loopback: its definitions and webhooks by address, one queue with the quota of the whole cluster."""

import json
import os
import shutil
import ssl
import urllib.request
from pathlib import Path

from api import PRODUCT
from plane import wait_for

KUEUE = "kueue-token-of-a-test"
QUEUE = "q"
GROUP = "kueue.x-k8s.io"


def documents(text):
    """JSON values one after the other, lists taken apart."""
    found, decoder, at = [], json.JSONDecoder(), 0
    text = text.strip()
    while at < len(text):
        one, at = decoder.raw_decode(text, at)
        found += one["items"] if one.get("kind") == "List" else [one]
        while at < len(text) and text[at].isspace():
            at += 1
    return found


def holds(one, condition):
    """Whether an object says that a condition is true."""
    conditions = (one.get("status") or {}).get("conditions") or []
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


class Kueue:
    """Installs and starts it. `components` is the folder of that name in Kueue's Go module: its manifests."""

    def __init__(self, plane, client, components, port, quota_gpus, knows_nodes):
        self.plane, self.client, self.port, self.quota_gpus, self.knows_nodes = plane, client, port, quota_gpus, knows_nodes
        self.components = Path(components)
        self.config = plane.kubeconfig("kueue-client.json", {"token": KUEUE})

    def up(self, namespace):
        self.add_definitions()
        self.start()
        self.add_webhooks()
        self.add_queue(namespace)

    def as_json(self, path):
        return documents(self.plane.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", str(path)))

    def at(self, path):
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.plane.authority()}

    def add_definitions(self):
        """Kinds that Kueue's own kustomization patches are converted by Kueue, others are not."""
        converted = (self.components / "crd" / "kustomization.yaml").read_text()
        names = []
        for path in sorted((self.components / "crd" / "bases").glob("*.yaml")):
            kind = path.stem.split("_")[1]
            for one in self.as_json(path):
                if f"\n- path: patches/webhook_in_{kind}.yaml" in converted:
                    webhook = {"clientConfig": self.at("/convert"), "conversionReviewVersions": ["v1"]}
                    one["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
                self.client.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
                names.append(one["metadata"]["name"])
        for name in names:
            wait_for(f"{name} is established", lambda name=name: self.is_established(name))

    def is_established(self, name):
        one = self.client.must("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        return holds(one, "Established")

    def start(self):
        """Kueue reads a certificate at a fixed place below /etc: it sees a folder of ours there, in its own mount namespace."""
        etc, certificates = self.plane.folder / "kueue-etc", self.plane.folder / "kueue-certificates"
        fixed = etc / "kueue" / "metrics" / "certs"
        for folder in (fixed, certificates):
            folder.mkdir(parents=True)
            shutil.copy(self.plane.at("api.crt"), folder / "tls.crt")
            shutil.copy(self.plane.at("api.key"), folder / "tls.key")
        config = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
            "health": {"healthProbeBindAddress": "0"}, "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": self.port, "certDir": str(certificates)},
            "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False},
            # As Kueue's own manager configuration has it.
            "controller": {"groupKindConcurrency": {
                "Job.batch": 5, "Pod": 5, "Workload.kueue.x-k8s.io": 5, "LocalQueue.kueue.x-k8s.io": 1,
                "Cohort.kueue.x-k8s.io": 1, "ClusterQueue.kueue.x-k8s.io": 1, "ResourceFlavor.kueue.x-k8s.io": 1}},
            "clientConnection": {"qps": 50, "burst": 100}, "integrations": {"frameworks": ["batch/job"]},
        }
        path = self.plane.folder / "etc" / "kueue.json"
        path.write_text(json.dumps(config))
        script = 'mount --bind "$1" /etc && shift && exec "$@"'
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        self.plane.start("kueue", *unshare, "sh", "-c", script, "sh", etc, self.plane.binary("kueue"), f"--config={path}",
                         f"--kubeconfig={self.config}", "--feature-gates=VisibilityOnDemand=false", "--zap-log-level=1")
        wait_for("Kueue's webhooks answer", self.answers)

    def answers(self):
        context = ssl.create_default_context(cafile=self.plane.at("servers.crt"))
        try:
            urllib.request.urlopen(f"https://127.0.0.1:{self.port}/", context=context, timeout=2)
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def add_webhooks(self):
        """Those for Jobs and for Kueue's own kinds; no other kind is here."""
        for config in self.as_json(self.components / "webhook" / "manifests.yaml"):
            kept = []
            for webhook in config["webhooks"]:
                asked = {(group, kind) for rule in webhook["rules"] for group in rule["apiGroups"] for kind in rule["resources"]}
                if all(group == GROUP or (group, kind.split("/")[0]) == ("batch", "jobs") for group, kind in asked):
                    webhook["clientConfig"] = self.at(webhook["clientConfig"]["service"]["path"])
                    kept.append(webhook)
            config["webhooks"], config["metadata"]["name"] = kept, f"kueue-{config['metadata']['name']}"
            kind = config["kind"].lower() + "s"
            self.client.must("POST", f"/apis/admissionregistration.k8s.io/v1/{kind}", config)

    def add_queue(self, namespace):
        """One ClusterQueue over all nodes: `BestEffortFIFO`, Kueue's default; the quota of GPUs is what the nodes have. With a
        topology Kueue admits only what has room on nodes, and names them (topology-aware scheduling)."""
        base, kinds = f"/apis/{GROUP}/v1beta2", {"apiVersion": f"{GROUP}/v1beta2"}
        room = {"cpu": "100000", "memory": "100000Gi", "nvidia.com/gpu": str(self.quota_gpus)}
        quotas = [{"name": name, "nominalQuota": quota} for name, quota in room.items()]
        group = {"coveredResources": list(room), "flavors": [{"name": "gpus", "resources": quotas}]}
        flavor = kinds | {"kind": "ResourceFlavor", "metadata": {"name": "gpus"}, "spec": {}}
        if self.knows_nodes:
            topology = kinds | {"kind": "Topology", "metadata": {"name": "nodes"}}
            topology["spec"] = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
            self.wait_post(f"{base}/topologies", topology)
            flavor["spec"] = {"topologyName": "nodes", "nodeLabels": {"nvidia.com/gpu.product": PRODUCT}}
        self.wait_post(f"{base}/resourceflavors", flavor)
        self.wait_post(f"{base}/clusterqueues", kinds | {"kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {
            "namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "resourceGroups": [group]}})
        self.wait_post(f"{base}/namespaces/{namespace}/localqueues", kinds | {
            "kind": "LocalQueue", "metadata": {"name": QUEUE}, "spec": {"clusterQueue": "all"}})

        def is_active():
            return holds(self.client.must("GET", f"{base}/clusterqueues/all"), "Active")
        wait_for("the ClusterQueue is active", is_active)

    def wait_post(self, path, body):
        """The API server takes a webhook's address up after a second or so."""
        wait_for(f"POST {path}", lambda: self.client.ask("POST", path, body)[0] in (201, 409), pause_s=0.3)
