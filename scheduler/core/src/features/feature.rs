//! One number that a policy may read: its unit and range, and how it becomes the input of a network or a tree.

use serde::Serialize;

use crate::actions::ActionKind;
use crate::portable_math::pow;

/// How a raw value becomes a network's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// raw / divisor
    Linear(f32),
    /// log10(1 + raw) / divisor; raw is not negative.
    Log(f32),
}

impl Scale {
    /// The scaled value.
    #[must_use]
    #[inline]
    pub fn apply(self, raw: f32) -> f32 {
        match self {
            Scale::Linear(divisor) => raw / divisor,
            Scale::Log(divisor) => log10_1p(raw) / divisor,
        }
    }

    /// The raw value of a scaled one, for showing thresholds in their unit.
    #[must_use]
    pub fn invert(self, scaled: f32) -> f64 {
        match self {
            Scale::Linear(divisor) => f64::from(scaled) * f64::from(divisor),
            Scale::Log(divisor) => pow(10.0, f64::from(scaled) * f64::from(divisor)) - 1.0,
        }
    }
}

/// log10(1 + x) for x >= 0 to about 2e-6, from the bits of the float and a polynomial.
///
/// Own arithmetic rather than the system's `log10f`, whose last bit differs between C libraries: the same seed must
/// give the same bytes on every machine.
///
/// # Source
/// log2 of the mantissa m through s = (m - 1) / (m + 1): ln m = 2 (s + s^3/3 + s^5/5 + s^7/7 + s^9/9), m in [0.7, 1.41].
#[must_use]
#[inline]
pub fn log10_1p(x: f32) -> f32 {
    let y = 1.0 + x;
    let bits = y.to_bits();
    let exponent = (bits >> 23) as i32 - 127;
    let mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000);
    // Both ways are worked out, so that many numbers can be scaled side by side.
    let large = mantissa > std::f32::consts::SQRT_2;
    let mantissa = if large { mantissa * 0.5 } else { mantissa };
    let exponent = exponent + i32::from(large);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let q = s * s;
    let ln = 2.0 * s * (1.0 + q * (1.0 / 3.0 + q * (0.2 + q * (1.0 / 7.0 + q * (1.0 / 9.0)))));
    exponent as f32 * std::f32::consts::LOG10_2 + ln * std::f32::consts::LOG10_E
}

/// What could change the number of a feature: what a reader of a counterfactual wants to know first.
///
/// # Source
/// The division is ours, *assumed*: a user chooses what is asked for and how long it is said to take, an operator sets quotas and
/// grants, and nothing else is anyone's choice. After the actionable and the immutable features of algorithmic recourse (Ustun,
/// Spangher and Liu, FAT*'19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// The user who submits the job: its size, and the length that is believed of it.
    User,
    /// The operator of the cluster: quotas, and what comes with a GPU.
    Operator,
    /// No person: it grows by itself.
    Time,
    /// No person: it has happened.
    History,
    /// No person: which GPUs are free, and which jobs hold the others.
    Cluster,
    /// No person: which other jobs wait.
    Queue,
    /// What the candidate is, or what belongs to all candidates: it cannot differ for this one alone.
    Fixed,
}

impl Control {
    /// For sentences: `the user`, `nobody, it is time that passes`.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Control::User => "the user's choice",
            Control::Operator => "the operator's choice",
            Control::Time => "not a choice: it comes with time",
            Control::History => "not a choice: it has happened",
            Control::Cluster => "not a choice: it hangs on the free GPUs",
            Control::Queue => "not a choice: it hangs on the other jobs that wait",
            Control::Fixed => "not a choice",
        }
    }
}

/// Whether a number is of one row, or of all rows of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Of one candidate.
    Row,
    /// Of what all candidates have around them.
    Context,
}

impl Group {
    /// As files and pages have it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Group::Row => "candidate",
            Group::Context => "global",
        }
    }
}

/// A kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowKind {
    /// Name, for texts.
    pub name: &'static str,
    /// What choosing such a row does, as a sentence without its capital and its full stop.
    pub does: &'static str,
    /// The kind of action that has to be wanted for such rows to be offered; none where they always are.
    pub action: Option<ActionKind>,
    /// Whether such a row is about a job; one that is not comes last of its tier.
    pub is_about_a_job: bool,
    /// Whether that job waits. What may befall a job, and with it what certificates say, is of jobs that wait.
    pub waits: bool,
}

impl RowKind {
    /// No kind yet, to fill tables from.
    pub(crate) const NONE: RowKind = RowKind {
        name: "",
        does: "",
        action: None,
        is_about_a_job: false,
        waits: false,
    };
}

