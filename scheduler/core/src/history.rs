//! Run times of ended jobs, and what they let expect of jobs like them.
//!
//! The prediction for a job comes from the last few ended jobs that are most like it: of the same user and gang size, else of the
//! same user, else of the same gang size, else of anyone. It is the run time up to which a quarter of their GPU time went: users
//! cannot lower it with many jobs that do nothing, as they could a mean in which each job counts alike. The simulator and the daemon
//! learn by this one type, so the same jobs ended in the same order give the same bits in both.
//!
//! It knows no clock and no queue: the caller says when a job counts as ended, and what of a run counts.
//!
//! # Source
//! The idea is QSSF's rolling estimate (Hu et al., SC'21): users repeat their jobs. The quantile, its weights, the number of
//! jobs and the order of the groups are ours.

use std::collections::{BTreeMap, VecDeque};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::portable_math::{exp, ln};

/// Largest size of a logarithm that is read from a file: run times from 1e-10 s to 1e10 s.
const LOG_MAX: f64 = 23.1;

/// Part of the GPU time of a group up to which run times are looked at for its prediction. *Ours*.
const QUANTILE: f64 = 0.25;

/// Part of a job's time limit below which no prediction is believed. *Ours*: a job of two days counts as one of half an hour at least,
/// however short all others of its user were.
const LIMIT_SHARE: f64 = 0.01;

/// What is believed of the run time of a job with a time limit where `predicted_s` is predicted, s: no less than a hundredth of the
/// limit.
#[must_use]
pub fn believed_s(predicted_s: f64, limit_s: f64) -> f64 {
    predicted_s.max(limit_s * LIMIT_SHARE)
}

/// How much is kept. What was added to longest ago is forgotten first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Run times that count in each group, at least 1; the oldest goes first.
    pub num_last: usize,
    /// Users, at least 1. The one whose last job ended longest ago goes first, with all that is known of him.
    pub num_users: usize,
    /// Gang sizes of each user, and of all users together, at least 1. The one of which no job ended for longest goes first.
    pub num_gangs: usize,
}

impl Keep {
    /// All users and gang sizes, as a simulation can afford that ends.
    #[must_use]
    pub fn all(num_last: usize) -> Keep {
        Keep {
            num_last,
            num_users: usize::MAX,
            num_gangs: usize::MAX,
        }
    }
}

/// What was learned from jobs that ended. `Who` tells users apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(
        serialize = "Who: Ord + Serialize",
        deserialize = "Who: Ord + Clone + Deserialize<'de>"
    )
)]
pub struct RunTimes<Who: Ord> {
    #[serde(skip, default = "keep_all")]
    keep: Keep,
    users: Aged<Who, User>,
    gangs: Aged<u32, Last>,
    all: Last,
}

fn keep_all() -> Keep {
    Keep::all(usize::MAX)
}

/// A user's jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    all: Last,
    gangs: Aged<u32, Last>,
}

impl<Who: Ord + Clone> RunTimes<Who> {
    /// Nothing yet.
    #[must_use]
    pub fn new(keep: Keep) -> RunTimes<Who> {
        RunTimes {
            keep,
            users: Aged::default(),
            gangs: Aged::default(),
            all: Last::default(),
        }
    }

    /// A job of `who` on `num_gpus` GPUs has ended after `run_time_s`.
    ///
    /// # Panics
    /// With a run time that is not finite and above 0 s.
    pub fn learn(&mut self, who: &Who, num_gpus: u32, run_time_s: f64) {
        assert!(
            run_time_s.is_finite() && run_time_s > 0.0,
            "a run time of {run_time_s} s"
        );
        let (run, keep) = (Run(ln(run_time_s), num_gpus), self.keep);
        let user = self.users.newest(who, keep.num_users);
        user.gangs
            .newest(&num_gpus, keep.num_gangs)
            .push(run, keep.num_last);
        user.all.push(run, keep.num_last);
        self.gangs
            .newest(&num_gpus, keep.num_gangs)
            .push(run, keep.num_last);
        self.all.push(run, keep.num_last);
    }

