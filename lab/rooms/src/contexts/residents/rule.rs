//! How the two residents share the GPU, by name.

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::Info;

use pleach_serving::settings::{Settings, rule};

/// Longest block of an elastic kernel, µs (Miriam: a shard in flight ends within about 0.1 ms).
const BLOCK_US: f64 = 100.0;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// One network after another; where both wait, they take turns.
    Sequential,
    /// Both at once; the critical one's blocks go first, what runs stays.
    Streams,
    /// Kernels in pairs: the next two begin when both have ended.
    Barriers,
    /// Best effort in blocks of at most so many ns, and beside a critical kernel only so many that it keeps its places, its
    /// issue and its bandwidth.
    Miriam {
        /// Longest block, ns.
        block_ns_max: f64,
    },
}

/// Of all rules here.
const FAMILY: &str = "residents";
/// The rules, and what each knows.
#[rustfmt::skip]
pub const POLICIES: &[Info] = &[
    rule(FAMILY, "miriam", "blocks, issue and bandwidth of kernels",
        "best effort in short blocks, as many as the critical kernel leaves room for", "Miriam, SenSys'23"),
    rule(FAMILY, "sequential", "nothing", "one network after another, in turn", "plain"),
    rule(FAMILY, "streams", "which is critical", "both at once, critical blocks first", "CUDA's stream priorities"),
    rule(FAMILY, "barriers", "ends of kernels", "kernels in pairs that wait for each other", "baseline of Miriam, SenSys'23"),
];

/// The rule of a name; `miriam` has `block-us`, its longest block in µs.
///
/// # Errors
/// A name or a setting that is not there, or a value out of range.
pub fn by_name(text: &str) -> Result<Rule, Problem> {
    let mut settings = Settings::of("rule", text, POLICIES)?;
    let rule = match settings.name {
        "sequential" => Rule::Sequential,
        "streams" => Rule::Streams,
        "barriers" => Rule::Barriers,
        _ => Rule::Miriam {
            block_ns_max: 1e3 * settings.number("block-us", 1.0..=1e6)?.unwrap_or(BLOCK_US),
        },
    };
    settings.end()?;
    Ok(rule)
}
