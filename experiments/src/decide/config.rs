//! `site.toml`: what a run works on. Paths in it are relative to its folder.

use std::path::{Path, PathBuf};

use pleach_scheduler::cluster_spec::Seen;
use pleach_scheduler::settings;
use pleach_scheduler::settings::{Own, Settings as _};

use crate::error::Error;
use crate::evaluate::sim_config::SchedulingConfig;
use crate::file_kind::FileKind;
use crate::run_folder::atomic_file::read_toml;
use crate::{kube_scheduler, kueue_objects};

/// Largest `site.toml`, bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

settings! {
    /// A site's files, and how a run goes about them.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SiteConfig {
        /// The accounting, as `pleach workload import` reads it, or a list that was imported.
        pub jobs: PathBuf = PathBuf::new();
        /// What `scontrol show node`, `sinfo` or `kubectl get nodes -o json` prints.
        pub nodes: Option<PathBuf>;
        /// How the accounting is read; none: guessed.
        pub mapping: Option<PathBuf>;
        /// Cluster, by file or as `16x8:A100`; none: of the nodes, or of the list.
        pub cluster: Option<PathBuf>;
        /// The site's `slurm.conf`, with what `sacctmgr dump` and `sacctmgr -P show qos` print beside it: then its own Slurm is
        /// played, and what it could set otherwise is compared.
        pub slurm_conf: Option<PathBuf>;
        /// The site's `KubeSchedulerConfiguration`: then kube-scheduler is played by it, and what it could set otherwise is compared.
        pub kube_scheduler: Option<PathBuf>;
        /// The site's Kueue objects, as `kubectl get clusterqueues,cohorts,localqueues,resourceflavors,workloadpriorityclasses -A -o yaml`
        /// prints them: then Kueue is played by them, and what they could say otherwise is compared.
        pub kueue: Option<PathBuf>;
        /// Policies that the site's scheduler may be like, the likeliest first: the one that reproduces the waits best is taken.
        pub policy: Vec<String> = ["easy", "fifo", "fifo-skip", "fair-share"]
                .map(str::to_owned)
                .to_vec();
        /// The last so many jobs of the list are taken, 100 to 10,000,000.
        pub jobs_max: usize = 20_000, in 100..=10_000_000;
        /// Root of all randomness.
        pub seed: u64 = 0;
        /// What the scheduler may do and knows, as for `pleach evaluate`; estimates that are not given are fitted.
        pub scheduling: SchedulingConfig;
        /// Parts of the list.
        pub parts: PartsConfig, in Own;
        /// The search for a tree.
        pub search: SearchPart, in Own;
    }
}

settings! {
    /// How the time of the list is cut.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PartsConfig {
        /// Part in which is searched, 0.2 to 0.8.
        pub learn: f64 = 0.45, in 0.2..=0.8;
        /// Part after that in which is chosen, 0.1 to 0.4; what is left, at least 0.1, judges.
        pub choose: f64 = 0.2, in 0.1..=0.4;
    }
}

settings! {
    /// The search for a tree.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SearchPart {
        /// Lists to simulate, 0 to 100,000,000; 0: no search, heuristics alone.
        pub simulations: u64 = 4000, in 0..=100_000_000;
        /// Jobs of a list, 20 to 1000; none: an eighth of those in the part, at most 200.
        pub num_jobs: Option<usize>, in 20..=1000;
        /// Leaves of a tree, at most, 2 to 256.
        pub leaves: usize = 8, in 2..=256;
        /// Lists of each part on which a tree must beat its start, 2 to 1000.
        pub accept_lists: usize = 16, in 2..=1000;
        /// Search also where the twin is not believable; the result is not deployed.
        pub without_twin: bool;
    }
}

