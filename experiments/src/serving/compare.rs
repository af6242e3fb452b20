//! Routers on the same lists, on whole replicas and on pools, with paired intervals.

use pleach_env::Seed;
use pleach_serving::llm::{Fleet, Outcome, Pools, Requests, Served, simulate, simulate_pools};
use rayon::prelude::*;
use serde::Serialize;

use super::gain::{Gain, cell};
use super::{PoolsConfig, ServingConfig, router};
use crate::error::Error;
use crate::evaluate::stats::mean;
use crate::evaluate::table::Table;
use crate::plot::distribution::points;
use crate::workload_report::spread::sorted;

/// What one router came to, mean over lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterRow {
    /// Name or file; on pools, which, after it.
    pub router: String,
    /// Replicas that compute prompts and that decode; none where each does both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pools: Option<(usize, usize)>,
    /// Share of requests within both targets, %.
    pub hits_pct: f64,
    /// Share within the target of the time to the first token, and within that of the time between tokens, %; told beside pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hits_by_target_pct: Option<[f64; 2]>,
    /// By how many points that is above the first router's, on the same lists; none for the first.
    pub gain_points: Option<f64>,
    /// Its 95 % interval; none with fewer than two lists.
    pub gain_interval: Option<(f64, f64)>,
    /// Refused, %.
    pub refused_pct: f64,
    /// Median and 99th percentile of the time to the first token, s; NaN where a list has none served.
    pub ttft_p50_s: f64,
    /// 99th percentile.
    pub ttft_p99_s: f64,
    /// 99th percentile of the time between tokens, s.
    pub tpot_p99_s: f64,
    /// Tokens of prompts that were held already, %.
    pub reused_pct: f64,
    /// Hits of each list, %.
    pub by_list: Vec<f64>,
    /// Distribution of the time to the first token over all lists: (s, part of the served requests), for plots.
    #[serde(skip)]
    pub ttft_s: Vec<(f64, f64)>,
    /// The same of the time between tokens.
    #[serde(skip)]
    pub tpot_s: Vec<(f64, f64)>,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Mean requests a second of the lists.
    pub rate_per_s: f64,
    /// Lists.
    pub num_lists: usize,
    /// Whether the lists tell blocks, so that replicas keep prompts by block.
    #[serde(skip)]
    pub by_block: bool,
    /// In the order given.
    pub routers: Vec<RouterRow>,
}

/// Comparisons of the same routers at several rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates(pub Vec<(f64, Comparison)>);

impl Rates {
    /// Hits of each router at each rate, where there are several.
    #[must_use]
    pub fn table(&self) -> Option<Table> {
        let (_, first) = self.0.first().filter(|_| self.0.len() > 1)?;
        let mut header = vec!["router, hits %".to_string()];
        header.extend(self.0.iter().map(|(_, at)| format!("{:.0}/s", at.rate_per_s)));
        let rows = first.routers.iter().enumerate().map(|(place, router)| {
            let hits = self
                .0
                .iter()
                .map(|(_, at)| format!("{:.2}", at.routers[place].hits_pct));
            [router.router.clone()].into_iter().chain(hits).collect()
        });
        Some(Table {
            header,
            rows: rows.collect(),
            notes: Vec::new(),
        })
    }
}

/// Plays all routers on all lists, at each of these times the rate, and on each of the pools.
///
/// # Errors
/// A router or a setting that cannot be used.
pub fn compare(
    config: &ServingConfig,
    pools: &PoolsConfig,
    routers: &[String],
    rates: &[f64],
    seed: u64,
) -> Result<Rates, Error> {
    let (fleet, pools) = (config.fleet()?, pools.of(config)?);
    for name in routers {
        router(name, seed)?;
    }
    let at = |rate: &f64| {
        let lists = config.draw(Seed(seed).child("serving", 0), usize::from(config.lists), *rate)?;
        Ok((*rate, compare_on(&lists, &fleet, &pools, routers, seed)?))
    };
    Ok(Rates(rates.iter().map(at).collect::<Result<_, Error>>()?))
}

/// The same on given lists.
pub(super) fn compare_on(
    lists: &[Requests],
    fleet: &Fleet,
    pools: &[Pools],
    routers: &[String],
    seed: u64,
) -> Result<Comparison, Error> {
    let forms: Vec<Option<&Pools>> = std::iter::once(None).chain(pools.iter().map(Some)).collect();
    let entries: Vec<(Option<&Pools>, &str)> = forms
        .iter()
        .flat_map(|form| routers.iter().map(move |name| (*form, name.as_str())))
        .collect();
    let runs: Vec<(usize, usize)> = (0..entries.len())
        .flat_map(|entry| (0..lists.len()).map(move |list| (entry, list)))
        .collect();
    let played = runs.par_iter().map(|&(entry, list)| {
        let (pools, name) = entries[entry];
        let seed = Seed(seed).child("router", list as u64).0;
        let mut first = router(name, seed)?;
        let Some(pools) = pools else {
            return Ok(simulate(&lists[list], fleet, first.as_mut())?);
        };
        let mut second = router(name, Seed(seed).child("decode", 0).0)?;
        let pooled = simulate_pools(&lists[list], fleet, pools, [first.as_mut(), second.as_mut()])?;
        Ok(pooled.outcome)
    });
    let outcomes: Vec<Outcome> = played.collect::<Result<_, Error>>()?;
    let of_each: Vec<&[Outcome]> = outcomes.chunks(lists.len()).collect();
    let first = hits(of_each[0], fleet);
    let rows = entries.iter().zip(&of_each).enumerate();
    let rows = rows.map(|(place, ((form, name), outcomes))| {
        let paired = (place > 0).then_some(first.as_slice());
        let mut row = row(name, outcomes, hits(outcomes, fleet), paired);
        if !pools.is_empty() {
            row.hits_by_target_pct = Some(hits_by_target(outcomes, fleet));
        }
        if let Some(pools) = form {
            row.router = format!("{name}, {}:{}", pools.num_prefill, pools.num_decode);
            row.pools = Some((pools.num_prefill, pools.num_decode));
        }
        row
    });
    Ok(Comparison {
        rate_per_s: mean(&lists.iter().map(Requests::rate_per_s).collect::<Vec<_>>()),
        num_lists: lists.len(),
        by_block: lists.iter().any(|list| !list.block_ids().is_empty()),
        routers: rows.collect(),
    })
}

