//! Dispatchers on the same lists, with paired intervals.

use pleach_serving::functions::{GPU_SLICES, Outcome, Platform, Timeline};
use serde::Serialize;

use super::{FunctionsConfig, lists};
use crate::error::Error;
use crate::evaluate::stats::mean;
use crate::evaluate::table::Table;
use crate::serving::gain::{Gain, cell};

/// What one dispatcher came to, mean over lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DispatcherRow {
    /// Name or file.
    pub policy: String,
    /// Served within their target, %.
    pub hits_pct: f64,
    /// By how many points that is above the strongest's, on the same lists; none for the strongest.
    pub gain_points: Option<f64>,
    /// Its 95 % interval; none with fewer than two lists.
    pub gain_interval: Option<(f64, f64)>,
    /// Not served, %.
    pub dropped_pct: f64,
    /// Cost of 1,000 requests, $.
    pub usd_per_1000: f64,
    /// Cost of 1,000 hits, $.
    pub usd_per_1000_hits: f64,
    /// Part of the cost that cold starts are, %.
    pub cold_pct: f64,
    /// Median latency of served requests, ms.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Requests of a batch.
    pub batch: f64,
    /// Part of the configurations asked for that no node had room for, %.
    pub no_room_pct: f64,
    /// Hits of each list, %.
    pub by_list: Vec<f64>,
    /// What was held and waited on the first list, for plots.
    #[serde(skip)]
    pub timeline: Timeline,
    /// Of a recorded list: how often and how long containers were made and kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmth: Option<Warmth>,
}

/// What containers came to, mean over parts of a recorded list.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Warmth {
    /// Calls for which a container had to be made, %.
    pub cold_calls_pct: f64,
    /// GPU s paid for a call, cold starts among them.
    pub gpu_s: f64,
    /// Core s.
    pub core_s: f64,
    /// Time that containers were warm and idle for a call, s.
    pub idle_s: f64,
}

impl Warmth {
    fn of(outcomes: &[Outcome]) -> Warmth {
        let over = |figure: &dyn Fn(&Outcome) -> f64| {
            mean(
                &outcomes
                    .iter()
                    .map(|outcome| figure(outcome) / outcome.num_requests.max(1) as f64)
                    .collect::<Vec<_>>(),
            )
        };
        Warmth {
            cold_calls_pct: over(&|outcome| 100.0 * outcome.cold_starts as f64),
            gpu_s: over(&|outcome| 1e-6 * outcome.slice_us / f64::from(GPU_SLICES)),
            core_s: over(&|outcome| 1e-6 * outcome.core_us),
            idle_s: over(&|outcome| 1e-6 * outcome.idle_us as f64),
        }
    }
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DispatcherComparison {
    /// Lists.
    pub num_lists: usize,
    /// Place of the strongest: most hits, then the cheapest.
    pub strongest: usize,
    /// In the order given.
    pub policies: Vec<DispatcherRow>,
    /// Of a recorded list: what was left out, mended or assumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Comparisons of the same dispatchers at several loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Loads {
    /// Times the load, in the order given.
    pub at: Vec<(f64, DispatcherComparison)>,
    pub(super) platform: Platform,
}

/// Cores and slices of all nodes.
pub(super) fn cores_and_slices(platform: &Platform) -> (f64, f64) {
    let all = |of_node: u16| f64::from(of_node) * f64::from(platform.nodes);
    (all(platform.cores), all(platform.slices))
}

impl Loads {
    /// Hits of each dispatcher at each load, and cost of 1,000 hits, where there are several.
    #[must_use]
    pub fn table(&self) -> Option<Table> {
        let (_, first) = self.at.first().filter(|_| self.at.len() > 1)?;
        let mut header = vec!["dispatcher".to_string()];
        header.extend(self.at.iter().map(|(load, _)| format!("x{load}, hits %")));
        header.extend(self.at.iter().map(|(load, _)| format!("x{load}, $")));
        let rows = (0..first.policies.len()).map(|place| {
            let all = || self.at.iter().map(|(_, at)| &at.policies[place]);
            let hits = all().map(|row| format!("{:.2}", row.hits_pct));
            let usd = all().map(|row| format!("{:.4}", row.usd_per_1000_hits));
            [first.policies[place].policy.clone()]
                .into_iter()
                .chain(hits)
                .chain(usd)
                .collect()
        });
        Some(Table {
            header,
            rows: rows.collect(),
            notes: vec!["$: of 1,000 hits".into()],
        })
    }
}

/// Plays all dispatchers on all lists, at each of these times the load.
///
/// # Errors
/// A dispatcher or a setting that cannot be used.
pub fn compare_dispatchers(
    config: &FunctionsConfig,
    policies: &[String],
    loads: &[f64],
    seed: u64,
) -> Result<Loads, Error> {
    let at = |load: &f64| Ok((*load, compare_at(config, policies, *load, seed)?));
    Ok(Loads {
        at: loads.iter().map(at).collect::<Result<_, Error>>()?,
        platform: config.platform()?,
    })
}

fn compare_at(
    config: &FunctionsConfig,
    policies: &[String],
    load: f64,
    seed: u64,
) -> Result<DispatcherComparison, Error> {
    let setup = config.setup(load)?;
    for policy in policies {
        setup.dispatcher(policy)?;
    }
    let outcomes = setup.play_all(policies, &lists(seed, "compare", config.lists.into()))?;
    let mut found = DispatcherComparison::of(policies, &outcomes);
    if let Some(recorded) = &setup.recorded {
        found.notes.clone_from(&recorded.notes);
        for (row, outcomes) in found.policies.iter_mut().zip(&outcomes) {
            row.warmth = Some(Warmth::of(outcomes));
        }
    }
    Ok(found)
}

impl DispatcherComparison {
    /// Of outcomes `[policy][list]`.
    pub(super) fn of(policies: &[String], outcomes: &[Vec<Outcome>]) -> DispatcherComparison {
        let mut rows: Vec<DispatcherRow> = policies
            .iter()
            .zip(outcomes)
            .map(|(name, outcomes)| row(name, outcomes))
            .collect();
        let better = |one: &DispatcherRow, other: &DispatcherRow| {
            let cheaper = other.usd_per_1000.total_cmp(&one.usd_per_1000);
            one.hits_pct.total_cmp(&other.hits_pct).then(cheaper)
        };
        let mut strongest = 0;
        for place in 1..rows.len() {
            if better(&rows[place], &rows[strongest]).is_gt() {
                strongest = place;
            }
        }
        let first = rows[strongest].by_list.clone();
        for (place, row) in rows.iter_mut().enumerate() {
            if place != strongest {
                let gain = Gain::of(&row.by_list, &first);
                (row.gain_points, row.gain_interval) = (Some(gain.mean), gain.interval);
            }
        }
        DispatcherComparison {
            num_lists: outcomes[0].len(),
            strongest,
            policies: rows,
            notes: Vec::new(),
        }
    }