    /// What a job of `who` on `num_gpus` GPUs is expected to take, s; none until anything has ended.
    #[must_use]
    pub fn predict(&self, who: &Who, num_gpus: u32) -> Option<f64> {
        let user = self.users.get(who);
        let likes = [
            user.and_then(|user| user.gangs.get(&num_gpus)),
            user.map(|user| &user.all),
            self.gangs.get(&num_gpus),
            Some(&self.all),
        ];
        likes.into_iter().flatten().find_map(Last::quantile_s)
    }

    /// The same by jobs of `who` alone; none until one has ended.
    #[must_use]
    pub fn predict_own(&self, who: &Who, num_gpus: u32) -> Option<f64> {
        let user = self.users.get(who)?;
        let likes = [user.gangs.get(&num_gpus), Some(&user.all)];
        likes.into_iter().flatten().find_map(Last::quantile_s)
    }

    /// The same with other bounds: what is too much by them is forgotten.
    #[must_use]
    pub fn kept(mut self, keep: Keep) -> RunTimes<Who> {
        self.keep = keep;
        self.all.shorten(keep.num_last);
        self.gangs.shorten(keep.num_gangs);
        self.users.shorten(keep.num_users);
        for (_, user) in self.users.known.values_mut() {
            user.all.shorten(keep.num_last);
            user.gangs.shorten(keep.num_gangs);
        }
        let users = self.users.known.values_mut();
        let own = users.flat_map(|(_, user)| user.gangs.known.values_mut());
        for (_, last) in own.chain(self.gangs.known.values_mut()) {
            last.shorten(keep.num_last);
        }
        self
    }

    /// Number of users with kept run times.
    #[must_use]
    pub fn num_users(&self) -> usize {
        self.users.known.len()
    }

    /// Run times that are kept, each as often as there are groups that have it.
    #[must_use]
    pub fn num_kept(&self) -> usize {
        let users = self.users.known.values();
        let own = users.clone().flat_map(|(_, user)| user.gangs.known.values());
        let gangs = own.chain(self.gangs.known.values());
        let all = users.map(|(_, user)| user.all.runs.len());
        gangs.map(|(_, last)| last.runs.len()).sum::<usize>() + all.sum::<usize>() + self.all.runs.len()
    }
}

/// The logarithm of the run time of a job that ended, and its GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Run(f64, u32);

impl Run {
    fn gpu_s(self) -> f64 {
        exp(self.0) * f64::from(self.1.max(1))
    }
}

/// The last jobs of a group, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "VecDeque<Run>", into = "VecDeque<Run>")]
struct Last {
    runs: VecDeque<Run>,
}

impl Last {
    fn push(&mut self, run: Run, num_last: usize) {
        if self.runs.len() == num_last {
            self.runs.pop_front();
        }
        self.runs.push_back(run);
    }

    fn shorten(&mut self, num_last: usize) {
        let num_more = self.runs.len().saturating_sub(num_last);
        self.runs.drain(..num_more);
    }

    /// The shortest run time such that jobs up to it had [`QUANTILE`] of the GPU time of all, s; none of no jobs.
    fn quantile_s(&self) -> Option<f64> {
        let mut runs: Vec<Run> = self.runs.iter().copied().collect();
        runs.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        // Summed anew each time: a running sum would drift.
        let all: f64 = runs.iter().map(|run| run.gpu_s()).sum();
        let mut sum = 0.0;
        let reaches = |run: &&Run| {
            sum += run.gpu_s();
            sum >= QUANTILE * all
        };
        let found = runs.iter().find(reaches).or(runs.last());
        found.map(|run| exp(run.0))
    }
}

impl TryFrom<VecDeque<Run>> for Last {
    type Error = String;

    fn try_from(runs: VecDeque<Run>) -> Result<Last, String> {
        match runs.iter().find(|run| !(-LOG_MAX..=LOG_MAX).contains(&run.0)) {
            Some(Run(log, _)) => Err(format!(
                "{log} is no logarithm of a run time; allowed is ±{LOG_MAX}"
            )),
            None => Ok(Last { runs }),
        }
    }
}

