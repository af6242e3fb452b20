//! What a site could set otherwise in its `slurm.conf`, its `KubeSchedulerConfiguration` or Kueue's objects, each change a candidate of its own: the file
//! with other lines, in the run's folder.
//!
//! Values are *ours*: half-lives from six hours to a month, weights four times as large or none, a longer plan of backfill; pods
//! packed or spread.

use std::path::{Path, PathBuf};

use pleach_dealing::kubernetes::Scoring;
use pleach_dealing::slurm::{Priority, SlurmConfig};
use pleach_site::slurm::Conf;
use serde_json::Value;

use super::site::{ARTEFACT_BYTES_MAX, CHANGE, Change, Site};
use crate::error::Error;
use crate::kube_scheduler::{self, SETTINGS};
use crate::run_folder::atomic_file;
use crate::{kueue_objects, site_policy, slurm_conf};

/// The site's own policy by name.
pub(super) const OWN: &str = "slurm";
const FILE: &str = "slurm.conf";
/// Half-lives of use: name, value, s.
const HALF_LIVES: [(&str, &str, f64); 4] = [
    ("half-life-6-hours", "06:00:00", 21_600.0),
    ("half-life-1-day", "1-0", 86_400.0),
    ("half-life-7-days", "7-0", 604_800.0),
    ("half-life-30-days", "30-0", 2_592_000.0),
];

impl Change {
    fn of(name: &str, lines: &[String]) -> Change {
        Change {
            name: name.to_owned(),
            lines: lines.to_vec(),
            file: None,
            place: "in slurm.conf, then scontrol reconfigure",
        }
    }

    /// What to do with the lines: a file of these lines, whose first one is a comment.
    pub(super) fn told(&self) -> String {
        format!("# {}:\n{}", self.place, self.lines.join("\n"))
    }
}

impl Site<'_> {
    /// What the site could set otherwise; nothing where its settings are not given.
    pub(super) fn changes(&self) -> &[Change] {
        self.changes.get_or_init(|| self.read_changes())
    }

    fn read_changes(&self) -> Vec<Change> {
        let path = match self.config.own() {
            Some((OWN, path)) => path,
            Some((kueue_objects::NAME, path)) => return self.of_objects(path),
            Some((_, path)) => {
                let read = kube_scheduler::read(path);
                return read.map_or_else(|_| Vec::new(), |config| of_scoring(config.scoring));
            }
            None => return Vec::new(),
        };
        let text = slurm_conf::conf_text(path);
        // A file that is none is refused where the site's own policy is opened.
        match (text.map(|text| Conf::of_text(&text)), site_policy::read(path)) {
            (Ok(Ok(conf)), Ok(config)) => of(&conf, &config),
            _ => Vec::new(),
        }
    }

    /// The change of a name.
    pub(super) fn change(&self, name: &str) -> Option<&Change> {
        self.changes().iter().find(|change| change.name == name)
    }

    /// What to do with a change that goes on, in words and as a file of its own beside the report; none where it is no change.
    pub(super) fn written_change(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(change) = self.change(name) else {
            return Ok(None);
        };
        let is_slurm = self.config.own().is_some_and(|(own, _)| own == OWN);
        let file = self.file(CHANGE[usize::from(!is_slurm)]);
        let told = change.told();
        atomic_file::write(&file, format!("{}\n", told.trim_end()).as_bytes())?;
        Ok(Some(told))
    }

    /// Other objects of Kueue.
    fn of_objects(&self, path: &Path) -> Vec<Change> {
        let text = atomic_file::read_text(path, ARTEFACT_BYTES_MAX);
        let objects = text.ok().and_then(|text| kueue_objects::objects(&text).ok());
        let changes = kueue_objects::changes(&objects.unwrap_or_default(), self.config.scheduling.preemption);
        let change = |(name, changed, all): (String, Vec<Value>, Vec<Value>)| Change {
            file: Some(kueue_objects::yaml(&all)),
            place: "kubectl apply -f",
            ..Change::of(&name, &[kueue_objects::yaml(&changed)])
        };
        changes.into_iter().map(change).collect()
    }

    fn file_of(&self, own: &str, change: &str) -> PathBuf {
        let file = match own {
            OWN => FILE.to_owned(),
            name => format!("{name}.yaml"),
        };
        self.file("changes").join(change).join(file)
    }

    /// Where the site's own policy and its changes are opened.
    pub(super) fn own_place(&self, name: &str) -> Option<String> {
        let (own, path) = self.config.own()?;
        if name == own {
            return Some(format!("{own}={}", path.display()));
        }
        self.change(name)
            .map(|_| format!("{name}={}", self.file_of(own, name).display()))
    }

    /// Writes the file of each change, with what lies beside the site's own.
    pub(super) fn write_changes(&self) -> Result<(), Error> {
        let Some((own, path)) = self.config.own() else {
            return Ok(());
        };
        let text = match own {
            OWN => slurm_conf::conf_text(path)?,
            _ => atomic_file::read_text(path, ARTEFACT_BYTES_MAX)?,
        };
        let cluster = Conf::of_text(&text)
            .ok()
            .and_then(|conf| conf.value("ClusterName").map(str::to_owned));
        let beside = [
            format!("{}.cfg", cluster.as_deref().unwrap_or("cluster")),
            "qos.txt".to_owned(),
            kube_scheduler::CLASSES.to_owned(),
            kueue_objects::SCHEDULER.to_owned(),
            site_policy::USE.to_owned(),
        ];
        for change in self.changes() {
            let file = self.file_of(own, &change.name);
            let with_lines = || {
                let lines = change.lines.join("\n");
                format!("{}\n# Changed by `pleach run`.\n{lines}\n", text.trim_end())
            };
            let changed = change.file.clone().unwrap_or_else(with_lines);
            atomic_file::write(&file, changed.as_bytes())?;
            for name in &beside {
                let own = path.with_file_name(name);
                if own.is_file() {
                    let text = atomic_file::read_text(&own, ARTEFACT_BYTES_MAX)?;
                    atomic_file::write(&file.with_file_name(name), text.as_bytes())?;
                }
            }
        }
        Ok(())
    }
}

