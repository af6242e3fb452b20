//! Serving beside training: leases against the best static split, and what a perfect forecast would add.

use pleach_env::Seed;
use pleach_experiments::error::Error;
use pleach_experiments::progress::Watcher;
use pleach_experiments::serving::{
    Day, MixedBench, MixedComparison, MixedConfig, MixedDay, MixedRow, compare_mixed_on,
};

use super::{Benchmark, Effort, Figure, Reproduction, Target};

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "mixed",
    title: "Serving and training on the same GPUs",
    source: "an earlier simulation of ours of one day (docs/serving-mixed.md); the idea is Lyra's (EuroSys'23), whose production \
             lists are not published",
    setup: "16 H100 on 2 nodes, Llama-3-8B on one GPU each, days of 3.1 million requests (lengths of Azure's conversations of 2023, hours \
            of Azure 2024), within the targets: TTFT 1 s, TPOT 50 ms. One-GPU training jobs that always wait; a model loads in 60 s, a \
            restart costs 60 s. Asked every 15 s, down by one after 180 s",
    run: m1,
}];

/// What loans came to elsewhere.
const LYRA: &str = "Lyra (EuroSys'23) publishes, of two production clusters, up to 1.25 times the usage of GPUs, and queueing and \
                    completion of jobs 1.53 and 1.48 times as short. Its usage is the nearest to GPU time in use here: training, and \
                    serving as much as it is asked for. Its loads are its own, it lends whole servers, and its services have no \
                    targets that a share of requests could miss, so nothing is to be met.";

/// Shares of requests within the targets at which GPU time is compared, %.
const HITS_PCT: [f64; 2] = [99.3, 99.9];

/// Of the rows of a rule those with so many hits, that with the most training.
fn best<'a>(table: &'a MixedComparison, rule: &str, hits_pct: f64) -> Option<&'a MixedRow> {
    let rows = table
        .rows
        .iter()
        .filter(|row| row.autoscaler.starts_with(rule) && row.hits_pct() >= hits_pct);
    rows.max_by(|one, other| one.training_gpu_h().total_cmp(&other.training_gpu_h()))
}

/// A figure under one rule over that under another, day by day, each with at least so many hits.
fn compare(
    reproduction: &mut Reproduction,
    table: &MixedComparison,
    (name, figure): (&str, &dyn Fn(&MixedDay) -> f64),
    (rules, hits_pct): ([&str; 2], f64),
    target: Target,
) {
    let what = format!(
        "{name}: {} over {}, at least {hits_pct} % hits",
        rules[0], rules[1]
    );
    let [Some(one), Some(other)] = rules.map(|rule| best(table, rule, hits_pct)) else {
        reproduction
            .findings
            .push(format!("No figure of \"{what}\": one of them never has so many."));
        return;
    };
    let days = one.days.iter().zip(&other.days);
    let ratios: Vec<f64> = days.map(|(one, other)| figure(one) / figure(other)).collect();
    reproduction.figures.push(Figure::of(what, &ratios, target));
}

fn m1(effort: &Effort) -> Result<Reproduction, Error> {
    let config = MixedConfig {
        hours: effort.size(24.0, 0.5),
        ..MixedConfig::default()
    };
    let bench = MixedBench::new(&config)?;
    let seeds = effort.seeds(3);
    let days = seeds.iter().map(|seed: &Seed| bench.day(*seed));
    let days: Vec<Day> = days.collect::<Result<_, Error>>()?;
    let mut names: Vec<String> = effort
        .size(5..=12, 8..=9)
        .map(|replicas| format!("static:replicas={replicas}"))
        .collect();
    for rule in ["reactive", "oracle"] {
        let targets = effort.size(vec![1.0, 0.85, 0.75, 0.7, 0.65, 0.6], vec![0.6]);
        names.extend(targets.iter().map(|target| format!("{rule}:target={target}")));
    }
    let table = compare_mixed_on(&bench, &days, &names, &Watcher::nobody())?;
    let mut reproduction = Reproduction::default();
    let shared = Target::Between {
        low: 1.46,
        high: 1.79,
    };
    let foreseen = Target::Within {
        value: 1.096,
        part: 0.03,
    };
    let training: (_, &dyn Fn(&MixedDay) -> f64) = ("training", &|day| day.training_gpu_h);
    for hits_pct in HITS_PCT {
        let rules = (["reactive", "static"], hits_pct);
        compare(&mut reproduction, &table, training, rules, shared);
    }
    let rules = (["oracle", "reactive"], HITS_PCT[1]);
    compare(&mut reproduction, &table, training, rules, foreseen);
    let serves_per_h = 3_600.0 * bench.capacity_per_s;
    let in_use = |day: &MixedDay| day.training_gpu_h + day.num_requests / serves_per_h;
    let rules = (["reactive", "static"], HITS_PCT[1]);
    compare(
        &mut reproduction,
        &table,
        ("GPU time in use", &in_use),
        rules,
        Target::Record,
    );
    reproduction.findings.push(LYRA.into());
    reproduction.tables.push(("Autoscalers".into(), table.table()));
    Ok(reproduction)
}
