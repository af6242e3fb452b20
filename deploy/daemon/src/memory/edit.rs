//! What a memory is otherwise than one before: what the log has of it, round after round.
//!
//! A job that runs was seen in every look. So the time at which it was last seen is no news, and is not written down.

use pleach_scheduler::ExternalId;
use serde::{Deserialize, Serialize};

use super::{Memory, Past, Run};

/// The jobs of which something else is remembered than before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MemoryEdit {
    /// Of these nothing is remembered any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<ExternalId>,
    /// Of these this is remembered now.
    #[serde(skip_serializing_if = "Memory::is_empty")]
    other: Memory,
}

impl MemoryEdit {
    /// Whether nothing is otherwise.
    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.other.is_empty()
    }

    /// From `before` to `after`, which belong to looks at these Unix times, s.
    pub(crate) fn between(before: &Memory, after: &Memory, times_s: (i64, i64)) -> MemoryEdit {
        let is_gone = |job: &&ExternalId| !after.jobs.contains_key(job);
        let is_other = |(job, past): &(&ExternalId, &Past)| match before.jobs.get(job) {
            Some(was) => !past.goes_on_from(was, times_s),
            None => true,
        };
        let other = after.jobs.iter().filter(is_other);
        MemoryEdit {
            gone: before.jobs.keys().filter(is_gone).copied().collect(),
            other: Memory {
                jobs: other.map(|(job, past)| (*job, past.clone())).collect(),
            },
        }
    }

    /// Makes what was remembered before what is remembered after.
    pub(crate) fn apply(self, memory: &mut Memory, times_s: (i64, i64)) {
        for past in memory.jobs.values_mut() {
            past.run = past.run.map(|run| run.seen_on(times_s));
        }
        for job in self.gone {
            memory.jobs.remove(&job);
        }
        memory.jobs.extend(self.other.jobs);
    }
}

impl Run {
    /// The same run where it was seen in both looks.
    fn seen_on(self, (before_s, now_s): (i64, i64)) -> Run {
        let is_seen = self.seen_s == before_s.max(self.start_s);
        Run {
            seen_s: if is_seen {
                now_s.max(self.start_s)
            } else {
                self.seen_s
            },
            ..self
        }
    }
}

impl Past {
    /// Whether this is what was remembered before, but for the look.
    fn goes_on_from(&self, was: &Past, times_s: (i64, i64)) -> bool {
        self.run == was.run.map(|run| run.seen_on(times_s))
            && self.received == was.received
            && self.first_start_us == was.first_start_us
            && self.gpus == was.gpus
            && self.stop == was.stop
            && self.stays_until_s == was.stays_until_s
            && self.refusals == was.refusals
    }
}