impl SiteConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// A file that cannot be read, unknown keys, values out of range, files that it names and that are not there.
    pub fn read(path: &Path) -> Result<SiteConfig, Error> {
        let read = read_toml(path, CONFIG_BYTES_MAX);
        let mut config: SiteConfig = read.map_err(|error| FileKind::Site.or_other(path, error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        config.jobs = folder.join(&config.jobs);
        let files = [
            &mut config.nodes,
            &mut config.mapping,
            &mut config.slurm_conf,
            &mut config.kube_scheduler,
            &mut config.kueue,
        ];
        for file in files.into_iter().flatten() {
            *file = folder.join(&*file);
        }
        if let Some(cluster) = &mut config.cluster {
            let beside = folder.join(&*cluster);
            if beside.exists() {
                *cluster = beside;
            }
        }
        config.check()?;
        config.scheduling = config.scheduling.realistic_by_default();
        Ok(config)
    }

    /// The files that it names, by their keys.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let cluster = self.cluster.as_ref().filter(|path| path.is_file());
        let all = [
            ("jobs", Some(&self.jobs)),
            ("nodes", self.nodes.as_ref()),
            ("mapping", self.mapping.as_ref()),
            ("cluster", cluster),
            ("slurm_conf", self.slurm_conf.as_ref()),
            ("kube_scheduler", self.kube_scheduler.as_ref()),
            ("kueue", self.kueue.as_ref()),
        ];
        all.into_iter().filter_map(|(key, path)| Some((key, path?)))
    }

    /// The same with files by their names alone: from wherever it is run, it is the same run.
    #[must_use]
    pub fn without_folders(&self) -> SiteConfig {
        let name = |path: &PathBuf| path.file_name().map_or_else(|| path.clone(), PathBuf::from);
        SiteConfig {
            jobs: name(&self.jobs),
            nodes: self.nodes.as_ref().map(name),
            mapping: self.mapping.as_ref().map(name),
            cluster: self.cluster.as_ref().map(name),
            slurm_conf: self.slurm_conf.as_ref().map(name),
            kube_scheduler: self.kube_scheduler.as_ref().map(name),
            kueue: self.kueue.as_ref().map(name),
            ..self.clone()
        }
    }

    /// Where the policies are opened that the site's may be like: its own scheduler where its settings are given, or where the list
    /// names it and no policies are named.
    #[must_use]
    pub fn policies(&self, seen: &Seen) -> Vec<String> {
        let named = seen
            .scheduler
            .filter(|_| self.policy == SiteConfig::default().policy);
        match (self.own(), named) {
            (Some((name, path)), _) => vec![format!("{name}={}", path.display())],
            (_, Some(scheduler)) => vec![scheduler.policy().to_owned()],
            _ => self.policy.clone(),
        }
    }

    /// The site's own scheduler by its policy, and its settings.
    pub(super) fn own(&self) -> Option<(&'static str, &PathBuf)> {
        let slurm = self.slurm_conf.as_ref().map(|path| ("slurm", path));
        let kueue = self.kueue.as_ref().map(|path| (kueue_objects::NAME, path));
        let kubernetes = self.kube_scheduler.as_ref();
        slurm
            .or(kueue)
            .or_else(|| kubernetes.map(|path| (kube_scheduler::name_of(path), path)))
    }

    /// Whether what is to be deployed goes to Kubernetes: its settings are given, or its pods made the list.
    pub(super) fn is_on_kubernetes(&self, seen: &Seen) -> bool {
        let scheduler = seen.scheduler.filter(|_| self.slurm_conf.is_none());
        self.kueue.is_some() || self.kube_scheduler.is_some() || scheduler.is_some()
    }

    fn check(&self) -> Result<(), Error> {
        if let Some((key, file)) = self.files().find(|(_, file)| !file.is_file()) {
            let hint = "Paths are relative to the folder of this file.";
            return Err(Error::config(key, file.display(), "a file that is there", hint));
        }
        Error::refuse_if(
            self.policy.is_empty(),
            "policy",
            "[]",
            "at least one policy",
            "easy is what most Slurms with backfill are like.",
        )?;
        let hint = "Leave it out for the default.";
        self.check_at("", hint)?;
        let rest = 1.0 - self.parts.learn - self.parts.choose;
        Error::refuse_if(
            rest < 0.1 - 1e-9,
            "1 - parts.learn - parts.choose",
            rest,
            "0.1 to 0.7",
            hint,
        )?;
        self.scheduling.check()
    }

    /// A file to begin with, every key with what it means.
    #[must_use]
    pub fn template(jobs: &Path, nodes: Option<&Path>, cluster: Option<&Path>) -> String {
        let quoted = |path: &Path| toml::Value::String(path.display().to_string()).to_string();
        let given = |key: &str, path: Option<&Path>, example: &str, words: &str| match path {
            Some(path) => format!("{key} = {}   # {words}\n", quoted(path)),
            None => format!("# {key} = {example}   # {words}\n"),
        };
        let own = SiteConfig::default();
        let (parts, search) = (own.parts, own.search);
        let policy: Vec<String> = own.policy.iter().map(|name| format!("\"{name}\"")).collect();
        format!(
            "# What `pleach run` works on. Paths are relative to this file. Keys that are commented out show their defaults.\n\n\
             jobs = {}   # what sacct -P or --json prints, a table, or an imported list\n{}{}{}{}{}{}\n\
             # What the site's scheduler may be like, the likeliest first; the one that reproduces the observed waits best is taken.\n\
             policy = [{}]\n\n\
             # jobs_max = {}   # the last so many jobs of the list\n\
             # seed = {}\n\n\
             [scheduling]   # as the flags of `pleach evaluate`\n\
             # estimates = \"user\"   # what is known of run times: user (time limits), history; fitted where it is not given\n\
             # preemption = false   # true only where jobs write checkpoints\n\n\
             [parts]   # of the list's time: searched in the first, chosen in the second, judged in the rest\n\
             # learn = {:?}\n# choose = {:?}\n\n\
             [search]\n\
             # simulations = {}   # lists to simulate; 0: no search, heuristics alone\n\
             # leaves = {}   # of the tree, at most\n\
             # accept_lists = {}   # on which a tree must beat its start\n\
             # without_twin = {}   # search even where the twin is not believable\n",
            quoted(jobs),
            given(
                "nodes",
                nodes,
                "\"nodes.txt\"",
                "what scontrol show node or sinfo prints"
            ),
            given(
                "cluster",
                cluster,
                "\"16x8:A100\"",
                "where no list of nodes is there"
            ),
            given(
                "mapping",
                None,
                "\"mapping.toml\"",
                "how the table is read, where the guess is wrong"
            ),
            given(
                "slurm_conf",
                None,
                "\"slurm.conf\"",
                "the site's own policy, in place of those below; CLUSTER.cfg and qos.txt are read beside it"
            ),
            given(
                "kube_scheduler",
                None,
                "\"kube-scheduler.yaml\"",
                "its KubeSchedulerConfiguration in the same way; priorityclasses.json is read beside it"
            ),
            given(
                "kueue",
                None,
                "\"kueue.yaml\"",
                "its Kueue objects in the same way; kube-scheduler.yaml is read beside it"
            ),
            policy.join(", "),
            own.jobs_max,
            own.seed,
            parts.learn,
            parts.choose,
            search.simulations,
            search.leaves,
            search.accept_lists,
            search.without_twin,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_means_the_defaults_with_its_comments_and_without() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        file("sacct.txt", "");
        file("nodes.txt", "");
        let text = SiteConfig::template(Path::new("sacct.txt"), Some(Path::new("nodes.txt")), None);
        let wanted = SiteConfig {
            jobs: folder.path().join("sacct.txt"),
            nodes: Some(folder.path().join("nodes.txt")),
            scheduling: SchedulingConfig::default().realistic_by_default(),
            ..SiteConfig::default()
        };
        assert_eq!(SiteConfig::read(&file("site.toml", &text)).unwrap(), wanted);
        let optional = [
            "# seed",
            "# jobs_max",
            "# learn",
            "# choose",
            "# simulations",
            "# leaves",
        ];
        let mut given = text;
        for key in optional
            .iter()
            .chain(&["# accept_lists", "# without_twin", "# preemption"])
        {
            assert!(given.contains(key), "{key}");
            given = given.replace(key, &key[2..]);
        }
        assert_eq!(SiteConfig::read(&file("site.toml", &given)).unwrap(), wanted);
    }

    #[test]
    fn wrong_values_are_refused_with_what_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.toml");
        std::fs::write(folder.path().join("a.csv"), "").unwrap();
        for (text, words) in [
            ("jobs = 'b.csv'", "jobs = "),
            ("jobs = 'a.csv'\npolicy = []", "at least one policy"),
            ("jobs = 'a.csv'\n[parts]\nlearn = 0.9", "0.2 to 0.8"),
            (
                "jobs = 'a.csv'\n[parts]\nlearn = 0.8\nchoose = 0.2",
                "1 - parts.learn",
            ),
            ("jobs = 'a.csv'\n[search]\nleafs = 2", "leafs"),
            ("jobs = 'a.csv'\n[search]\nleaves = 1", "2 to 256"),
        ] {
            std::fs::write(&path, text).unwrap();
            let said = SiteConfig::read(&path).unwrap_err().to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