/// Packing where pods are spread, and the other way round.
fn of_scoring(own: Scoring) -> Vec<Change> {
    let others = SETTINGS
        .iter()
        .filter(|(_, text)| kube_scheduler::of(text) != Ok(own));
    let change = |(name, text): &(&str, &str)| Change {
        file: Some((*text).to_owned()),
        place: "in its KubeSchedulerConfiguration, then restart kube-scheduler",
        ..Change::of(name, &text.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    others.map(change).collect()
}

/// The changes that may matter under these settings.
fn of(conf: &Conf, config: &SlurmConfig) -> Vec<Change> {
    let mut changes = Vec::new();
    match &config.priority {
        Some(priority) => changes.extend(of_priority(priority)),
        None => changes.push(Change::of(
            "multifactor-fair-share",
            &[
                "PriorityType=priority/multifactor".to_owned(),
                "PriorityWeightFairshare=10000".to_owned(),
                "PriorityWeightAge=1000".to_owned(),
            ],
        )),
    }
    if !config.backfill {
        changes.push(Change::of(
            "backfill",
            &["SchedulerType=sched/backfill".to_owned()],
        ));
        return changes;
    }
    let with = |name: &str, word: &str, value: &str| {
        let own = conf.value("SchedulerParameters").unwrap_or_default().split(',');
        let others =
            own.filter(|part| !part.is_empty() && part.split('=').next().map(str::trim) != Some(word));
        let words: Vec<String> = others
            .map(str::to_owned)
            .chain([format!("{word}={value}")])
            .collect();
        Change::of(name, &[format!("SchedulerParameters={}", words.join(","))])
    };
    if config.bf_window_s < 604_800 {
        changes.push(with("bf-window-7-days", "bf_window", "10080"));
    }
    if config.bf_max_job_test < 5000 {
        changes.push(with("bf-max-job-test-5000", "bf_max_job_test", "5000"));
    }
    changes
}

fn of_priority(own: &Priority) -> Vec<Change> {
    let mut changes = Vec::new();
    if own.fair_share > 0 {
        let others = HALF_LIVES
            .iter()
            .filter(|(_, _, half_life_s)| (half_life_s - own.half_life_s).abs() > 1.0);
        changes.extend(
            others.map(|(name, value, _)| Change::of(name, &[format!("PriorityDecayHalfLife={value}")])),
        );
    }
    let weights = [
        ("Age", own.age),
        ("Fairshare", own.fair_share),
        ("JobSize", own.size),
        ("QOS", own.qos),
        ("Partition", own.partition),
    ];
    for (word, weight) in weights.into_iter().filter(|(_, weight)| *weight > 0) {
        for (what, value) in [("4x", weight.saturating_mul(4)), ("no", 0)] {
            let name = format!("{what}-{}-weight", word.to_ascii_lowercase());
            changes.push(Change::of(&name, &[format!("PriorityWeight{word}={value}")]));
        }
    }
    let sum: u64 = weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
    let weight = sum.clamp(1000, u64::from(u32::MAX));
    if !own.favor_small {
        changes.push(Change::of(
            "small-first",
            &[
                "PriorityFavorSmall=YES".to_owned(),
                format!("PriorityWeightJobSize={weight}"),
            ],
        ));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_that_spreads_pods_is_told_how_to_pack_them_and_the_other_way_round() {
        let names = |own| {
            of_scoring(own)
                .into_iter()
                .map(|change| change.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(Scoring::default()), ["most-allocated"]);
        let change = of_scoring(Scoring::default()).remove(0);
        let told = change.told();
        assert!(
            told.starts_with("# in its KubeSchedulerConfiguration") && told.contains("\nprofiles:\n"),
            "{told}"
        );
        assert_eq!(
            names(kube_scheduler::of(&change.file.unwrap()).unwrap()),
            ["least-allocated"]
        );
    }

    #[test]
    fn changes_are_lines_that_take_the_place_of_the_site_s_own() {
        let text = "SchedulerParameters=bf_interval=60,bf_window=1440\nPriorityWeightFairshare=1000\nPriorityDecayHalfLife=7-0\n\
            NodeName=n[1-2] Gres=gpu:a:8 CPUs=64\nPartitionName=p Nodes=ALL\n";
        let conf = Conf::of_text(text).unwrap();
        let config = site_policy::of(&conf, &[], &[]).unwrap();
        let changes = of(&conf, &config);
        let lines = |name: &str| {
            changes
                .iter()
                .find(|change| change.name == name)
                .map(|change| change.lines.join("; "))
        };
        assert_eq!(lines("half-life-7-days"), None, "it is the site's own");
        assert_eq!(lines("half-life-1-day").unwrap(), "PriorityDecayHalfLife=1-0");
        assert_eq!(
            lines("bf-window-7-days").unwrap(),
            "SchedulerParameters=bf_interval=60,bf_window=10080"
        );
        assert_eq!(
            lines("4x-fairshare-weight").unwrap(),
            "PriorityWeightFairshare=4000"
        );
        for change in &changes {
            let changed = Conf::of_text(&format!("{text}{}\n", change.lines.join("\n"))).unwrap();
            assert_ne!(
                site_policy::of(&changed, &[], &[]).unwrap(),
                config,
                "{}",
                change.name
            );
        }
    }
}
