//! The formats of lists that are read.

use serde::{Deserialize, Serialize};

/// A format of job list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// This project's own file (docs/workload-file.md).
    Canonical,
    /// Microsoft Philly 2017, one row per job, joined from its published parts.
    Philly,
    /// Helios Venus 2020 (SenseTime), the joined or the four-column list.
    Venus,
    /// Microsoft ITP 2021 (the ElasticFlow traces), raw or with generated models.
    Itp,
    /// Gavel's tab-separated lists.
    Gavel,
    /// Alibaba openb 2023: pods that share GPUs.
    Openb,
    /// Alibaba PAI 2020: a sample of tasks in four columns.
    Pai,
    /// Alibaba Lingjun 2023: large training jobs.
    Lingjun,
    /// ALCF ThetaGPU 2023, with requested wall times.
    #[serde(rename = "thetagpu")]
    ThetaGpu,
    /// Alibaba's disaggregated serving of recommendation models, 2025.
    Dlrm,
    /// Tiresias's lists.
    Tiresias,
    /// Muri's lists, in milliseconds.
    Muri,
    /// Chronus's lists, in minutes.
    Chronus,
    /// Pollux's and Sia's lists, without run times.
    Pollux,
    /// Rubick's lists.
    Rubick,
    /// Eva's lists, in JSON.
    Eva,
    /// Shockwave's tab-separated lists.
    Shockwave,
    /// The Standard Workload Format of batch logs.
    Swf,
    /// What `sacct -P` prints of a site's own Slurm.
    Sacct,
    /// What `sacct --json` prints.
    SacctJson,
    /// What `kubectl get pods,jobs -A -o json` prints.
    Kubernetes,
    /// Any table with a header, by a mapping.
    Table,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 22] = [
        Format::Canonical,
        Format::Philly,
        Format::Venus,
        Format::Itp,
        Format::Gavel,
        Format::Openb,
        Format::Pai,
        Format::Lingjun,
        Format::ThetaGpu,
        Format::Dlrm,
        Format::Tiresias,
        Format::Muri,
        Format::Chronus,
        Format::Pollux,
        Format::Rubick,
        Format::Eva,
        Format::Shockwave,
        Format::Swf,
        Format::Sacct,
        Format::SacctJson,
        Format::Kubernetes,
        Format::Table,
    ];

    /// The word used in configurations and reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Format::Canonical => "canonical",
            Format::Philly => "philly",
            Format::Venus => "venus",
            Format::Itp => "itp",
            Format::Gavel => "gavel",
            Format::Openb => "openb",
            Format::Pai => "pai",
            Format::Lingjun => "lingjun",
            Format::ThetaGpu => "thetagpu",
            Format::Dlrm => "dlrm",
            Format::Tiresias => "tiresias",
            Format::Muri => "muri",
            Format::Chronus => "chronus",
            Format::Pollux => "pollux",
            Format::Rubick => "rubick",
            Format::Eva => "eva",
            Format::Shockwave => "shockwave",
            Format::Swf => "swf",
            Format::Sacct => "sacct",
            Format::SacctJson => "sacct-json",
            Format::Kubernetes => "kubernetes",
            Format::Table => "table",
        }
    }

    /// The preset of links that stands for those of the site that lists of this format are of; none where those that its GPUs
    /// usually come with do.
    ///
    /// # Source
    /// As the generators' ([`crate::generate`]): Philly (ATC'19), Gavel's spread gangs; the others *assumed*.
    pub(super) fn site_fabric(self) -> Option<&'static str> {
        match self {
            Format::Philly => Some("philly"),
            Format::Venus | Format::Itp => Some("v100-edr"),
            Format::Openb | Format::Pai => Some("ethernet-25"),
            Format::Gavel => Some("gavel"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_scheduler::physics::links::Fabric;

    #[test]
    fn every_format_has_one_word_in_files_and_reports() {
        for format in Format::ALL {
            let word = format!("\"{}\"", format.word());
            assert_eq!(serde_json::to_string(&format).unwrap(), word);
            assert_eq!(serde_json::from_str::<Format>(&word).unwrap(), format);
            let preset = format.site_fabric();
            assert!(
                preset.is_none_or(|name| Fabric::from_name(name).is_ok()),
                "{word}"
            );
        }
    }
}