/// A set of kinds of rows, by their places in [`FeatureSchema::kinds`](super::FeatureSchema::kinds); at most 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// These kinds.
    #[must_use]
    pub const fn of(kinds: &[usize]) -> Kinds {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at];
            at += 1;
        }
        Kinds(bits)
    }

    /// Whether a kind is among them.
    #[must_use]
    pub const fn has(self, kind: usize) -> bool {
        self.0 >> kind & 1 == 1
    }
}

/// What a feature is among rows of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// 1 among rows of one kind and 0 among all others.
    Flag(usize),
    /// Any number of its range among rows of these kinds and 0 among all others.
    Varies(Kinds),
}

/// How a feature of the second of two rows stands to that of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same.
    Equal,
    /// The same or more.
    Up,
    /// The same or less.
    Down,
    /// Nothing is known.
    Any,
}

/// What may befall a job that waits, or whatever else a row is about, for each of which a feature says how it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stimulus {
    /// It has waited longer, all else being equal.
    Waiting,
    /// Its estimate is shorter, all else being equal.
    Estimate,
    /// What a row would use, a replica or a machine, has less to do, all else being equal. Not of jobs.
    Relief,
}

/// One number that a policy may read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feature {
    /// Name, the same in trees, files and docs.
    pub name: &'static str,
    /// Unit of the raw value; empty for pure numbers.
    pub unit: &'static str,
    /// Least raw value; smaller ones are clamped.
    pub min: f32,
    /// Largest raw value; larger ones are clamped.
    pub max: f32,
    /// How the raw value is scaled.
    pub scale: Scale,
    /// What it says.
    pub doc: &'static str,
    /// Of one row or of all.
    pub group: Group,
    /// What it is among rows of each kind. Certificates rest on it.
    pub among: Among,
    /// How it moves under each [`Stimulus`]. Certificates rest on it: a wrong one makes them unsound.
    pub moves: [Relation; 3],
    /// What could change its number.
    pub control: Control,
    /// Whole numbers; so are flags.
    pub is_whole: bool,
}

impl Feature {
    /// All that defines it, as files have it: `candidate wait_s [s] 0 100000000 Log(6.0)`.
    #[must_use]
    pub fn line(&self) -> String {
        let Feature {
            name,
            unit,
            min,
            max,
            scale,
            group,
            ..
        } = self;
        format!("{} {name} [{unit}] {min} {max} {scale:?}", group.word())
    }

    /// Whether it only says of what kind a row is.
    #[must_use]
    pub fn is_kind(&self) -> bool {
        matches!(self.among, Among::Flag(_))
    }

    /// Whether it is 0 or 1.
    #[must_use]
    pub fn is_flag(&self) -> bool {
        self.is_whole && (self.min, self.max) == (0.0, 1.0)
    }

    /// Least and largest scaled value among rows of a kind.
    #[must_use]
    pub fn range_among(&self, kind: usize) -> (f32, f32) {
        match self.among {
            Among::Flag(own) if own == kind => (1.0, 1.0),
            Among::Varies(kinds) if kinds.has(kind) => (self.encode(self.min), self.encode(self.max)),
            Among::Flag(_) | Among::Varies(_) => (0.0, 0.0),
        }
    }

    /// How it stands in the second of two rows of one job, which a stimulus tells apart.
    #[must_use]
    pub const fn relation(&self, stimulus: Stimulus) -> Relation {
        self.moves[stimulus as usize]
    }

    /// Clamps and scales a raw value. NaN becomes the least value.
    #[must_use]
    #[inline]
    pub fn encode(&self, raw: f32) -> f32 {
        self.scale.apply(self.clamp(raw))
    }

    /// The raw value within the range. NaN becomes the least value.
    #[must_use]
    #[inline]
    pub(crate) fn clamp(&self, raw: f32) -> f32 {
        // Comparisons that say what becomes of NaN are one instruction each; `f32::max` is several.
        let raw = if raw > self.min { raw } else { self.min };
        if raw < self.max { raw } else { self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log10_1p_is_close_to_the_real_one_over_the_whole_range() {
        for power in -60..=120 {
            let x = 10_f64.powf(f64::from(power) / 10.0);
            let expected = (1.0 + f64::from(x as f32)).log10();
            assert!(
                (f64::from(log10_1p(x as f32)) - expected).abs() < 3e-6 * expected.max(1.0),
                "at {x}"
            );
        }
        assert_eq!(log10_1p(0.0), 0.0);
    }
}
