//! What outcomes are worth: a row a part with its interval, ratios in pairs, which of the kept candidates of a search is taken, and
//! whether it is accepted.

use pleach_distill::search::Outcome;
use pleach_scheduler::portable_math::exp;
use serde::Serialize;

use crate::error::Error;
use crate::evaluate::stats::Ratio;

/// Lists of each part on which one of the candidates that a search kept is taken. *Assumed*.
pub(crate) const CHOICE_LISTS: usize = 24;
/// What a smaller candidate may be behind the best in the objective. *Assumed*.
const TOLERANCE: f64 = 0.002;
/// What a part may lose against its best heuristic, the lower end of its interval.
const LOSS_MAX: f64 = 1.01;

/// What a policy is worth on a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartRow {
    /// Name of the part.
    pub part: String,
    /// The heuristic that it is compared with.
    pub best_heuristic: String,
    /// Average JCT over the heuristic's, with its paired interval.
    pub jct: Ratio,
    /// Geometric mean of the 99th percentile of JCT over the heuristic's.
    pub p99: f64,
}

/// Ratio of average JCT of one policy to another over the same lists, with its paired interval.
#[must_use]
pub fn paired(own: &[Outcome], other: &[Outcome]) -> Option<Ratio> {
    let pairs: Vec<(f64, f64)> = own
        .iter()
        .zip(other)
        .map(|(own, other)| (exp(own.ln_jct - other.ln_jct), 1.0))
        .collect();
    Ratio::of_pairs(&pairs)
}

/// Tables as Markdown: a line for each policy with its size, a column for each part; average JCT over that of the part's best
/// heuristic, its interval, and the 99th percentile.
#[must_use]
pub fn markdown(parts: &[PartRow], policies: &[(String, Vec<PartRow>)]) -> String {
    let mut text = String::from("| policy |");
    for row in parts {
        text.push_str(&format!(" {} (`{}`) |", row.part, row.best_heuristic));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(parts.len()));
    text.push('\n');
    for (name, rows) in policies {
        text.push_str(&format!("| {name} |"));
        for row in rows {
            text.push_str(&format!(" {}, p99 {:.2} |", in_words(&row.jct), row.p99));
        }
        text.push('\n');
    }
    text
}

/// `0.823 [0.802, 0.843]`.
#[must_use]
pub fn in_words(ratio: &Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{:.3} [{low:.3}, {high:.3}]", ratio.mean),
        _ => format!("{:.3}", ratio.mean),
    }
}

/// The place of the first candidate that is nearly the best; they come smallest first.
pub(crate) fn nearly_best(objectives: &[f64]) -> Result<usize, Error> {
    let best = objectives.iter().copied().fold(f64::INFINITY, f64::min);
    let place = objectives.iter().position(|own| *own <= best + TOLERANCE);
    place.ok_or_else(|| Error::Failed("the search kept no candidate".into()))
}

/// The result of a search beside the start that it must beat, on lists that nothing was chosen by.
#[derive(Clone, Debug)]
pub struct Acceptance {
    /// What the result is worth, part by part.
    pub rows: Vec<PartRow>,
    /// The same of the start.
    pub of_start: Vec<PartRow>,
    /// Average JCT of the result over that of the start.
    pub over_start: Option<Ratio>,
    /// Whether the result takes the place of the start.
    pub accepted: bool,
    /// Why.
    pub verdict: String,
}

impl Acceptance {
    /// Of the rows of both.
    pub(super) fn of(rows: Vec<PartRow>, of_start: Vec<PartRow>, over_start: Option<Ratio>) -> Acceptance {
        let (accepted, verdict) = verdict(over_start, &rows, &of_start);
        Acceptance {
            rows,
            of_start,
            over_start,
            accepted,
            verdict,
        }
    }
}

/// Accepted is what loses on no part against the best heuristic by more than luck and one percent, and beats the best start by its
/// paired interval or replaces one that does lose on a part.
pub(crate) fn verdict(
    found_over_start: Option<Ratio>,
    rows: &[PartRow],
    of_start: &[PartRow],
) -> (bool, String) {
    let Some(ratio) = found_over_start else {
        return (false, "there is no interval".into());
    };
    let words = in_words(&ratio);
    if let Some(loss) = loss(rows) {
        return (false, format!("refused: {loss}"));
    }
    if let Some(loss) = loss(of_start) {
        let words =
            format!("accepted: it loses nowhere, and of the best start {loss}; {words} of its average JCT");
        return (true, words);
    }
    if ratio.high.is_some_and(|high| high < 1.0) {
        return (true, format!("accepted: {words} of the best start's average JCT"));
    }
    let why = if ratio.low.is_some_and(|low| low > 1.0) {
        "which is more"
    } else {
        "which may be luck"
    };
    (
        false,
        format!("refused: {words} of the best start's average JCT, {why}"),
    )
}

/// The first part that is lost, in words.
fn loss(rows: &[PartRow]) -> Option<String> {
    let losing = |row: &&PartRow| row.jct.low.unwrap_or(row.jct.mean) > LOSS_MAX;
    let row = rows.iter().find(losing)?;
    let part = in_words(&row.jct);
    Some(format!("{} is at {part} of {}", row.part, row.best_heuristic))
}
