//! How the last round went: what a daemon writes into `status.json` after each one, and what an operator reads of it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::drive::Drive;
use crate::error::Error;
use crate::files;
use crate::leases::LeaseStatus;
use crate::order::Order;
use crate::promised::PromiseStatus;
use crate::round::Plan;
use crate::round_facts::RoundFacts;
use crate::system::Words;

/// Largest status that is read, bytes: its warnings are sentences.
const STATUS_MAX: u64 = 1 << 20;

/// Begins the warning about a policy that was not taken over.
const REFUSED: &str = "the last reload was refused: ";

/// Begins the warning about a policy that leaves this cluster to another rule.
const ASIDE: &str = "it steps aside: ";

/// How the last round went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Status {
    /// When it was written, Unix time, s.
    pub at_s: i64,
    /// Process id of the daemon.
    pub pid: u32,
    /// Whether nothing is carried out.
    pub is_shadow: bool,
    /// The partition.
    pub partition: String,
    /// Name of the policy.
    pub policy: String,
    /// What an operator should know of it.
    pub warnings: Vec<String>,
    /// Rounds since the daemon began.
    pub num_rounds: u64,
    /// Rounds that failed.
    pub num_failed: u64,
    /// Rounds that the fallback answered, and those that the policy itself left to it.
    pub num_fallbacks: u64,
    /// Starts that were sent; in shadow mode, that were decided. Under [`Drive::Order`] none is sent: [`RoundFacts`] has those
    /// seen.
    pub num_starts: u64,
    /// Those of them that the fallback decided.
    pub num_starts_by_fallback: u64,
    /// What was written of the order; none where jobs are held and let go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderStatus>,
    /// Why the policy left the last round in which there was something to decide to another rule; none where it decided.
    pub aside: Option<String>,
    /// What the last round showed.
    pub truth: RoundFacts,
    /// Jobs that wait for the daemon.
    pub num_waiting: usize,
    /// Jobs that run or were let go.
    pub num_placed: usize,
    /// Jobs that are left to Slurm.
    pub num_foreign: usize,
    /// Leases; none where there never were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leases: Option<LeaseStatus>,
    /// What is to be said of jobs beyond the policy; empty where there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub standing: String,
    /// What another driver of the same jobs was seen to do; none: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rival: Option<String>,
    /// Jobs that came and were not held, and went ahead of the others; none where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_unheld: Option<usize>,
    /// Lines that the log could not take.
    pub num_lines_lost: u64,
    /// The last error; empty where there was none.
    pub last_error: String,
    /// Stability index of the last decisions; none until there is one, and for what is no sealed tree.
    pub drift_psi: Option<f64>,
    /// Waits beside what was promised; none where nothing was, and in shadow mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<PromiseStatus>,
    /// Time for observing in the last round, s.
    pub observe_s: f64,
    /// Time for deciding in the last round, s.
    pub decide_s: f64,
    /// Time for carrying out in the last round, s.
    pub apply_s: f64,
}

/// How telling an order goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OrderStatus {
    /// Way of driving, [`Drive::name`].
    pub drive: String,
    /// The first jobs of the order, in words; empty where no job waits.
    pub first: String,
    /// Changes that were written.
    pub num_written: u64,
    /// Those that are left to be written in later rounds.
    pub num_left: usize,
}

impl OrderStatus {
    /// Before an order was written; none where jobs are held and let go.
    #[must_use]
    pub fn begin(drive: Drive) -> Option<OrderStatus> {
        drive.is_order().then(|| OrderStatus {
            drive: drive.name().to_owned(),
            ..OrderStatus::default()
        })
    }
}

impl Status {
    /// Takes in what decided a round; what an operator should know of that.
    pub fn decided(&mut self, plan: &Plan) -> Option<String> {
        let is_asked = plan.aside.is_some() || !plan.of_policy().is_empty();
        if is_asked && plan.fallback.is_none() {
            self.aside.clone_from(&plan.aside);
        }
        let aside = || Some(format!("{} steps aside: {}", self.policy, plan.aside.as_ref()?));
        let why = plan.fallback.clone().or_else(aside)?;
        self.num_fallbacks += 1;
        Some(why)
    }

    /// Counts what was carried out of a plan for others than leases, `num` starts and preemptions.
    pub fn carried_out(&mut self, plan: &Plan, num: u64) {
        self.num_starts += num;
        if plan.fallback.is_some() || plan.aside.is_some() {
            self.num_starts_by_fallback += num;
        }
    }

    /// Takes in what was written of an order.
    pub fn told_order(&mut self, order: &Order) {
        let told = self.order.get_or_insert_default();
        told.num_written += order.written.len() as u64;
        told.num_left = order.num_left;
        told.first = order.first();
    }

