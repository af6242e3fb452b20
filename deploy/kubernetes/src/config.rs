//! The configuration file: every key has a default, unknown keys are refused, and every value is checked once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pleach_daemon::config::{DEFAULT_HINT, LOG_BYTES, LOG_DAYS, LogSettings};
use pleach_daemon::files;
use pleach_daemon::{Drive, RoundSettings};
use pleach_scheduler::settings::{Own, OwnOrNone, Settings as _};
use pleach_scheduler::{Problem, settings};
pub use pleach_site::ParallelJobs;

use crate::error::Error;
use crate::leases::LeaseSettings;
use crate::mark::Key;

/// Largest configuration file that is read, bytes.
const FILE_MAX: u64 = 1 << 20;

settings! {
    /// Settings of the controller and of its server.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// What decisions depend on.
        pub rounds: RoundSettings;
        /// How much of the policy is carried out. `hold`: pods are held by a gate and let go one by one to nodes; `order`: Kueue
        /// admits the jobs, by its own rules, in the policy's order.
        pub drive: Drive;
        /// Distance of neighbours in the order, as priority of a workload, 1 to 100,000.
        pub order_step: u32 = 1000, in 1..=100_000;
        /// Most changes of the order in one round, 1 to 100,000; the others are made in the next ones.
        // A patch takes some milliseconds, and a round has two seconds.
        pub order_updates_max: u32 = 100, in 1..=100_000;
        /// Namespaces whose pods are driven; `*`: all. Pods of others are left alone, whatever their gates. None named: all are looked
        /// at, and nothing is driven live.
        pub namespaces: Vec<String>;
        /// What pods that a Job runs at once and that is not Indexed are taken for, where no annotation `pleach/parallel` says it.
        pub parallel_jobs: ParallelJobs;
        /// Whether Jobs are suspended until the policy starts them, so that they have no pods and their deadlines do not run. Else, and
        /// where a Job is not ours to suspend, its pods wait with a gate.
        pub suspend: bool = true;
        /// Whether the label `pleach/drive: "false"` keeps a pod from being held, wherever its user writes it.
        pub opt_out: bool = true;
        /// Users and groups that may take our gate off a pod and change its marks, where the webhook is asked about updates.
        pub releasers: Vec<String> = texts(&["system:serviceaccount:pleach:pleach", "system:masters"]);
        /// The Lease that the controller holds while it drives, NAMESPACE/NAME; others stand by. None: every controller that runs
        /// drives.
        pub lease: Option<String>;
        /// A controller whose Lease was not renewed for so long is taken to be gone, s, 2 to 600.
        // As client-go's leader election.
        pub lease_s: u32 = 15, in 2..=600;
        /// The name of this controller for the others.
        #[serde(skip)]
        pub identity: String = "pleach".into();
        /// Schedulers whose pods are driven, by `spec.schedulerName`.
        pub scheduler_names: Vec<String> = texts(&["default-scheduler"]);
        /// Extended resources that count as GPUs; a `*` at the end stands for any ending. GPUs of the first one have the node's type,
        /// those of others the resource's own name.
        pub gpu_resources: Vec<String> = texts(&[
            "nvidia.com/gpu",
            "nvidia.com/gpu.shared",
            "nvidia.com/mig-*",
            "amd.com/gpu",
        ]);
        /// Node labels that tell the GPU type; the first that a node has.
        pub gpu_type_labels: Vec<String> = texts(&[
            "nvidia.com/gpu.product",
            "amd.com/gpu.product-name",
            "cloud.google.com/gke-accelerator",
            "k8s.amazonaws.com/accelerator",
        ]);
        /// Labels that a node must have to be driven; empty: none.
        pub node_selector: BTreeMap<String, String>;
        /// Keys of taints with which a node counts as one that takes jobs though no GPU pod tolerates it.
        pub taints_expected: Vec<String> = texts(&["nvidia.com/gpu", "amd.com/gpu"]);
        /// Pod label that tells the account; none: the namespace does.
        pub tenant_label: Option<String>;
        /// Time between two rounds, s, 0.1 to 600; a pod that the webhook has held, or one that ends, begins one
        /// sooner.
        pub tick_s: f64 = 2.0, in 0.1..=600.0;
        /// Longest time for one request to the API server, s, 0.1 to 600.
        pub request_limit_s: f64 = 10.0, in 0.1..=600.0;
        /// Objects of one page of a list, 1 to 10,000.
        pub page: u32 = 500, in 1..=10_000;
        /// Most objects of one kind that are read, 1 to 10 million; with more the round fails.
        pub objects_max: u32 = 200_000, in 1..=10_000_000;
        /// Largest answer of the API server that is read, bytes, at least 65,536.
        pub answer_bytes_max: u64 = 256 << 20, in 65_536..=1_000_000_000_000;
        /// A gang of unknown size is whole once it has not grown for so long, s, 0 to 3600.
        pub settle_s: i64 = 10, in 0..=3600;
        /// A gang that is short of pods for so long is left to kube-scheduler, s, 1 to 1e7.
        pub gang_limit_s: i64 = 3600, in 1..=10_000_000;
        /// How long the second job of a round that goes to a node waits for the first one to be bound, s, 0 to 60.
        pub bind_wait_s: f64 = 1.0, in 0.0..=60.0;
        /// After this time pods that were let go and are not bound are reported, and made anew where [`Settings::recreate`], s, 1 to
        /// 86,400.
        pub release_limit_s: i64 = 60, in 1..=86_400;
        /// Pods that are bound and have not begun for so long are evicted where [`Settings::recreate`], all of a gang that was bound
        /// together, s, 60 to 1e7.
        // Images of tens of GB take minutes. Assumed.
        pub ready_limit_s: i64 = 1800, in 60..=10_000_000;
        /// Whether such pods are evicted where a controller owns them, which then makes new ones.
        pub recreate: bool = true;
        /// A gang that runs and is short of pods keeps the seats of those for so long, for the pods that its controller makes anew,
        /// s, 0 to 86,400.
        // A Job makes a pod anew after 10, 20, 40 and 80 s: three failures in a row find their seats. Assumed.
        pub seat_limit_s: i64 = 120, in 0..=86_400;
        /// Folder of the log, the status and what is remembered of jobs.
        pub state_dir: PathBuf = "/var/lib/pleach".into();
        /// A file with 32 letters or more that marks on pods are signed with: what others write there is not believed. None: a key
        /// that the controller makes in `state_dir`, whose loss loses the marks of jobs that were let go.
        pub mark_key: Option<PathBuf>;
        /// The key itself, once it was read.
        #[serde(skip)]
        pub marks: Key;
        /// Most bytes of all files of the decision log, beside the one that is being compressed; at least 65,536. The oldest leave.
        pub log_bytes_max: u64 = LogSettings::default().bytes_max, in LOG_BYTES;
        /// Days for which the decision log is kept, 1 to 3660.
        pub log_days: u32 = LogSettings::default().days, in LOG_DAYS;
        /// Whether users see Events on their pods and Jobs: where a job stands, whenever that changes.
        pub events: bool = true;
        /// Which pods are leases.
        pub leases: LeaseSettings, in Own;
        /// Webhook and metrics; none: no port is opened.
        pub server: Option<ServerSettings>, in OwnOrNone;
    }
}