impl From<Last> for VecDeque<Run> {
    fn from(last: Last) -> VecDeque<Run> {
        last.runs
    }
}

/// Values by key, and the order in which they were last added to. In a file, a list of pairs with the oldest first.
#[derive(Clone, Debug)]
struct Aged<K, V> {
    known: BTreeMap<K, (u64, V)>,
    order: BTreeMap<u64, K>,
    next: u64,
}

impl<K, V> Default for Aged<K, V> {
    fn default() -> Aged<K, V> {
        Aged {
            known: BTreeMap::new(),
            order: BTreeMap::new(),
            next: 0,
        }
    }
}

/// The numbers behind the order are no part of the value.
impl<K: Ord, V: PartialEq> PartialEq for Aged<K, V> {
    fn eq(&self, other: &Aged<K, V>) -> bool {
        self.by_age().eq(other.by_age())
    }
}

impl<K: Ord, V> Aged<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.known.get(key).map(|(_, value)| value)
    }

    /// Oldest first.
    fn by_age(&self) -> impl Iterator<Item = (&K, &V)> {
        self.order.values().filter_map(|key| Some((key, self.get(key)?)))
    }

    /// Forgets the oldest until there are `most`.
    fn shorten(&mut self, most: usize) {
        while self.known.len() > most
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.known.remove(&oldest);
        }
    }
}

impl<K: Ord + Clone, V: Default> Aged<K, V> {
    /// The value of a key, which is now the newest of at most `most`.
    fn newest(&mut self, key: &K, most: usize) -> &mut V {
        if let Some((number, _)) = self.known.get(key) {
            self.order.remove(number);
        } else {
            self.shorten(most.max(1) - 1);
        }
        self.next += 1;
        self.order.insert(self.next, key.clone());
        let (number, value) = self.known.entry(key.clone()).or_default();
        *number = self.next;
        value
    }
}

impl<K: Ord + Serialize, V: Serialize> Serialize for Aged<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.by_age())
    }
}

