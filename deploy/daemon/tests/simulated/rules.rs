//! What must hold after every call, whatever went wrong.

use super::job::{Hold, Job};

/// What a daemon may do, and what it did that it may not.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Most factors that it may write in one round.
    pub factors_max: usize,
    pub num_factors: usize,
    pub num_starts: u64,
    /// Whether it may stop jobs, and how many it stopped.
    pub may_requeue: bool,
    pub num_requeued: u64,
    pub broken: Option<String>,
}

/// A change that a `scontrol` of the daemon's makes to one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    Factor,
    Nodes(&'a str),
    Closed,
    Mark,
    Release,
    Requeue,
}

impl Rules {
    pub fn break_with(&mut self, text: String) {
        self.broken.get_or_insert(text);
    }

    pub fn started(&mut self) {
        self.num_starts += 1;
    }

    /// One command that writes a factor, of however many tasks.
    pub fn count_factor(&mut self) {
        self.num_factors += 1;
    }

    pub fn begin_round(&mut self) {
        self.num_factors = 0;
    }

    /// Judges a change of a job as it is now, which the daemon has seen as it is.
    pub fn judge(&mut self, job: &Job, change: Change<'_>) {
        if let Some(why) = self.refuses(job, change) {
            let (name, held) = (job.name(), job.hold);
            self.break_with(format!(
                "{change:?} of job {name} (held by {held:?}, mark {:?}): {why}",
                job.mark
            ));
        }
    }

    fn refuses(&mut self, job: &Job, change: Change<'_>) -> Option<&'static str> {
        if job.partition != "main" {
            return Some("it is of another partition");
        }
        if change == Change::Factor {
            let is_too_many = self.num_factors > self.factors_max;
            return is_too_many.then_some("more than a round may write");
        }
        if change == Change::Requeue {
            let is_kept = job.part_of.is_some() || job.mark.starts_with("pleach:off") || !self.may_requeue;
            return is_kept.then_some("it is none that may be stopped");
        }
        if change == Change::Release && job.hold == Hold::Nobody {
            return None;
        }
        // What it has named itself it lifts.
        let is_lift = matches!(change, Change::Nodes(nodes) if nodes == job.own_nodes.join(","));
        if job.mark.starts_with("pleach:off") && !is_lift {
            return Some("an operator keeps it away");
        }
        // What is left of a daemon that held jobs is given back by any.
        let is_left_over = job.is_marked();
        if !(is_left_over || matches!(change, Change::Nodes(_))) {
            return Some("nothing but an order is told");
        }
        let is_foreign = job.gpus_per_node == 0 || job.part_of.is_some();
        match change {
            _ if is_foreign && !is_left_over => Some("it is none that policies decide about"),
            Change::Nodes(nodes) if !job.own_nodes.is_empty() && nodes != job.own_nodes.join(",") => {
                Some("its user has named nodes")
            }
            // Where a job was given back and its mark could not be taken away, it is not known whose hold it is.
            Change::Release if job.hold == Hold::User && job.mark != "pleach:held" => {
                Some("its user holds it")
            }
            Change::Release if job.hold == Hold::Admin && !job.is_marked() => Some("an operator holds it"),
            _ => None,
        }
    }
}