settings! {
    /// The server of the webhook and the metrics. There is no form without TLS, and none without a proof of the client's identity.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ServerSettings: required {
        /// The one address where it listens.
        pub address: SocketAddr;
        /// Its certificate chain, PEM.
        pub certificate: PathBuf;
        /// Its key, PEM.
        pub key: PathBuf;
        /// Certificates of the authorities whose clients may ask, PEM. This or [`ServerSettings::token`].
        #[serde(default)]
        pub client_authority: Option<PathBuf>;
        /// A file with a token of 32 to 512 letters, digits, `-` or `_`, which clients send as `Authorization: Bearer TOKEN` or as
        /// the first part of the path, `/token/TOKEN/`.
        #[serde(default)]
        pub token: Option<PathBuf>;
        /// Largest body of a request, bytes, 1024 to 1 GiB.
        #[serde(default = "body_bytes_max")]
        pub body_bytes_max: usize, in 1024..=1 << 30;
        /// Most connections at once of clients that have proved their identity, 1 to 100,000; others wait for a place for
        /// `request_limit_s`. Those that have not proved it yet have room of their own, of which the last 256 keep theirs.
        #[serde(default = "connections_max")]
        pub connections_max: usize, in 1..=100_000;
        /// Most requests that are read and answered at once, 1 to 10,000; others get 503.
        #[serde(default = "requests_max")]
        pub requests_max: usize, in 1..=10_000;
        /// Longest time for the head of a request and for its body and answer, s, 1 to 60. A handshake has 2 s.
        #[serde(default = "request_limit_s")]
        pub request_limit_s: u32, in 1..=60;
        /// The webhook holds nothing once the controller was silent for so long, s, 5 to 86,400.
        #[serde(default = "patience_s")]
        pub patience_s: u32, in 5..=86_400;
    }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn body_bytes_max() -> usize {
    8 << 20
}

