//! One scheduling pass: enumerate, choose, act, until the policy holds.
//!
//! This loop object is the only one. A daemon runs it to its end with [`Pass::run`]; the environment drives the same
//! object one action at a time, so what is trained is what is deployed.

mod absence;
mod cache;
mod colocate;
mod enumerate;
mod gangs;
mod opportunity;
mod preempt;
pub(crate) mod reservation;
mod room;
mod scan;
mod top_k;

pub use absence::why_absent;
pub use reservation::{Reservation, believed_end};

use cache::KeptStarts;
use enumerate::{Scratch, enumerate};

use crate::actions::{About, Effect};
use crate::candidate::{CandidateSet, MAX_CANDIDATES};
use crate::cluster::Cluster;
use crate::cluster::decision::HeldBack;
use crate::error::PolicyError;
use crate::observation::Observation;
use crate::policy::{DecisionPoint, Needs, Policy, choice_of};

/// Whether a pass goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassState {
    /// There is more to decide now.
    Open,
    /// The policy held, or nothing is left to choose.
    Closed,
}

/// Candidates, reservation and buffers of a pass; reused from one pass to the next.
#[derive(Clone, Debug)]
pub struct Pass {
    set: CandidateSet,
    scratch: Scratch,
    reservation: Option<Reservation>,
    observation: Observation,
    scores: Vec<f32>,
    /// The last choice of a policy and the leaf of the tree that made it.
    leaf: Option<(usize, u32)>,
}

impl Default for Pass {
    fn default() -> Pass {
        Pass::new()
    }
}

impl Pass {
    /// A pass with empty buffers.
    #[must_use]
    pub fn new() -> Pass {
        Pass {
            set: CandidateSet::default(),
            scratch: Scratch::default(),
            reservation: None,
            observation: Observation::default(),
            scores: vec![0.0; MAX_CANDIDATES],
            leaf: None,
        }
    }

    /// A pass that always sees the same cluster, and policies with the same needs: it may keep what does not change from one pass to
    /// the next, and decides alike.
    #[must_use]
    pub fn of_one_cluster() -> Pass {
        let mut pass = Pass::new();
        pass.scratch.kept = Some(KeptStarts::default());
        pass
    }

    /// Opens a pass at the cluster's present time: forgets the last reservation and enumerates.
    pub fn open(&mut self, cluster: &Cluster, needs: &Needs) -> PassState {
        self.leaf = None;
        if let Some(held) = self.reservation.take() {
            self.scratch.recycle(held);
        }
        self.scratch.forget();
        self.enumerate(cluster, needs)
    }

    /// Goes on with a pass after jobs were admitted: what is held back stays so.
    pub fn reopen(&mut self, cluster: &Cluster, needs: &Needs) -> PassState {
        self.leaf = None;
        self.scratch.forget();
        self.enumerate(cluster, needs)
    }

    fn enumerate(&mut self, cluster: &Cluster, needs: &Needs) -> PassState {
        enumerate(
            cluster,
            needs,
            self.reservation.as_ref(),
            &mut self.scratch,
            &mut self.set,
        );
        if self.set.only_hold() {
            PassState::Closed
        } else {
            PassState::Open
        }
    }

    /// The present candidates.
    #[must_use]
    pub fn candidates(&self) -> &CandidateSet {
        &self.set
    }

    /// GPUs held back in this pass.
    #[must_use]
    pub fn reservation(&self) -> Option<&Reservation> {
        self.reservation.as_ref()
    }

