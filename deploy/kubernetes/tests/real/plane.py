"""A control plane on loopback: etcd, kube-apiserver, the Job controller, kube-scheduler and kwok as processes in one folder.

Standard library and the program `openssl` alone. Every process is noted in `run/NAME.pid`, so that the shell around this can
end them too.
"""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

ADMIN, CONTROLLER, SCHEDULER = "admin-token-of-a-test", "controller-token-of-a-test", "scheduler-token-of-a-test"
MANAGER, KWOK = "manager-token-of-a-test", "kwok-token-of-a-test"
STAGES = Path(__file__).resolve().parents[1] / "plane" / "stages.yaml"
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
# How long anything may take to happen, on a machine that is busy with other things.
LIMIT_S = 90


class Failed(Exception):
    """What was expected did not happen."""


def expect(is_so, what):
    if not is_so:
        raise Failed(what)


def wait_for(what, is_so, limit_s=LIMIT_S, pause_s=0.05):
    """Waits until something holds; what it was."""
    end = time.monotonic() + limit_s
    while not (found := is_so()):
        if time.monotonic() > end:
            raise Failed(f"not within {limit_s} s: {what}")
        time.sleep(pause_s)
    return found


def free_ports(num):
    """Ports of loopback that nobody has."""
    sockets = [socket.socket() for _ in range(num)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Plane:
    """The processes, their keys and their addresses."""

    # Settings of the controller that make steps short.
    TRIED = {"tick_s": 0.2, "request_limit_s": 10.0, "settle_s": 1}

    def __init__(self, folder, binaries, program, ports=None):
        self.folder, self.binaries, self.program = Path(folder), Path(binaries), str(program)
        self.etcd_port, self.peer_port, self.api_port, self.ours_port = ports or free_ports(4)
        self.processes = {}
        # Alpha gates of the three programs of Kubernetes.
        self.gates = ()
        for name in ("run", "log", "pki", "etc"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        text = subprocess.run([self.binary("kube-apiserver"), "--version"], capture_output=True, text=True, check=True).stdout
        self.version = text.split()[-1]
        if int(re.match(r"v1\.(\d+)", self.version).group(1)) < 27:
            raise Failed(f"Kubernetes {self.version} has no scheduling gates: 1.27 or later is needed")
        self.keys()
        self.files()

    def binary(self, name):
        own = self.binaries / name
        return str(own) if own.exists() else shutil.which(name) or str(own)

    # Keys and files

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder / "pki", check=True, capture_output=True)

    def keys(self):
        """Two authorities: one for servers, one for those who may ask ours."""
        for name in ("servers", "clients"):
            self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", f"{name}.key", "-out",
                         f"{name}.crt", "-subj", f"/CN={name}")
        for name, authority in (("api", "servers"), ("ours", "servers"), ("client", "clients")):
            names = "subjectAltName=DNS:localhost,DNS:pleach.pleach.svc,DNS:kubernetes,IP:127.0.0.1,IP:10.0.0.1"
            (self.folder / "pki" / f"{name}.ext").write_text(names)
            self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
                         "-subj", f"/CN={name}")
            self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.crt", "-CAkey", f"{authority}.key",
                         "-CAcreateserial", "-days", "2", "-out", f"{name}.crt", "-extfile", f"{name}.ext")
        self.openssl("genrsa", "-out", "accounts.key", "2048")

    def at(self, name):
        return str(self.folder / "pki" / name)

    def kubeconfig(self, name, user, server=None):
        """Writes a kubeconfig; JSON is YAML."""
        server = server or f"https://127.0.0.1:{self.api_port}"
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": self.at("servers.crt")}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        path = self.folder / "etc" / name
        path.write_text(json.dumps(config))
        return str(path)

    def files(self):
        etc = self.folder / "etc"
        # The controller comes as its ServiceAccount would, with the rights of deploy/kubernetes/deploy/shadow/rbac.yaml.
        etc.joinpath("tokens.csv").write_text(
            f'{ADMIN},admin,admin,"system:masters"\n'
            f'{SCHEDULER},system:kube-scheduler,scheduler\n'
            f'{MANAGER},system:kube-controller-manager,manager,"system:masters"\n'
            f'{KWOK},kwok,kwok,"system:masters"\n'
            f'{CONTROLLER},system:serviceaccount:pleach:pleach,pleach,"system:serviceaccounts"\n')
        self.admin_config = self.kubeconfig("admin.json", {"token": ADMIN})
        self.controller_config = self.kubeconfig("controller.json", {"token": CONTROLLER})
        self.scheduler_kubeconfig = self.kubeconfig("scheduler.json", {"token": SCHEDULER})
        self.manager_config = self.kubeconfig("manager.json", {"token": MANAGER})
        self.kwok_config = self.kubeconfig("kwok.json", {"token": KWOK})
        client = {"client-certificate": self.at("client.crt"), "client-key": self.at("client.key")}
        webhooks = {"apiVersion": "v1", "kind": "Config", "users": [{"name": f"127.0.0.1:{self.ours_port}", "user": client}]}
        etc.joinpath("webhooks.json").write_text(json.dumps(webhooks))
        etc.joinpath("admission.json").write_text(json.dumps({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
            "plugins": [{"name": "MutatingAdmissionWebhook", "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": str(etc / "webhooks.json")}}]}))
        self.write_scheduler_config()
        self.write_settings()

    def write_scheduler_config(self):
        """The configuration of a plain kube-scheduler."""
        path = self.folder / "etc" / "scheduler-config.json"
        path.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False}, "clientConnection": {"kubeconfig": self.scheduler_kubeconfig}}))
        self.scheduler_config = str(path)

    def write_settings(self, rounds="", **keys):
        """The controller's settings; keys of Rust's `Settings`, and lines for `[rounds]`."""
        keys = {"namespaces": ["*"], **self.TRIED, **keys}
        lines = [f'state_dir = "{self.folder}/state"', *(f"{key} = {json.dumps(value)}" for key, value in keys.items()),
                 "[rounds]", rounds, "[server]", f'address = "127.0.0.1:{self.ours_port}"',
                 f'certificate = "{self.at("ours.crt")}"', f'key = "{self.at("ours.key")}"',
                 f'client_authority = "{self.at("clients.crt")}"', "patience_s = 10"]
        path = self.folder / "etc" / "pleach.toml"
        path.write_text("\n".join(lines) + "\n")
        self.settings = str(path)

    def authority(self):
        return base64.b64encode(Path(self.at("servers.crt")).read_bytes()).decode()

    # Processes

    def start(self, name, *words, env=None):
        log = open(self.folder / "log" / f"{name}.log", "ab")
        process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                   cwd=self.folder, env={**os.environ, **(env or {})})
        log.close()
        (self.folder / "run" / f"{name}.pid").write_text(str(process.pid))
        self.processes[name] = process
        return process

    def kill(self, name, sign=signal.SIGKILL):
        process = self.processes.pop(name, None)
        if process is None:
            return
        process.send_signal(sign)
        # One that was stopped takes no other signal.
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        (self.folder / "run" / f"{name}.pid").unlink(missing_ok=True)

    def pause(self, name):
        """Stops a process; on a busy machine its threads go on until one of them has taken the signal."""
        process = self.processes[name]
        process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{process.pid}/stat")
        wait_for(f"{name} is stopped", lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T")

    def stop(self):
        for name in (*[name for name in self.processes if name not in ("kube-apiserver", "etcd")], "kube-apiserver", "etcd"):
            self.kill(name)

    def log(self, name):
        path = self.folder / "log" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def gate_words(self):
        return ["--feature-gates=" + ",".join(f"{gate}=true" for gate in self.gates)] if self.gates else []

    def start_etcd(self):
        url, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self.peer_port}"
        words = ["--data-dir", self.folder / "etcd", "--listen-client-urls", url, "--advertise-client-urls", url,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
                 "--unsafe-no-fsync"]
        self.start("etcd", self.binary("etcd"), *words, env={"ETCD_UNSUPPORTED_ARCH": os.uname().machine})

    def start_api(self, *more):
        etc = self.folder / "etc"
        words = [f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", "--bind-address=127.0.0.1",
                 f"--secure-port={self.api_port}", f"--tls-cert-file={self.at('api.crt')}",
                 f"--tls-private-key-file={self.at('api.key')}", f"--token-auth-file={etc / 'tokens.csv'}",
                 "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc",
                 f"--service-account-signing-key-file={self.at('accounts.key')}",
                 f"--service-account-key-file={self.at('accounts.key')}", "--service-cluster-ip-range=10.0.0.0/24",
                 "--endpoint-reconciler-type=none", f"--admission-control-config-file={etc / 'admission.json'}",
                 # Nothing makes service accounts here, and no kubelet takes taints away.
                 "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", f"--cert-dir={self.folder / 'pki'}", *self.gate_words(),
                 # The groups of Pods that these gates are about.
                 *(["--runtime-config=scheduling.k8s.io/v1alpha2=true"] if self.gates else []), *more]
        self.start("kube-apiserver", self.binary("kube-apiserver"), *words)

    def start_scheduler(self):
        self.start("kube-scheduler", self.binary("kube-scheduler"), f"--config={self.scheduler_config}", "--secure-port=0",
                   *self.gate_words())

    def start_manager(self, *controllers):
        self.start("kube-controller-manager", self.binary("kube-controller-manager"), f"--kubeconfig={self.manager_config}",
                   f"--controllers={','.join(controllers)}", "--leader-elect=false", "--secure-port=0", *self.gate_words())

    def start_manager_of_volumes(self):
        self.start("volume-manager", self.binary("kube-controller-manager"), f"--kubeconfig={self.manager_config}",
                   "--controllers=persistentvolume-binder-controller", "--leader-elect=false", "--secure-port=0")

    def start_kwok(self):
        """Makes nodes ready, runs pods, and ends them by their annotation `test/run`."""
        self.start("kwok", self.binary("kwok"), f"--kubeconfig={self.kwok_config}", "--manage-all-nodes", f"--config={STAGES}",
                   "--node-lease-duration-seconds=0", "--server-address=")

    def start_ours(self, policy, mode="--live"):
        words = [self.program, "--config", self.settings, "run", "--policy", policy, mode]
        self.start("pleach", *words, env={"KUBECONFIG": self.controller_config})

    def ours(self, *words):
        """Runs a command of ours to its end; code and text."""
        env = {**os.environ, "KUBECONFIG": self.controller_config}
        ran = subprocess.run([self.program, "--config", self.settings, *words], env=env, capture_output=True, text=True,
                             timeout=LIMIT_S)
        return ran.returncode, ran.stdout + ran.stderr

    def text(self, *words):
        """Runs a program to its end; what it prints."""
        ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, cwd=self.folder)
        return ran.stdout + ran.stderr

    def kubectl(self, *words, text=None):
        words = [self.binary("kubectl"), "--kubeconfig", self.admin_config, *words]
        ran = subprocess.run(words, input=text, capture_output=True, text=True, timeout=LIMIT_S)
        if ran.returncode != 0:
            raise Failed(f"{' '.join(words[3:])}: {ran.stderr}")
        return ran.stdout
