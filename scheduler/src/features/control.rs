//! Who could make a feature of a candidate another number: what a reader of a counterfactual wants to know first.
//!
//! # Source
//! The division is ours, *assumed*: a user chooses what is asked for and how long it is said to take, an operator sets quotas
//! and grants, and nobody else turns a knob. After the actionable and the immutable features of algorithmic recourse (Ustun,
//! Spangher and Liu, FAT*'19).

use serde::Serialize;

use super::column::Candidate as C;

/// Who could make a feature another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// Whoever submits the job: its size, and the length that is believed of it.
    User,
    /// Whoever runs the cluster: quotas, and what comes with a GPU.
    Operator,
    /// Nobody: it grows by itself.
    Time,
    /// Nobody: it has happened.
    History,
    /// Nobody: which GPUs are free, and which jobs hold the others.
    Cluster,
    /// Nobody: which other jobs wait.
    Queue,
    /// What the candidate is, or what belongs to all candidates: it cannot differ for this one alone.
    Fixed,
}

impl Control {
    /// For sentences: `the user`, `nobody, it is time that passes`.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Control::User => "the user's choice",
            Control::Operator => "the operator's choice",
            Control::Time => "nobody's choice: it comes with time",
            Control::History => "nobody's choice: it has happened",
            Control::Cluster => "nobody's choice: it hangs on the free GPUs",
            Control::Queue => "nobody's choice: it hangs on the other jobs that wait",
            Control::Fixed => "nobody's choice",
        }
    }
}

/// The one table of who controls what; features of the cluster and its queue belong to all candidates and are not in it.
const CONTROLS: &[(Control, &[C])] = &[
    (
        Control::Fixed,
        &[C::IsHold, C::IsStart, C::IsReserve, C::IsPreempt],
    ),
    (
        Control::User,
        &[
            C::NumGpus,
            C::GpuFraction,
            C::RemainingS,
            C::DurationS,
            C::GpuTime,
            C::SizeRatio,
        ],
    ),
    (Control::Operator, &[C::TenantUse, C::CoresRatio, C::DemandRate]),
    (Control::Time, &[C::WaitS, C::WaitRatio]),
    (Control::History, &[C::Attained, C::NumPreemptions]),
    (
        Control::Cluster,
        &[
            C::Speed,
            C::Locality,
            C::NodesRatio,
            C::NumLeft,
            C::Leftover,
            C::OldestSlack,
            C::WaitToFitS,
            C::NumVictims,
            C::VictimsRemainingS,
            C::IsBeside,
            C::PartnerRate,
            C::PartnerRemainingS,
            C::BestTypeWaitS,
            C::EndGain,
            C::TypeAdvantage,
            C::GpuEfficiency,
        ],
    ),
    (
        Control::Queue,
        &[
            C::RankRemaining,
            C::RankGpuTime,
            C::RankArrival,
            C::RankAttained,
            C::RankNumGpus,
            C::HeadArrival,
            C::HeadShortest,
            C::HeadGpuTime,
            C::Deficit,
        ],
    ),
];

/// Who controls the feature at an index of the joined row.
#[must_use]
pub fn control_of(index: usize) -> Control {
    let holds = |columns: &[C]| columns.iter().any(|column| *column as usize == index);
    let found = CONTROLS.iter().find(|(_, columns)| holds(columns));
    found.map_or(Control::Fixed, |(control, _)| *control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::FeatureSchema;
    use crate::features::column::CANDIDATE;

    #[test]
    fn every_feature_of_a_candidate_stands_once_in_the_table() {
        let mut listed: Vec<usize> = CONTROLS
            .iter()
            .flat_map(|(_, columns)| columns.iter().map(|column| *column as usize))
            .collect();
        listed.sort_unstable();
        assert_eq!(listed, (0..CANDIDATE.len()).collect::<Vec<_>>());
        let of = |name: &str| control_of(FeatureSchema::current().joined_index(name).unwrap());
        assert_eq!(of("num_gpus"), Control::User);
        assert_eq!(of("wait_s"), Control::Time);
        assert_eq!(of("tenant_use_ratio"), Control::Operator);
        assert_eq!(of("oldest_wait_s"), Control::Fixed, "of all candidates at once");
    }
}