impl<'de, K, V> Deserialize<'de> for Aged<K, V>
where
    K: Ord + Clone + Deserialize<'de>,
    V: Default + Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Aged<K, V>, D::Error> {
        let mut aged = Aged::default();
        let pairs: Vec<(K, V)> = Deserialize::deserialize(deserializer)?;
        let num = pairs.len();
        for (key, value) in pairs {
            *aged.newest(&key, usize::MAX) = value;
        }
        match aged.known.len() == num {
            true => Ok(aged),
            false => Err(D::Error::custom("a key stands in the list twice")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        assert!(
            found.is_some_and(|found| (found - expected).abs() < 1e-9),
            "{found:?} {expected}"
        );
    }

    #[test]
    fn a_prediction_comes_from_the_most_similar_jobs() {
        let mut times = RunTimes::new(Keep::all(10));
        assert_eq!(times.predict(&"ann", 1), None);
        times.learn(&"ann", 1, 10.0);
        times.learn(&"ann", 1, 40.0);
        times.learn(&"ann", 2, 100.0);
        times.learn(&"bob", 4, 5.0);
        near(times.predict(&"ann", 1), 40.0); // A quarter of 50 GPU s is beyond the first ten.
        near(times.predict(&"ann", 8), 100.0); // The same user: 10, 40 and 2 x 100; a quarter is 62.5.
        near(times.predict(&"cem", 2), 100.0); // The same gang.
        near(times.predict(&"cem", 8), 40.0); // Anyone: 4 x 5 more; a quarter is 67.5, and 20 + 10 + 40 reach it.
    }

    #[test]
    fn jobs_that_do_nothing_hide_no_long_one_and_no_limit() {
        let mut times = RunTimes::new(Keep::all(10));
        times.learn(&"eve", 8, 86_400.0);
        for _ in 0..9 {
            times.learn(&"eve", 8, 0.2);
        }
        near(times.predict(&"eve", 8), 86_400.0);
        // The tenth is all that is known of eve.
        times.learn(&"eve", 8, 0.2);
        near(times.predict(&"eve", 8), 0.2);
        near(Some(believed_s(0.2, 172_800.0)), 1728.0);
        near(Some(believed_s(2000.0, 172_800.0)), 2000.0);
    }

    #[test]
    fn only_the_last_few_count() {
        let mut times = RunTimes::new(Keep::all(2));
        for run_time_s in [1.0, 4.0, 9.0] {
            times.learn(&"ann", 1, run_time_s);
        }
        near(times.predict(&"ann", 1), 4.0); // A quarter of 13 s.
        near(times.predict(&"bob", 7), 4.0);
    }

    #[test]
    fn who_learned_nothing_for_longest_is_forgotten_first() {
        let keep = Keep {
            num_last: 3,
            num_users: 2,
            num_gangs: 2,
        };
        let mut times = RunTimes::new(keep);
        times.learn(&"ann", 1, 10.0);
        times.learn(&"bob", 1, 20.0);
        times.learn(&"ann", 1, 10.0);
        times.learn(&"cem", 2, 30.0); // In the place of bob.
        assert_eq!(times.num_users(), 2);
        near(times.predict(&"ann", 1), 10.0);
        near(times.predict(&"bob", 1), 10.0); // As anyone with one GPU: 10, 20, 10; a quarter is 10.
        times.learn(&"ann", 2, 90.0);
        times.learn(&"ann", 4, 90.0); // In the place of ann's single GPUs, and of all users'.
        near(times.predict(&"ann", 1), 90.0); // The last three of ann: 10, 2 x 90 and 4 x 90.
        near(times.predict(&"dan", 1), 90.0); // The last three of anyone: 2 x 30, 2 x 90 and 4 x 90; a quarter is 150.
        // However many come, no more is kept: 2 users with 3 groups each, 2 gangs, all.
        for number in 0..1000_u32 {
            let name = ["eve", "fay", "gus"][number as usize % 3];
            times.learn(&name, number, 1.0);
        }
        assert!(times.num_kept() <= (2 * 3 + 2 + 1) * 3 && times.num_users() == 2);
    }

    #[test]
    fn what_was_written_is_read_with_the_same_bits_and_forgets_in_the_same_order() {
        let keep = Keep {
            num_last: 4,
            num_users: 3,
            num_gangs: 3,
        };
        let name = |number: u32| format!("user {}", number * 7 % 5);
        let mut times = RunTimes::new(keep);
        for number in 0..50 {
            times.learn(
                &name(number),
                number % 4,
                1.0 + f64::from(number * number % 97) / 3.0,
            );
        }
        let text = serde_json::to_string(&times).unwrap();
        let mut read = serde_json::from_str::<RunTimes<String>>(&text)
            .unwrap()
            .kept(keep);
        assert_eq!(read, times);
        for number in 0..50 {
            let asked = (&name(number), number % 7);
            let bits = |times: &RunTimes<String>| times.predict(asked.0, asked.1).map(f64::to_bits);
            assert_eq!(bits(&times), bits(&read), "{number}");
            times.learn(asked.0, asked.1, 3.0);
            read.learn(asked.0, asked.1, 3.0);
        }
        // Fewer are kept where the settings say so.
        let fewer = Keep {
            num_last: 1,
            num_users: 1,
            num_gangs: 1,
        };
        assert_eq!(times.kept(fewer).num_kept(), 4);
    }

    #[test]
    fn files_that_cannot_be_are_refused() {
        let read =
            |text: &str| serde_json::from_str::<RunTimes<String>>(text).map_err(|error| error.to_string());
        read(r#"{"users":[],"gangs":[[1,[[0.5,1]]]],"all":[[0.5,1]]}"#).unwrap();
        let twice = read(r#"{"users":[],"gangs":[[1,[[0.5,1]]],[1,[[0.5,1]]]],"all":[]}"#).unwrap_err();
        assert!(twice.contains("twice"), "{twice}");
        let far = read(r#"{"users":[],"gangs":[],"all":[[700.0,1]]}"#).unwrap_err();
        assert!(far.contains("700 is no logarithm"), "{far}");
    }
}
