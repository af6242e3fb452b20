//! Whether another daemon drives the same jobs: factors are read that this daemon has not written.
//!
//! A folder is one daemon's, and the lock on it refuses a second one; with a folder of its own, or on another machine, nothing refuses
//! it. It is found out by what it writes: factors of jobs that were not written here. Two looks that show such a thing are a
//! sign; one may be an operator's hand, or the last words of a daemon that was killed.

use std::collections::{HashMap, VecDeque};

use super::queue::Place;

/// Time for which a sign counts, s. *Ours*: an alert sees it, and it is over soon after the other daemon is.
const LASTS_S: i64 = 600;

/// Values of a factor that are remembered of each job: those that may still be on their way.
const VALUES: usize = 8;

/// What was written here, of jobs that wait.
#[derive(Debug, Default)]
pub(crate) struct Rivals {
    factors: HashMap<String, Factor>,
    /// Looks so far.
    num_looks: u64,
    /// Times of the last two looks that showed what was not written here, s.
    signs: VecDeque<i64>,
    /// What the last one showed.
    told: String,
}

/// What is known of a job's factor.
#[derive(Debug)]
struct Factor {
    /// With which it came, and those that were written here.
    own: VecDeque<i64>,
    /// The last one that was seen or written.
    last: i64,
    /// The last look that showed the job.
    look: u64,
}

impl Factor {
    fn of(factor: i64) -> Factor {
        Factor {
            own: [factor].into(),
            last: factor,
            look: 0,
        }
    }
}

impl Rivals {
    /// These factors were written, or, where it is not known whether (`is_sure`), may have been. What was refused changes nothing.
    pub(super) fn factors<'a>(&mut self, factors: impl Iterator<Item = (&'a str, i64)>, is_sure: bool) {
        for (name, factor) in factors {
            let known = self
                .factors
                .entry(name.to_owned())
                .or_insert_with(|| Factor::of(factor));
            if is_sure {
                known.own.clear();
                known.last = factor;
            }
            push(&mut known.own, factor);
        }
    }

    /// What a look shows of another daemon that tells an order. A factor that a job comes with is its own.
    pub(super) fn by_factors(&mut self, queue: &[Place], now_s: i64) -> Option<String> {
        let mut found = None;
        self.num_looks += 1;
        for Place { name, factor, .. } in queue {
            let known = match self.factors.get_mut(&**name) {
                Some(known) => known,
                None => self
                    .factors
                    .entry(name.to_string())
                    .or_insert_with(|| Factor::of(*factor)),
            };
            let is_changed = *factor != 0 && *factor != known.last && !known.own.contains(factor);
            if is_changed && found.is_none() {
                found = Some(format!(
                    "job {name} has the site factor {factor}, which was not told here"
                ));
            }
            (known.last, known.look) = (*factor, self.num_looks);
        }
        self.factors.retain(|_, known| known.look == self.num_looks);
        self.sign(found, now_s)
    }

    /// Takes in what a look shows; what is to be said, where it was two looks.
    fn sign(&mut self, found: Option<String>, now_s: i64) -> Option<String> {
        if let Some(text) = found {
            self.signs.push_back(now_s);
            self.told = text;
        }
        while self.signs.len() > 2 {
            self.signs.pop_front();
        }
        let is_recent = |at_s: &i64| (now_s - at_s).abs() <= LASTS_S;
        (self.signs.len() == 2 && self.signs.iter().all(is_recent)).then(|| {
            format!(
                "another daemon drives these jobs: {}; end one of the two, or take the partition out of one's configuration",
                self.told
            )
        })
    }
}

fn push(values: &mut VecDeque<i64>, value: i64) {
    if values.len() == VALUES {
        values.pop_front();
    }
    values.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, factor: i64) -> Place {
        Place {
            name: name.into(),
            job: name.parse().ok(),
            is_array: false,
            factor,
            reason: "Priority".into(),
        }
    }

    #[test]
    fn factors_of_another_are_told_after_two_looks_and_for_ten_minutes() {
        let mut rivals = Rivals::default();
        // What an earlier daemon has written, and what comes with a factor of its own.
        assert_eq!(rivals.by_factors(&[place("1", 700)], 0), None);
        rivals.factors([("1", 5), ("2", 6)].into_iter(), false);
        assert_eq!(
            rivals.by_factors(&[place("1", 700), place("2", 6), place("3", 9)], 1),
            None
        );
        // Late, lost, taken back by hand.
        assert_eq!(
            rivals.by_factors(&[place("1", 5), place("2", 0), place("3", 9)], 2),
            None
        );
        assert_eq!(rivals.by_factors(&[place("1", 8)], 3), None, "an operator's hand");
        assert_eq!(rivals.by_factors(&[place("1", 8)], 4), None);
        // Written over here, and written again there.
        rivals.factors([("1", 5)].into_iter(), true);
        let told = rivals.by_factors(&[place("1", 8)], 5).unwrap();
        assert!(told.contains("job 1 has the site factor 8"), "{told}");
        assert!(rivals.by_factors(&[], 603).is_some());
        assert_eq!(rivals.by_factors(&[], 604), None, "it is over");
    }
}
