//! Max-min fairness: the least share of all groups is as large as it can be, then the least of those that can still gain,
//! and so on (water-filling).
//!
//! The share of a group is the work per second of one of its jobs over a norm of the policy. At each level the shares of all
//! groups that are not full are raised at their rates until one of them can be raised no further without lowering another.
//! Small programmes find that group: they raise the groups that can be raised a little, and those that none of them raises are
//! full. (Gavel asks an integer programme; the question has a linear answer, since if each of two groups can be raised alone,
//! both can be raised half as far together.) What is left after the last level goes where it makes most progress.
//!
//! # Source
//! Gavel (OSDI'20), sections 4.1 and 4.3.

use super::config::Common;
use super::snapshot::Snapshot;
use super::time_program::{Group, Shares, TimeProgram, group_by};
use crate::shared::linear_program::{Column, Limits, Unsolved};

/// How far a group must be raised to count as one that can be, as a part of its share.
const RAISED: f64 = 1e-4;
/// What a level may fall short of its optimum so that the next programme is not empty by rounding, as a part of it.
pub(super) const SLACK: f64 = 1e-7;

/// What the groups are due.
#[derive(Clone, Debug)]
pub struct Due<'a> {
    /// Work per second at which a group's share is 1. `[group]`
    pub norms: &'a [f64],
    /// Most levels of the water; at least 1.
    pub levels_max: usize,
    /// Most pairs of groups that are looked at.
    pub pairs_max: usize,
    /// How much work each programme may be.
    pub limits: Limits,
}

/// The shares of a max-min optimum.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The part of the time that each group spends on each type.
    pub shares: Shares,
    /// The least share.
    pub least: f64,
    /// The share that each group is sure of. `[group]`
    pub levels: Vec<f64>,
}

/// Fills. `rates` says how fast the share of each group rises while those marked are full; 0 = not yet. When all rates are
/// 0 the water stops.
///
/// # Errors
/// Why there is no answer.
pub fn fill(
    snapshot: &Snapshot,
    groups: &[Group],
    due: &Due<'_>,
    rates: impl Fn(&[bool]) -> Vec<f64>,
) -> Result<Filled, Unsolved> {
    let base = TimeProgram::new(snapshot, groups, due.pairs_max);
    let num = groups.len();
    let can_run = |group: usize| !base.throughput(group).is_empty() && due.norms[group] > 0.0;
    let mut is_full: Vec<bool> = (0..num).map(|group| !can_run(group)).collect();
    let mut levels = vec![0.0_f64; num];
    let mut least = None;
    for _ in 0..due.levels_max {
        let rates = rates(&is_full);
        let rising: Vec<usize> = (0..num)
            .filter(|group| !is_full[*group] && rates[*group] > 0.0)
            .collect();
        if rising.is_empty() {
            break;
        }
        let rise = raise(&base, due, &levels, &rates, &rising)?;
        least.get_or_insert(rise);
        for group in &rising {
            levels[*group] += rates[*group] * rise;
        }
        if due.levels_max == 1 {
            break;
        }
        let mut stuck = rising;
        while !stuck.is_empty() {
            let raised = raised_of(&base, due, &levels, &stuck)?;
            let num_stuck = stuck.len();
            stuck.retain(|group| !raised.contains(group));
            if stuck.len() == num_stuck {
                break;
            }
        }
        // Rounding may raise every group a little for ever: then the shares are as high as they get.
        if stuck.is_empty() {
            break;
        }
        for group in stuck {
            is_full[group] = true;
        }
    }
    let mut last = held(&base, due, &levels);
    for (number, group) in groups.iter().enumerate() {
        let best = snapshot.kinds[group.kind].speed_max();
        if best > 0.0 {
            last.add_objective(number, group.jobs.len() as f64 / best);
        }
    }
    let (_, shares) = last.solve(due.limits)?;
    Ok(Filled {
        shares,
        least: least.unwrap_or(0.0),
        levels,
    })
}

/// The programme in which every group has at least its level.
fn held<'a>(base: &TimeProgram<'a>, due: &Due<'_>, levels: &[f64]) -> TimeProgram<'a> {
    let mut time = base.clone();
    for (group, level) in levels.iter().enumerate().filter(|(_, level)| **level > 0.0) {
        let scale = due.norms[group] * level;
        let terms = share_terms(base, group, scale);
        time.program.at_least(terms, 1.0 - SLACK);
    }
    time
}