/// Of all requests those within either target, mean over lists, %.
fn hits_by_target(outcomes: &[Outcome], fleet: &Fleet) -> [f64; 2] {
    let targets = fleet.targets;
    let share = |is_hit: &dyn Fn(&Served) -> bool| {
        let of_list = |outcome: &Outcome| {
            let hits = outcome.served().filter(|served| is_hit(served)).count();
            100.0 * hits as f64 / outcome.requests.len() as f64
        };
        mean(&outcomes.iter().map(of_list).collect::<Vec<_>>())
    };
    [
        share(&|served| served.ttft_s <= targets.ttft_s),
        share(&|served| served.tpot_s <= targets.tpot_s),
    ]
}

/// Of each list, %.
fn hits(outcomes: &[Outcome], fleet: &Fleet) -> Vec<f64> {
    outcomes
        .iter()
        .map(|outcome| 100.0 * outcome.hit_share(fleet.targets))
        .collect()
}

fn row(name: &str, outcomes: &[Outcome], by_list: Vec<f64>, first: Option<&[f64]>) -> RouterRow {
    let over = |figure: &dyn Fn(&Outcome) -> f64| mean(&outcomes.iter().map(figure).collect::<Vec<_>>());
    let gain = first.map(|first| Gain::of(&by_list, first));
    RouterRow {
        router: name.to_string(),
        pools: None,
        hits_pct: mean(&by_list),
        hits_by_target_pct: None,
        gain_points: gain.map(|gain| gain.mean),
        gain_interval: gain.and_then(|gain| gain.interval),
        refused_pct: over(&|outcome| 100.0 * outcome.refused_share()),
        ttft_p50_s: over(&|outcome| outcome.quantile(0.5, |served| served.ttft_s)),
        ttft_p99_s: over(&|outcome| outcome.quantile(0.99, |served| served.ttft_s)),
        tpot_p99_s: over(&|outcome| outcome.quantile(0.99, |served| served.tpot_s)),
        reused_pct: over(&|outcome| {
            100.0 * outcome.reused_tokens as f64 / outcome.prompt_tokens.max(1) as f64
        }),
        by_list,
        ttft_s: distribution(outcomes, |served| served.ttft_s),
        tpot_s: distribution(outcomes, |served| served.tpot_s),
    }
}

fn distribution(outcomes: &[Outcome], figure: impl Fn(&Served) -> f64) -> Vec<(f64, f64)> {
    let all = outcomes.iter().flat_map(Outcome::served);
    points(&sorted(all.map(|served| figure(&served))))
}

impl Comparison {
    /// One more router, played on the same lists.
    pub(super) fn join(&mut self, name: &str, outcomes: &[Outcome], fleet: &Fleet) {
        let first = self.routers[0].by_list.clone();
        self.routers
            .push(row(name, outcomes, hits(outcomes, fleet), Some(&first)));
    }

    /// The decisive column first.
    #[must_use]
    pub fn table(&self) -> Table {
        let is_split = self.routers.iter().any(|row| row.hits_by_target_pct.is_some());
        let gained = format!("points over {}", self.routers[0].router);
        let mut header = vec!["router", "hits %"];
        if is_split {
            header.extend(["by TTFT %", "by TPOT %"]);
        }
        if self.by_block {
            header.push("held %");
        }
        header.extend([&*gained, "refused %", "TTFT p50 ms", "p99 ms", "TPOT p99 ms"]);
        let rows = self.routers.iter().map(|row| {
            let gain = cell(row.gain_points, row.gain_interval, 2);
            let mut cells = vec![row.router.clone(), format!("{:.2}", row.hits_pct)];
            let by_target = row.hits_by_target_pct.iter().flatten();
            cells.extend(by_target.map(|hits| format!("{hits:.2}")));
            if self.by_block {
                cells.push(format!("{:.1}", row.reused_pct));
            }
            cells.extend([
                gain,
                format!("{:.2}", row.refused_pct),
                format!("{:.0}", 1e3 * row.ttft_p50_s),
                format!("{:.0}", 1e3 * row.ttft_p99_s),
                format!("{:.1}", 1e3 * row.tpot_p99_s),
            ]);
            cells
        });
        let mut notes = vec![format!(
            "mean over {} lists of {:.0} requests a second; hits: within both targets, refused requests are misses",
            self.num_lists, self.rate_per_s
        )];
        notes.extend(self.best_pools());
        Table {
            header: header.into_iter().map(str::to_string).collect(),
            rows: rows.collect(),
            notes,
        }
    }

    /// The best pools beside the best router on whole replicas, in a sentence.
    fn best_pools(&self) -> Option<String> {
        let best = |is_pools: bool| {
            let rows = self.routers.iter();
            rows.filter(|row| row.pools.is_some() == is_pools)
                .max_by(|one, other| one.hits_pct.total_cmp(&other.hits_pct))
        };
        let (pools, whole) = (best(true)?, best(false)?);
        let gain = Gain::of(&pools.by_list, &whole.by_list);
        Some(format!(
            "best pools: {}, {gain} points over {} on whole replicas",
            pools.router, whole.router
        ))
    }
}
