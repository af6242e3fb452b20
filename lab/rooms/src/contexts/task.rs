//! Networks as chains of stages, and the tasks that run them period by period.

use std::sync::Arc;

use pleach_scheduler::Problem;

use super::FS_PER_US;

/// Longest period and offset, s.
const PERIOD_S_MAX: f64 = 3_600.0;
/// Longest time of a network alone, µs.
const TIME_US_MAX: u64 = 3_600_000_000;

/// A part of a network that runs without preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Name, for tables.
    pub name: String,
    /// Its share of the network's time, in thousandths.
    pub permille: u32,
    /// Goes before other stages.
    pub is_high: bool,
}

/// A network: its stages in order, and its time alone by SMs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    stages: Vec<Stage>,
    /// (SMs, µs), SMs ascending, times never rising.
    times_us: Vec<(u32, u64)>,
}

impl Network {
    /// A network of stages that takes so many µs alone on so many SMs. Times are made monotone: more SMs never take longer.
    ///
    /// # Errors
    /// No stage, a share of zero, shares that do not sum to 1,000; no time, a time out of range, SMs that do not ascend.
    pub fn new(stages: Vec<Stage>, times_us: &[(u32, u64)]) -> Result<Network, Problem> {
        let sum: u64 = stages.iter().map(|stage| u64::from(stage.permille)).sum();
        if sum != 1_000 {
            let hint = "Give each stage its share of the network's time.";
            return Err(Problem::new("stages: permille", sum, "a sum of 1000", hint));
        }
        if let Some(stage) = stages.iter().find(|stage| stage.permille == 0) {
            let key = format!("stage `{}`: permille", stage.name);
            return Err(Problem::new(
                key,
                0,
                "1 to 1000",
                "Leave out a stage without time.",
            ));
        }
        if times_us.is_empty() || times_us[0].0 == 0 || !times_us.is_sorted_by(|a, b| a.0 < b.0) {
            let hint = "Give the time at each number of SMs once.";
            let given = format!("{times_us:?}");
            return Err(Problem::new("times_us: SMs", given, "ascending, from 1", hint));
        }
        if let Some((sms, time)) = times_us.iter().find(|(_, us)| !(1..=TIME_US_MAX).contains(us)) {
            let key = format!("times_us[{sms} SMs]");
            let allowed = format!("1 to {TIME_US_MAX} µs");
            return Err(Problem::new(key, time, allowed, "Give microseconds."));
        }
        let mut least = u64::MAX;
        let monotone = times_us.iter().map(|(sms, time)| {
            least = least.min(*time);
            (*sms, least)
        });
        Ok(Network {
            stages,
            times_us: monotone.collect(),
        })
    }

    /// The stages in order.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Time of the whole network alone on so many SMs, fs: linear between two given times, the nearest one outside of them.
    pub(super) fn alone_fs(&self, sms: u32) -> u64 {
        let place = self.times_us.partition_point(|(given, _)| *given < sms);
        let at = |place: usize| {
            (
                u64::from(self.times_us[place].0),
                self.times_us[place].1 * FS_PER_US,
            )
        };
        match place {
            0 => at(0).1,
            _ if place == self.times_us.len() => at(place - 1).1,
            _ => {
                let ((from, slow), (to, fast)) = (at(place - 1), at(place));
                slow - (slow - fast) / (to - from) * (u64::from(sms) - from)
            }
        }
    }
}

/// Releases a frame each period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What a frame is.
    pub network: Arc<Network>,
    /// From one release to the next, and from a release to its deadline, µs; at least 1.
    pub period_us: u64,
    /// First release, µs.
    pub offset_us: u64,
}

impl Task {
    /// A task with a period and a first release in seconds, rounded to whole microseconds.
    ///
    /// # Errors
    /// A period that is not above zero or too long, an offset below zero.
    pub fn new(network: &Arc<Network>, period_s: f64, offset_s: f64) -> Result<Task, Problem> {
        let check = |key: &str, value: f64, low: f64| {
            if (low..=PERIOD_S_MAX).contains(&value) {
                return Ok((value * 1e6).round() as u64);
            }
            let allowed = format!("{low} to {PERIOD_S_MAX} s");
            let hint = "A camera of 30 frames a second has 0.033.";
            Err(Problem::new(key, value, allowed, hint))
        };
        Ok(Task {
            network: Arc::clone(network),
            period_us: check("period_s", period_s, 1e-6)?,
            offset_us: check("offset_s", offset_s, 0.0)?,
        })
    }
}