/// The throughput of a group over `scale`, as terms.
fn share_terms(base: &TimeProgram<'_>, group: usize, scale: f64) -> Vec<(Column, f64)> {
    let terms = base.throughput(group).iter();
    terms.map(|(column, speed)| (*column, speed / scale)).collect()
}

/// How far the shares of the rising groups can all be raised, at their rates.
fn raise(
    base: &TimeProgram<'_>,
    due: &Due<'_>,
    levels: &[f64],
    rates: &[f64],
    rising: &[usize],
) -> Result<f64, Unsolved> {
    let mut time = base.clone();
    // In units in which a group that had all GPUs' best to itself would rise by 1, at the slowest.
    let speed_max = |group: &usize| {
        base.throughput(*group)
            .iter()
            .map(|term| term.1)
            .fold(0.0, f64::max)
    };
    let heights = rising
        .iter()
        .map(|group| speed_max(group) / due.norms[*group] / rates[*group]);
    let unit = heights.fold(f64::INFINITY, f64::min);
    let height = time.program.column(1.0, 0.0, f64::INFINITY);
    for (group, level) in levels.iter().enumerate() {
        let is_rising = rising.contains(&group);
        if !is_rising && *level <= 0.0 {
            continue;
        }
        let scale = if is_rising {
            due.norms[group] * rates[group] * unit
        } else {
            due.norms[group] * level
        };
        let mut terms = share_terms(base, group, scale);
        let known = due.norms[group] * level / scale * (1.0 - SLACK);
        if is_rising {
            terms.push((height, -1.0));
        }
        time.program.at_least(terms, known);
    }
    let (answer, _) = time.solve(due.limits)?;
    Ok((answer.value(height) * unit).max(0.0))
}

/// Those of the stuck groups that can be raised while all keep their levels.
fn raised_of(
    base: &TimeProgram<'_>,
    due: &Due<'_>,
    levels: &[f64],
    stuck: &[usize],
) -> Result<Vec<usize>, Unsolved> {
    let mut time = held(base, due, levels);
    let extras: Vec<Column> = stuck
        .iter()
        .map(|group| {
            let extra = time.program.column(1.0, 0.0, 10.0 * RAISED);
            let mut terms = share_terms(
                base,
                *group,
                due.norms[*group] * levels[*group].max(f64::MIN_POSITIVE),
            );
            terms.push((extra, -1.0));
            // With the slack of the levels: without it a level that is too high by rounding leaves no room for any group.
            time.program.at_least(terms, 1.0 - SLACK);
            extra
        })
        .collect();
    match time.solve(due.limits) {
        Ok((answer, _)) => {
            let extras = stuck.iter().zip(extras);
            Ok(extras
                .filter(|(_, extra)| answer.value(*extra) > RAISED)
                .map(|(group, _)| *group)
                .collect())
        }
        // No room at all, but for rounding.
        Err(Unsolved::Infeasible) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// How much work a programme may be under these settings.
pub(super) fn limits(common: &Common) -> Limits {
    Limits {
        terms_max: common.terms_max,
        ..Limits::default()
    }
}

/// Groups jobs by kind and norm, and fills the water to one level.
pub(super) fn by_norm(
    snapshot: &Snapshot,
    norms: &[f64],
    common: &Common,
) -> Result<(Vec<Group>, Filled), Unsolved> {
    let is_exact = norms.len() <= common.exact_jobs_max;
    let key = |norm: f64| {
        if is_exact {
            norm
        } else {
            // The upper bits of a float: the power of two and 32 steps within it, rounded up.
            f64::from_bits(((norm.to_bits() >> 47) + 1) << 47)
        }
    };
    let groups = group_by(snapshot, |job| key(norms[job]).to_bits());
    let of_groups: Vec<f64> = groups.iter().map(|group| key(norms[group.jobs[0]])).collect();
    let due = Due {
        norms: &of_groups,
        levels_max: common.levels_max,
        pairs_max: common.pairs_max,
        limits: limits(common),
    };
    let filled = fill(snapshot, &groups, &due, |is_full| {
        is_full
            .iter()
            .map(|is_full| if *is_full { 0.0 } else { 1.0 })
            .collect()
    })?;
    Ok((groups, filled))
}
