//! Jobs that wait outside the ranked queue, held or behind another job or a time, have factor 0 there.
//!
//! A factor that stayed would hold when such a job may start, whatever its user has changed since: a short job is ranked first, is put
//! behind another one, asks for two days, and starts in the moment in which that one ends. Slurm does not tell the factors of most of
//! them, so each is written once while it lies outside; a daemon that begins anew writes all of them.

use std::collections::{BTreeMap, BTreeSet};

use pleach_site::slurm::array_of;

use super::queue::{Outside, Waiting};

/// What was written of jobs outside the queue, and the factors that jobs had in it.
#[derive(Debug, Default)]
pub(crate) struct Outsiders {
    /// Names of those that have factor 0, as far as it was written here.
    cleared: BTreeSet<String>,
    /// Factors other than 0 of the last queue, with those that were written, by name.
    ranked: BTreeMap<String, i64>,
}

impl Outsiders {
    /// Names of the jobs that have to lose their factors, those first that were ranked in the last look.
    pub(super) fn due(&mut self, waiting: &Waiting) -> Vec<String> {
        let names: BTreeSet<&str> = waiting.outside.iter().map(|job| job.name.as_str()).collect();
        self.cleared.retain(|name| names.contains(name.as_str()));
        let is_due = |job: &&Outside| match job.factor {
            Some(factor) => factor != 0,
            None => !self.cleared.contains(&job.name),
        };
        let outside = waiting.outside.iter().filter(is_due).map(|job| &job.name);
        // One that was ranked here and waits in another partition now.
        let moved = waiting
            .elsewhere
            .keys()
            .filter(|name| self.ranked.contains_key(*name));
        let mut due: Vec<String> = outside.chain(moved).cloned().collect();
        due.sort_by_key(|name| !self.ranked.contains_key(name));
        self.ranked = waiting
            .queue
            .iter()
            .filter(|place| place.factor != 0)
            .map(|place| (place.name.to_string(), place.factor))
            .collect();
        due
    }

    /// These factors were written, or may have been, in the queue: tasks of an array have that of the whole, those outside too.
    pub(super) fn ranked<'a>(&mut self, factors: impl Iterator<Item = (&'a str, i64)>) {
        let written: BTreeMap<String, i64> =
            factors.map(|(name, factor)| (name.to_owned(), factor)).collect();
        let is_kept = |name: &String| array_of(name).is_none_or(|array| !written.contains_key(array));
        self.cleared.retain(is_kept);
        self.ranked.extend(written);
    }

    /// These have factor 0 now.
    pub(super) fn cleared<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.cleared.extend(names.map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::queue::Place;

    fn waiting(queue: &[(&str, i64)], outside: &[(&str, Option<i64>)]) -> Waiting {
        let place = |(name, factor): &(&str, i64)| Place {
            name: (*name).into(),
            job: name.parse().ok(),
            is_array: false,
            factor: *factor,
            reason: "Priority".into(),
        };
        let out = |(name, factor): &(&str, Option<i64>)| Outside {
            name: (*name).to_owned(),
            factor: *factor,
        };
        Waiting {
            queue: queue.iter().map(place).collect(),
            outside: outside.iter().map(out).collect(),
            ..Waiting::default()
        }
    }

    #[test]
    fn a_job_that_leaves_the_queue_loses_its_factor_once_for_each_time_that_it_leaves() {
        let mut outsiders = Outsiders::default();
        // A daemon that begins anew knows of none.
        assert_eq!(
            outsiders.due(&waiting(&[("1", 0)], &[("2", None), ("3", None)])),
            ["2", "3"]
        );
        outsiders.ranked([("1", 4000)].into_iter());
        outsiders.cleared(["2"].into_iter());
        let now = waiting(
            &[],
            &[
                ("2", None),
                ("3", None),
                ("1", None),
                ("4", Some(0)),
                ("5", Some(7)),
            ],
        );
        assert_eq!(
            outsiders.due(&now),
            ["1", "3", "5"],
            "those that were ranked come first"
        );
        outsiders.cleared(["1", "3", "5"].into_iter());
        assert!(
            outsiders
                .due(&waiting(&[], &[("1", None), ("2", None), ("3", None)]))
                .is_empty()
        );
        // Back in the queue, ranked, and out again.
        assert!(outsiders.due(&waiting(&[("1", 0)], &[])).is_empty());
        outsiders.ranked([("1", 3000)].into_iter());
        assert_eq!(outsiders.due(&waiting(&[], &[("1", None)])), ["1"]);
    }

    #[test]
    fn tasks_outside_lose_what_was_written_for_their_array_and_moved_jobs_what_they_had_here() {
        let mut outsiders = Outsiders::default();
        outsiders.due(&waiting(&[("7", 0)], &[("7_1", None)]));
        outsiders.cleared(["7_1"].into_iter());
        outsiders.ranked([("7", 500)].into_iter());
        assert_eq!(outsiders.due(&waiting(&[("7", 500)], &[("7_1", None)])), ["7_1"]);
        let mut moved = waiting(&[], &[]);
        moved.elsewhere = BTreeMap::from([("7".to_owned(), 500), ("8".to_owned(), 600)]);
        assert_eq!(
            outsiders.due(&moved),
            ["7"],
            "another daemon may have ranked the other"
        );
        assert!(outsiders.due(&moved).is_empty());
    }
}
