//! What a column of a site's table can mean, and the names by which that is guessed.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::embedded::rows;

/// What a column can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Name of the job.
    JobId,
    /// When it was submitted.
    Submit,
    /// From when on it could have run; then its wait begins.
    Eligible,
    /// When it began.
    Start,
    /// When it ended.
    End,
    /// How long it ran.
    RunTime,
    /// What its user asked for.
    TimeLimit,
    /// GPUs that it had: a number, or a text of Slurm's (`gres/gpu=2,gres/gpu:a100=2`).
    Gpus,
    /// GPUs that it asked for, likewise.
    GpusAsked,
    /// Nodes that it had.
    NumNodes,
    /// GPU type on which it ran.
    GpuType,
    /// Names of its nodes.
    Nodes,
    /// The tenant that is charged for it.
    Tenant,
    /// The user that submitted it.
    User,
    /// What kind of job it is.
    Class,
    /// How it ended.
    State,
    /// Partition or queue.
    Partition,
    /// Quality of service.
    Qos,
    /// Features that its nodes must have.
    Constraint,
    /// Licences that it holds.
    Licences,
}

impl Role {
    /// Each with the names that columns for it have, letters and digits alone; the first that a header has is taken.
    ///
    /// # Source
    /// `sacct --helpformat` of Slurm 22.05 to 26.05; headers of published lists; the rest *assumed*.
    pub fn names() -> &'static [(Role, Vec<&'static str>)] {
        static NAMES: LazyLock<Vec<(Role, Vec<&'static str>)>> = LazyLock::new(|| {
            let rows = rows(include_str!("../../../data/roles.csv"));
            let read = rows.map(|[role, names]: [&'static str; 2]| {
                let role = toml::Value::String(role.into()).try_into();
                let role = role.unwrap_or_else(|fault| panic!("data/roles.csv: {fault}"));
                (role, names.split(' ').collect())
            });
            read.collect()
        });
        &NAMES
    }

    /// The word in files.
    #[must_use]
    pub fn word(self) -> String {
        let value = toml::Value::try_from(self).ok();
        value
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}