    /// Carries out one candidate and, if the pass goes on, enumerates again.
    ///
    /// # Panics
    /// If the index is not that of a present candidate; callers check it against [`Pass::candidates`].
    pub fn act(&mut self, cluster: &mut Cluster, needs: &Needs, action: usize) -> PassState {
        let leaf = self.leaf.take().filter(|(choice, _)| *choice == action);
        let first_decision = cluster.num_decisions();
        let candidate = &self.set.rows[action];
        let kind = candidate.reserved_type;
        match (candidate.kind.row().effect, candidate.job) {
            (Effect::End, _) | (_, None) => return PassState::Closed,
            (Effect::HoldBack, Some(job)) => {
                self.reservation = self.scratch.reserve(cluster, job, kind);
                if let Some(held) = &self.reservation {
                    cluster.hold_back(job, HeldBack::from(held));
                }
            }
            (Effect::Run, Some(job)) => {
                let victims = &self.set.victims[candidate.victims.clone()];
                for victim in victims {
                    cluster.preempt(*victim);
                }
                self.scratch.stopped(victims);
                if candidate.kind.row().about == About::Running {
                    cluster.preempt(job);
                    self.scratch.stopped(&[job]);
                }
                let slices = &self.set.slices[candidate.placement.clone()];
                if let (Some(facts), Some(reservation)) = (candidate.facts, &mut self.reservation) {
                    let asked = || cluster.shape(cluster.job(job).shape);
                    let granted = candidate.granted.unwrap_or_else(asked);
                    reservation.book(cluster, job, (slices, granted), &facts);
                }
                let placement = cluster.placement_of(slices);
                // Only shapes that have a number, or can have one, are offered.
                match candidate.granted.and_then(|shape| cluster.number_shape(shape)) {
                    Some(granted) => cluster.start_with(job, placement, granted),
                    None => cluster.start(job, placement),
                }
            }
        }
        if let Some((_, leaf)) = leaf {
            cluster.note_leaf(first_decision, leaf);
        }
        self.enumerate(cluster, needs)
    }

    /// The present decision point with its observation, for a caller that decides itself; the needs of the pass must ask for it.
    pub fn observe(&mut self, cluster: &Cluster) -> &Observation {
        self.observation
            .fill(cluster, &self.set, self.reservation.as_ref());
        &self.observation
    }

    /// The observation as last filled by [`Pass::observe`].
    #[must_use]
    pub fn observation(&self) -> &Observation {
        &self.observation
    }

    /// Asks a policy for its choice among the present candidates.
    ///
    /// # Errors
    /// What the policy reports, or a score that is not finite.
    pub fn decide(&mut self, cluster: &Cluster, policy: &mut dyn Policy) -> Result<usize, PolicyError> {
        let needs = policy.needs();
        if needs.observation {
            self.observation
                .fill_columns(cluster, &self.set, self.reservation.as_ref(), needs.columns);
        } else {
            self.observation.clear(&self.set);
        }
        let point = DecisionPoint {
            cluster,
            candidates: &self.set,
            observation: self.observation.as_ref(),
        };
        let scores = &mut self.scores[..self.set.len()];
        scores.fill(0.0);
        policy.score(point, scores)?;
        PolicyError::check_finite(scores)?;
        let choice = choice_of(policy, &point, scores).unwrap_or(0);
        self.leaf = policy.leaf(point, choice).map(|leaf| (choice, leaf));
        Ok(choice)
    }

    /// The scores of the last [`Pass::decide`], one per candidate. `[n]`
    #[must_use]
    pub fn scores(&self) -> &[f32] {
        &self.scores[..self.set.len()]
    }

