//! Fronts against the published search and against all ways.

mod search;

use pleach_workloads::Seed;
use proptest::prelude::*;

use super::*;
use crate::functions::app::Work;
use crate::functions::surface;

use search::{astar, group};

/// Of each first configuration the cheapest of all ways; the cheapest first.
fn brute(lists: &[&[Configuration]], (batch_max, within_us, num): (usize, u64, usize)) -> Vec<(usize, f64)> {
    fn least(lists: &[&[Configuration]], within_us: u64) -> Option<f64> {
        let Some((list, rest)) = lists.split_first() else {
            return Some(0.0);
        };
        let ways = list
            .iter()
            .filter_map(|k| Some(k.usd() + least(rest, within_us.checked_sub(k.latency_us)?)?));
        ways.min_by(f64::total_cmp)
    }
    let firsts = lists[0]
        .iter()
        .enumerate()
        .filter(|(_, k)| usize::from(k.batch) <= batch_max);
    let ways = firsts.filter_map(|(place, k)| {
        Some((
            place,
            k.usd() + least(&lists[1..], within_us.checked_sub(k.latency_us)?)?,
        ))
    });
    let mut ways: Vec<(usize, f64)> = ways.collect();
    ways.sort_by(|one, other| one.1.total_cmp(&other.1));
    ways.truncate(num);
    ways
}

fn costs(ways: &[(usize, f64)]) -> Vec<f64> {
    ways.iter().map(|(_, usd)| *usd).collect()
}

fn same(one: &[f64], other: &[f64]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(a, b)| (a - b).abs() <= 1e-12 * a.abs())
}

fn by_fronts(lists: &[&[Configuration]], asked: (usize, u64, usize)) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    plan(lists[0], &front(&lists[1..]), asked, &mut found);
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn fronts_the_published_search_and_all_ways_agree(
        seed in any::<u64>(), depths in 1_usize..=3, size in 1_usize..=64, batch_max in 1_usize..6, slack in 0.5_f64..6.0,
    ) {
        let mut rng = Seed(seed).stream("profiles", 0);
        let mut list = || -> Vec<Configuration> {
            let mut all: Vec<Configuration> = (0..size).map(|_| Configuration {
                batch: rng.random_range(1..=4),
                cores: rng.random_range(1..=8),
                slices: rng.random_range(0..=7),
                latency_us: rng.random_range(100..10_000),
            }).collect();
            all.sort_by_key(|k| k.latency_us);
            all
        };
        let lists: Vec<Vec<Configuration>> = (0..depths).map(|_| list()).collect();
        let lists: Vec<&[Configuration]> = lists.iter().map(Vec::as_slice).collect();
        let fastest: u64 = lists.iter().map(|list| list[0].latency_us).sum();
        let asked = (batch_max, (fastest as f64 * slack) as u64, 5);
        let found = costs(&by_fronts(&lists, asked));
        prop_assert!(same(&found, &costs(&astar(&lists, asked).0)), "{found:?}");
        prop_assert!(same(&found, &costs(&brute(&lists, asked))), "{found:?}");
    }
}

/// 100 plans on ESG's own functions, three of 256 configurations.
#[test]
fn fronts_and_the_published_search_agree_on_whole_groups() {
    let work = surface::work("assumed").unwrap();
    let mut rng = Seed(3).stream("plans", 0);
    let mut taken = 0;
    for plan in 0..100 {
        let step = rng.random_range(0..work.steps.len());
        let fastest = group(&work, step)
            .iter()
            .map(|list| list[0].latency_us)
            .sum::<u64>();
        let part: f64 = rng.random();
        let asked = (
            rng.random_range(1..=8),
            (fastest as f64 * (0.8 + 6.0 * part)) as u64,
            5,
        );
        let found = work.ways(step, asked);
        let (published, paths) = astar(&group(&work, step), asked);
        assert!(
            same(&costs(&found), &costs(&published)),
            "plan {plan}: {found:?} {published:?}"
        );
        taken += paths;
    }
    assert!(taken / 100 > 100, "the search took up {taken} paths");
}