    /// The decisive column first.
    #[must_use]
    pub fn table(&self) -> Table {
        let strongest = &self.policies[self.strongest].policy;
        let mut header = vec![
            "dispatcher".to_string(),
            "hits %".into(),
            format!("points over {strongest}"),
            "dropped %".into(),
        ];
        let warmth = |row: &DispatcherRow| row.warmth.map(|warmth| warmth.gpu_s > 0.0);
        let has_gpu = self.policies.iter().find_map(warmth);
        let more: &[&str] = match has_gpu {
            Some(true) => &[
                "cold %",
                "GPU s",
                "idle s",
                "$ per 1,000 hits",
                "p50 ms",
                "p99 ms",
            ],
            Some(false) => &[
                "cold %",
                "core s",
                "idle s",
                "$ per 1,000 hits",
                "p50 ms",
                "p99 ms",
            ],
            None => &[
                "$ per 1,000",
                "$ per 1,000 hits",
                "cold %",
                "p50 ms",
                "p99 ms",
                "batch",
            ],
        };
        header.extend(more.iter().map(|name| (*name).to_string()));
        let rows = self.policies.iter().map(|row| {
            let mut cells = vec![
                row.policy.clone(),
                format!("{:.2}", row.hits_pct),
                cell(row.gain_points, row.gain_interval, 2),
                format!("{:.2}", row.dropped_pct),
            ];
            let [usd, p50, p99] = [(row.usd_per_1000_hits, 4), (row.p50_ms, 0), (row.p99_ms, 0)].map(shown);
            cells.extend(match row.warmth {
                Some(warmth) => {
                    let paid_s = if warmth.gpu_s > 0.0 {
                        warmth.gpu_s
                    } else {
                        warmth.core_s
                    };
                    let cold = format!("{:.2}", warmth.cold_calls_pct);
                    [
                        cold,
                        format!("{paid_s:.2}"),
                        format!("{:.1}", warmth.idle_s),
                        usd,
                        p50,
                        p99,
                    ]
                }
                None => {
                    let cold = format!("{:.1}", row.cold_pct);
                    let batch = shown((row.batch, 2));
                    [format!("{:.4}", row.usd_per_1000), usd, cold, p50, p99, batch]
                }
            });
            cells
        });
        let num = self.num_lists;
        let mut notes = vec![match has_gpu {
            None => format!("mean over {num} lists; hits: served within the target; cold: part of the cost"),
            Some(_) => format!(
                "mean over {num} parts; hits: within the target times the own run time; cold: calls for which a container was \
                 made; s: of a call"
            ),
        }];
        notes.extend(self.notes.iter().cloned());
        Table {
            header,
            rows: rows.collect(),
            notes,
        }
    }
}

/// A number with so many places; a dash where nobody was served.
fn shown((value, places): (f64, usize)) -> String {
    if value.is_finite() {
        format!("{value:.places$}")
    } else {
        "-".into()
    }
}

fn row(name: &str, outcomes: &[Outcome]) -> DispatcherRow {
    let over = |figure: &dyn Fn(&Outcome) -> f64| mean(&outcomes.iter().map(figure).collect::<Vec<_>>());
    let by_list: Vec<f64> = outcomes
        .iter()
        .map(|outcome| 100.0 * outcome.hit_share())
        .collect();
    DispatcherRow {
        policy: name.into(),
        hits_pct: mean(&by_list),
        gain_points: None,
        gain_interval: None,
        dropped_pct: over(&|outcome| 100.0 * outcome.dropped_share()),
        usd_per_1000: over(&Outcome::usd_per_1000),
        usd_per_1000_hits: over(&Outcome::usd_per_1000_hits),
        cold_pct: over(&|outcome| 100.0 * outcome.cold_usd / outcome.usd.max(1e-12)),
        p50_ms: over(&|outcome| 1e-3 * outcome.latencies.quantile_us(0.5)),
        p99_ms: over(&|outcome| 1e-3 * outcome.latencies.quantile_us(0.99)),
        batch: over(&Outcome::batch_mean),
        no_room_pct: over(&|outcome| 100.0 * outcome.refused as f64 / outcome.asked.max(1) as f64),
        by_list,
        timeline: outcomes[0].timeline.clone(),
        warmth: None,
    }
}