    /// Runs a whole pass. Decisions are journalled by the cluster.
    ///
    /// # Errors
    /// As [`Pass::decide`]; what was decided before the error stands.
    pub fn run(&mut self, cluster: &mut Cluster, policy: &mut dyn Policy) -> Result<(), PolicyError> {
        let needs = policy.needs();
        let mut state = self.open(cluster, &needs);
        while state == PassState::Open {
            let action = self.decide(cluster, policy)?;
            state = self.act(cluster, &needs, action);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::actions::ActionKind;
    use crate::candidate::{Candidate, Stopped};
    use crate::cluster::{Capabilities, Sharing};
    use crate::heuristics::tests::world::{cluster_with, events, happen};
    use crate::ids::{ClassId, GpuTypeId, JobId};
    use crate::policy::CandidateConfig;

    /// All that a policy can see of a candidate, and all that carrying it out depends on.
    fn facts_of(set: &CandidateSet) -> Vec<impl PartialEq + std::fmt::Debug> {
        let facts = |row: &Candidate| {
            let whom = (row.kind, row.job, row.partner, row.heads);
            let worth = (row.facts, row.wait_to_fit_s);
            (
                whom,
                worth,
                set.placement(row).to_vec(),
                set.victims(row).to_vec(),
            )
        };
        set.iter().map(facts).collect()
    }

    fn slowly_stopped(cluster: &Cluster, victims: &[JobId]) -> Stopped {
        let jobs = || victims.iter().map(|victim| cluster.job(*victim));
        let remaining_s = jobs().map(|job| job.remaining_s_at(cluster.now()));
        Stopped {
            num_gpus: jobs().map(|job| job.num_held).sum(),
            remaining_s_min: remaining_s.min_by(f64::total_cmp).unwrap_or(0.0),
        }
    }

    fn bits_of(observation: &Observation) -> Vec<u32> {
        let seen = observation.as_ref();
        let numbers = seen.global.iter().chain(seen.candidates);
        numbers.map(|number| number.to_bits()).collect()
    }

    fn clusters() -> impl Strategy<Value = Cluster> {
        let sharing = prop_oneof![3 => Just(Sharing::Off), 1 => Just(Sharing::Mps)];
        (sharing, prop_oneof![4 => Just(false), 1 => Just(true)]).prop_flat_map(|(sharing, consolidated)| {
            let capabilities = Capabilities {
                sharing,
                consolidated,
                ..Capabilities::DEFAULT
            };
            cluster_with(2, any::<bool>().boxed(), capabilities)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn an_enumeration_that_remembers_offers_what_one_from_scratch_does(
            mut cluster in clusters(),
            events in events(40),
            choices in proptest::collection::vec(0_usize..64, 1..40),
            share in any::<bool>(),
            wait_for_type in any::<bool>(),
            is_of_one in any::<bool>(),
            believed in proptest::option::of(0.1..2.0_f64),
        ) {
            let mut needs = CandidateConfig::default().needs();
            needs.actions = needs
                .actions
                .set(ActionKind::Share, share)
                .set(ActionKind::WaitForType, wait_for_type);
            let (mut pass, mut choices) = (Pass::new(), choices.into_iter().cycle());
            if is_of_one {
                pass = Pass::of_one_cluster();
            }
            let (mut scratch, mut set) = (Scratch::default(), CandidateSet::default());
            for event in events {
                happen(&mut cluster, event);
                if let Some(speed) = believed.filter(|_| cluster.num_running() == 1) {
                    cluster.believe_speed(ClassId(0), GpuTypeId(0), speed);
                }
                let mut state = pass.open(&cluster, &needs);
                // A pass of preemptions ends by itself, because no job that started in it is stopped.
                while state == PassState::Open {
                    scratch.forget();
                    enumerate(&cluster, &needs, pass.reservation(), &mut scratch, &mut set);
                    prop_assert_eq!(facts_of(pass.candidates()), facts_of(&set));
                    prop_assert_eq!(pass.candidates().hold_refused, set.hold_refused);
                    for row in &set.rows {
                        prop_assert_eq!(row.stopped, slowly_stopped(&cluster, set.victims(row)));
                    }
                    let mut fresh = Observation::default();
                    fresh.fill(&cluster, &set, pass.reservation());
                    prop_assert_eq!(bits_of(pass.observe(&cluster)), bits_of(&fresh));
                    let action = choices.next().unwrap() % set.len();
                    let action = if set.is_admissible(action) { action } else { 1 };
                    state = pass.act(&mut cluster, &needs, action);
                }
                cluster.check();
            }
        }
    }
}
