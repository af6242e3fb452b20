//! Identifiers and simulated time: newtypes, so that a job can never be taken for a node.

use serde::{Deserialize, Serialize};

pub use crate::external_id::ExternalId;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// Row of this id in the table that it names.
            #[must_use]
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A job: row of the cluster's job table, in order of submission; [`ExternalId`] is its name outside.
    JobId(u32)
}
id! {
    /// A node: row of the cluster's node table.
    NodeId(u32)
}
id! {
    /// A rack: nodes that share the fast network.
    RackId(u32)
}
id! {
    /// A tenant (virtual cluster, Slurm account, Kubernetes namespace).
    TenantId(u16)
}
id! {
    /// A GPU type: index into [`crate::cluster_spec::ClusterSpec::gpu_types`].
    GpuTypeId(u8)
}
id! {
    /// A model class: jobs that run at the same relative speeds.
    ClassId(u16)
}

/// A point in time or a span, in integer microseconds, so that sums are exact and order never depends on rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// The origin of the clock.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const MAX: Time = Time(i64::MAX);

    /// Rounds to the nearest microsecond; values beyond the range (292,000 years) saturate, NaN becomes zero.
    #[must_use]
    #[inline]
    pub fn from_secs_f64(seconds: f64) -> Time {
        // `round` would be a call into a library where the processor is not known to do it. What is cut off is exact.
        let us = seconds * 1e6;
        let whole = us as i64;
        let rest = us - whole as f64;
        Time(whole.saturating_add(i64::from(rest >= 0.5) - i64::from(rest <= -0.5)))
    }

    /// The next whole multiple of a span, later than this time. The span is above zero.
    #[must_use]
    pub fn next_multiple(self, span: Time) -> Time {
        Time((self.0.div_euclid(span.0) + 1).saturating_mul(span.0))
    }

    /// The span since another point of the clock; negative if that is later. Points of the clock are not negative, so this
    /// is one instruction where the difference of any two spans must mind the ends of the range.
    #[must_use]
    #[inline]
    pub fn since(self, other: Time) -> Time {
        debug_assert!(
            self.0 >= 0 && other.0 >= 0,
            "{self:?} or {other:?} is no point of the clock"
        );
        Time(self.0 - other.0)
    }

    /// Seconds as a float, for rates and reports.
    #[must_use]
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl std::ops::Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl std::ops::Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_exact_in_microseconds() {
        assert_eq!(Time::from_secs_f64(1.5), Time(1_500_000));
        assert_eq!(
            Time::from_secs_f64(0.1) + Time::from_secs_f64(0.2),
            Time::from_secs_f64(0.3)
        );
        assert_eq!((Time(3) - Time(5)).0, -2);
        for us in [
            0.0,
            0.5,
            -0.5,
            0.499_999_999_999_999_94,
            2.5,
            -2.5,
            1e15,
            4_503_599_627_370_495.5,
            9e18,
            1e19,
            -1e19,
            1e300,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ] {
            let seconds = us / 1e6;
            assert_eq!(
                Time::from_secs_f64(seconds).0,
                (seconds * 1e6).round() as i64,
                "{us}"
            );
        }
        assert_eq!(Time(59).next_multiple(Time(60)), Time(60));
        assert_eq!(Time(60).next_multiple(Time(60)), Time(120));
    }
}