fn connections_max() -> usize {
    256
}

fn requests_max() -> usize {
    16
}

fn request_limit_s() -> u32 {
    5
}

fn patience_s() -> u32 {
    60
}

impl Settings {
    /// Where the key of marks is: the file that is named, if one is, and the folder of a controller's own.
    #[must_use]
    pub fn key_place(&self) -> (Option<&Path>, &Path) {
        (self.mark_key.as_deref(), &self.state_dir)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read, an unknown key, a value out of range.
    pub fn load(path: &Path) -> Result<Settings, Error> {
        let text = files::text(path, FILE_MAX)?;
        let settings: Settings = toml::from_str(&text).map_err(|error| Error::Text {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        settings.validate()?;
        Ok(settings)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        self.rounds.validate()?;
        self.check_at("", DEFAULT_HINT)?;
        Problem::refuse_if(
            self.gpu_resources.is_empty() || self.gpu_resources.iter().any(|name| !name.contains('/')),
            "gpu_resources",
            format_args!("{:?}", self.gpu_resources),
            "names of extended resources, at least one",
            "for example \"nvidia.com/gpu\"",
        )?;
        let is_named = |lease: &String| matches!(lease.split_once('/'), Some((space, name)) if !space.is_empty() && !name.is_empty());
        if let Some(lease) = self.lease.as_ref().filter(|lease| !is_named(lease)) {
            let hint = "for example \"pleach/pleach\"";
            return Err(Problem::new(
                "lease",
                format!("{lease:?}"),
                "NAMESPACE/NAME",
                hint,
            ));
        }
        self.leases
            .validate(&|namespace| self.drives(namespace), self.drive)?;
        self.server.as_ref().map_or(Ok(()), ServerSettings::validate)
    }

    /// Checks what has to be said before anything is touched.
    ///
    /// # Errors
    /// No namespace is named.
    pub fn validate_live(&self) -> Result<(), Problem> {
        Problem::refuse_if(
            self.namespaces.is_empty(),
            "namespaces",
            "[]",
            "names of namespaces, or \"*\" for all",
            "say what is driven live: namespaces = [\"team-a\"]",
        )
    }

    /// What decisions depend on, with the way of driving.
    #[must_use]
    pub fn rounds(&self) -> RoundSettings {
        RoundSettings {
            drive: self.drive,
            checkpoint_interval_s: self.leases.checkpoint_s,
            ..self.rounds.clone()
        }
    }

    /// How much of the decision log is kept.
    #[must_use]
    pub fn log(&self) -> LogSettings {
        LogSettings {
            bytes_max: self.log_bytes_max,
            days: self.log_days,
        }
    }

    /// The limit of one request to the API server.
    #[must_use]
    pub fn request_limit(&self) -> Duration {
        Duration::from_secs_f64(self.request_limit_s)
    }

    /// Whether pods of a namespace are driven.
    #[must_use]
    pub fn drives(&self, namespace: &str) -> bool {
        self.drives_all() || self.namespaces.iter().any(|name| name == namespace)
    }

    /// Whether those of all are.
    #[must_use]
    pub fn drives_all(&self) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|name| name == "*")
    }

    /// Whether a resource counts as GPUs.
    #[must_use]
    pub fn is_gpu(&self, resource: &str) -> bool {
        self.gpu_resources
            .iter()
            .any(|name| match name.strip_suffix('*') {
                Some(start) => resource.starts_with(start),
                None => name == resource,
            })
    }

    /// Whether its GPUs have the node's type.
    #[must_use]
    pub fn is_main(&self, resource: &str) -> bool {
        self.gpu_resources.first().is_some_and(|name| name == resource)
    }
}

impl ServerSettings {
    fn validate(&self) -> Result<(), Problem> {
        Problem::refuse_if(
            self.client_authority.is_some() == self.token.is_some(),
            "server",
            "neither or both of client_authority and token",
            "one of them",
            "client_authority = \"/etc/pleach/clients.pem\"; a token is for clients that have no certificate",
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_values_out_of_range_and_servers_for_everybody_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pleach.toml");
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Settings::load(&path).map_err(|error| error.to_string())
        };
        assert_eq!(load("").unwrap(), Settings::default());
        let server = "[server]\naddress = '127.0.0.1:8443'\ncertificate = 'c'\nkey = 'k'\n";
        let settings = load(&format!(
            "namespaces = ['a']\n[rounds]\npreemption = true\n[rounds.gpu_types.A100]\nspeed = 2\n{server}token = 't'"
        ))
        .unwrap();
        assert!(settings.rounds.preemption && settings.drives("a") && !settings.drives("b"));
        // Nothing said is not all of it, once something is touched.
        assert!(settings.validate_live().is_ok());
        let said = load("").unwrap().validate_live().unwrap_err().to_string();
        assert!(said.contains("namespaces"), "{said}");
        let all = load("namespaces = ['*']").unwrap();
        assert!(all.validate_live().is_ok() && all.drives("anything"));
        assert!(settings.is_gpu("nvidia.com/mig-1g.10gb") && !settings.is_gpu("nvidia.com/gpu.x"));
        for (text, word) in [
            ("tick = 1".to_owned(), "tick"),
            ("tick_s = 0".to_owned(), "tick_s"),
            ("lease = 'pleach'".to_owned(), "NAMESPACE/NAME"),
            ("drive = 'order-and-place'".to_owned(), "`hold`"),
            ("order_updates_max = 0".to_owned(), "order_updates_max"),
            ("[rounds]\nfallback = 'esay'".to_owned(), "easy"),
            ("[rounds]\npartition = 'x'".to_owned(), "partition"),
            ("gpu_resources = []".to_owned(), "gpu_resources"),
            (server.to_owned(), "client_authority"),
            // Not to be said so that any user could be one.
            ("[leases]\npriority_classes = ['high']".to_owned(), "any user"),
            ("[leases]\nnamespaces = ['*']".to_owned(), "one by one"),
            (
                "namespaces = ['a']\n[leases]\nnamespaces = ['b']".to_owned(),
                "are driven",
            ),
            (
                "drive = 'order'\n[leases]\nnamespaces = ['b']".to_owned(),
                "drive",
            ),
            ("[leases]\nlabels = ['x']".to_owned(), "labels"),
            (
                "[leases]\nnamespaces = ['b']\ncheckpoint_s = 0".to_owned(),
                "checkpoint_s",
            ),
            (
                "[leases]\nnamespaces = ['b']\ngrace_max_s = -1".to_owned(),
                "grace_max_s",
            ),
            (
                format!("{server}client_authority = 'a'\ntoken = 't'"),
                "client_authority",
            ),
            (
                format!("{server}token = 't'\nbody_bytes_max = 1"),
                "body_bytes_max",
            ),
            (server.replace("127.0.0.1:8443", "everywhere"), "address"),
        ] {
            let error = load(&text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
