//! How real a simulated world is, and in words which world that was.

use pleach_scheduler::physics::overheads::Overheads;
use pleach_workloads::estimates::EstimateModel;

use crate::availability::AvailabilityConfig;
use crate::beliefs::BeliefErrors;
use crate::simulate::SimConfig;
use crate::site_failures::SiteFailures;

/// Seconds for which a gang that lost a node keeps its other places. *Assumed.*
const KEEP_PLACES_S: f64 = 1800.0;

impl SimConfig {
    /// The same in the world that is measured: starts, memory, checkpoints and links by class, a stop that leaves 30 s to save
    /// (Kubernetes' default of `terminationGracePeriodSeconds`), guarded sharing, a scheduler that is a little wrong about speeds and
    /// costs, run times that are guessed where they would be known, nodes and jobs that fail as those of a production site, and gangs
    /// that keep their places for half an hour when they lose a node (*assumed*). The run times of a record (`is_record`) have starts
    /// and failures in them, so that it takes neither.
    #[must_use]
    pub fn realistic(mut self, is_record: bool) -> SimConfig {
        self.capabilities.class_checkpoints = true;
        self.capabilities.stop_grace_s = Some(30.0);
        self.class_facts = true;
        self.beliefs = Some(BeliefErrors::MEASURED);
        if self.estimates == EstimateModel::Oracle {
            self.estimates = EstimateModel::HISTORY;
        }
        if !is_record {
            self.capabilities.overheads = Some(Overheads::ByClass);
            let own = &mut self.capacity;
            if own.node_mtbf_s.is_none() {
                own.site.get_or_insert(SiteFailures::PRODUCTION);
            }
            if own.keep_places_s == 0.0 {
                own.keep_places_s = KEEP_PLACES_S;
            }
        }
        self
    }

    /// The same in the world of the papers: the opposite of [`SimConfig::realistic`]. A model of run times other than by history stays.
    #[must_use]
    pub fn as_published(mut self) -> SimConfig {
        let can = &mut self.capabilities;
        if can.overheads == Some(Overheads::ByClass) {
            can.overheads = None;
        }
        can.class_checkpoints = false;
        can.stop_grace_s = None;
        self.class_facts = false;
        self.beliefs = None;
        if self.estimates == EstimateModel::HISTORY {
            self.estimates = EstimateModel::Oracle;
        }
        (self.capacity.site, self.capacity.keep_places_s) = (None, 0.0);
        self
    }

    /// What is played, in a line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let can = &self.capabilities;
        let mut parts = vec![match self.estimates {
            EstimateModel::Oracle => "run times are known".to_string(),
            EstimateModel::UserLimit { .. } => "of run times the limits are known".into(),
            EstimateModel::History { .. } => "run times are guessed from ended jobs".into(),
            EstimateModel::LogNormal { sigma, .. } => {
                format!("run times are known to a factor (sigma {sigma})")
            }
        }];
        parts.push(match can.overheads {
            Some(Overheads::ByClass) => "starts cost what they do for the model".into(),
            Some(overheads) if overheads == Overheads::ZERO => "starts and stops cost nothing".into(),
            Some(Overheads::Fixed(fixed)) => format!(
                "a first start costs {} s, a later one {} s",
                fixed.start_s, fixed.restore_s
            ),
            Some(_) => "starts and stops cost what was measured".into(),
            None => format!("a restart costs {} s", can.restart_cost_s),
        });
        if self.class_facts || can.class_checkpoints {
            parts.push("memory, checkpoints and links by the model".into());
        }
        parts.extend(
            self.beliefs
                .map(|beliefs| format!("speeds are believed to {:.0} %", 100.0 * beliefs.rates)),
        );
        let site = self.capacity.site.map(|site| {
            format!(
                "of 1,000 node-days {} end in a failure, {} in an incident",
                site.hardware, site.incidents
            )
        });
        let plain =
            || (self.capacity != AvailabilityConfig::default()).then(|| "nodes come and go".to_string());
        parts.extend(site.or_else(plain));
        if self.outcomes.is_some() {
            parts.push("jobs fail and are killed".into());
        }
        if self.batch_system.is_some() {
            parts.push("a batch system carries decisions out".into());
        }
        format!("world: {}", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_its_starts_and_failures_in_its_run_times() {
        let [drawn, record] = [false, true].map(|is_record| SimConfig::default().realistic(is_record));
        assert_eq!(drawn.capacity.site, Some(SiteFailures::PRODUCTION));
        assert_eq!(drawn.capabilities.overheads, Some(Overheads::ByClass));
        assert_eq!(
            (record.capacity.clone(), record.capabilities.overheads),
            (AvailabilityConfig::default(), None)
        );
        for sim in [drawn, record] {
            assert!(sim.class_facts && sim.beliefs.is_some() && sim.capabilities.class_checkpoints);
            assert_eq!(sim.estimates, EstimateModel::HISTORY);
        }
        // What is said of run times and failures stays.
        let limits = EstimateModel::UserLimit { default_s: 60.0 };
        let mut own = SimConfig {
            estimates: limits,
            ..SimConfig::default()
        };
        own.capacity.node_mtbf_s = Some(1e6);
        own.capacity.keep_places_s = 60.0;
        let real = own.clone().realistic(false);
        assert_eq!((real.estimates, &real.capacity), (limits, &own.capacity));
    }

    #[test]
    fn the_world_of_the_papers_is_what_a_realistic_one_was_made_of() {
        let mut own = SimConfig::default();
        own.capabilities.restart_cost_s = 7.0;
        assert_eq!(own.clone().realistic(false).as_published(), own);
        own.estimates = EstimateModel::UserLimit { default_s: 60.0 };
        own.capacity.node_mtbf_s = Some(1e6);
        let back = own.clone().realistic(true).as_published();
        assert_eq!(back, own, "limits and failures of nodes are the list's own");
    }

    #[test]
    fn a_world_is_said_in_a_line() {
        let plain = SimConfig::default();
        assert_eq!(
            plain.in_words(),
            "world: run times are known; a restart costs 30 s"
        );
        assert_eq!(
            plain.realistic(false).in_words(),
            "world: run times are guessed from ended jobs; starts cost what they do for the model; memory, checkpoints and links by \
             the model; speeds are believed to 12 %; of 1,000 node-days 3 end in a failure, 3.8 in an incident"
        );
        let mut free = SimConfig::default();
        free.capabilities.overheads = Some(Overheads::ZERO);
        free.capacity.node_mtbf_s = Some(1e6);
        assert_eq!(
            free.in_words(),
            "world: run times are known; starts and stops cost nothing; nodes come and go"
        );
    }
}