    /// Notes that the policy would leave the cluster to another rule.
    pub fn warn_aside(&mut self, why: Option<String>) {
        self.warnings.retain(|text| !text.starts_with(ASIDE));
        self.warnings.extend(why.map(|why| ASIDE.to_owned() + &why));
    }

    /// Notes that a policy was not taken over, and why; the present one goes on.
    pub fn refuse_reload(&mut self, error: &dyn std::fmt::Display) {
        self.warnings.retain(|text| !text.starts_with(REFUSED));
        self.warnings
            .push(format!("{REFUSED}{error}; {} goes on", self.policy));
    }

    /// What an operator reads at Unix time `now_s`, in the words of a batch system.
    #[must_use]
    pub fn told(&self, now_s: i64, words: &Words) -> String {
        let (place, left) = (format!("{}{}", words.place, self.partition), words.scheduler);
        let age_s = now_s - self.at_s;
        let mode = if self.is_shadow { "shadow" } else { "live" };
        let mode = match &self.order {
            None => mode.to_owned(),
            Some(order) => format!("{mode}, {}", order.drive),
        };
        let mut text = format!(
            "{} on {place} ({mode}), process {}\n\
             last round {age_s} s ago: {} waiting, {} placed, {} left to {left}\n\
             {} rounds, {} failed, {} by the fallback; {} starts and preemptions, {} by the fallback; {} lines of the log lost\n\
             last round: observe {:.1} ms, decide {:.1} ms, apply {:.1} ms",
            self.policy,
            self.pid,
            self.num_waiting,
            self.num_placed,
            self.num_foreign,
            self.num_rounds,
            self.num_failed,
            self.num_fallbacks,
            self.num_starts,
            self.num_starts_by_fallback,
            self.num_lines_lost,
            self.observe_s * 1e3,
            self.decide_s * 1e3,
            self.apply_s * 1e3,
        );
        if let Some(order) = &self.order {
            let first = match order.first.as_str() {
                "" => "no job waits",
                first => first,
            };
            let (written, left) = (order.num_written, order.num_left);
            text += &format!("\norder: {first}; {written} factors written, {left} to write");
        }
        text += &self.truth.told();
        text += &self.leases.as_ref().map_or_else(String::new, LeaseStatus::told);
        if !self.standing.is_empty() {
            text += &format!("\n{}", self.standing);
        }
        if let Some(num @ 1..) = self.num_unheld {
            text += &format!(
                "\nERROR: {num} GPU {} arrived unheld and went ahead of the others: the log names them",
                words.held
            );
        }
        if let Some(rival) = &self.rival {
            text += &format!("\nWARNING: {rival}");
        }
        if let Some(psi) = self.drift_psi {
            text += &format!("\ndrift: stability index {psi:.3}");
        }
        text += &self
            .promise
            .as_ref()
            .map_or_else(String::new, PromiseStatus::told);
        if let Some(why) = &self.aside {
            text += &format!("\nit does not decide itself: {why}");
        }
        for warning in &self.warnings {
            text += &format!("\nwarning: {warning}");
        }
        if !self.last_error.is_empty() {
            text += &format!("\nlast error: {}", self.last_error);
        }
        text
    }
}

/// The status of a folder.
///
/// # Errors
/// A file that cannot be read or understood, or is longer than 1 MiB.
pub fn read_status(folder: &Path) -> Result<Status, Error> {
    let path = folder.join("status.json");
    let text = files::text(&path, STATUS_MAX)?;
    serde_json::from_str(&text).map_err(|error| Error::Text {
        path,
        line: error.line(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::Slurm;
    use crate::system::BatchSystem;

    #[test]
    fn a_refused_reload_is_a_warning_until_the_next_one_and_stepping_aside_is_one_too() {
        let mut status = Status {
            policy: "tree".into(),
            partition: "main".into(),
            ..Status::default()
        };
        status.refuse_reload(&"no such file");
        status.refuse_reload(&"no file");
        status.warn_aside(Some("fifo decides".into()));
        status.warn_aside(Some("fifo decides still".into()));
        assert_eq!(
            status.warnings,
            [
                "the last reload was refused: no file; tree goes on",
                "it steps aside: fifo decides still"
            ]
        );
        let told = status.told(7, &Slurm::WORDS);
        assert!(told.starts_with("tree on partition main (live)") && told.contains("7 s ago"));
        assert!(told.contains("warning: the last reload was refused: no file"));
        status.warn_aside(None);
        assert_eq!(status.warnings.len(), 1);
    }
}
