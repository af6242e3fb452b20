//! Serving beside training: leases against the best static split, and what a perfect forecast would add.

use pleach_env::Seed;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::mean;
use pleach_experiments::progress::Watcher;
use pleach_experiments::worlds::service::{Day, MixedBench, MixedDay, ServiceSettings, ServiceWorld};
use pleach_experiments::worlds::{Comparing, compare_on};

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

/// The days of each autoscaler.
type Rows = Vec<(String, Vec<MixedDay>)>;

fn mean_of(days: &[MixedDay], figure: impl Fn(&MixedDay) -> f64) -> f64 {
    mean(&days.iter().map(figure).collect::<Vec<_>>())
}

/// Of the rows of a rule those with so many hits, that with the most training.
fn best<'a>(rows: &'a Rows, rule: &str, hits_pct: f64) -> Option<&'a [MixedDay]> {
    let hits = |days: &[MixedDay]| mean_of(days, |day| day.hits_pct);
    let rows = rows
        .iter()
        .filter(|(name, days)| name.starts_with(rule) && hits(days) >= hits_pct);
    let days = rows.map(|(_, days)| days.as_slice());
    let training = |days: &[MixedDay]| mean_of(days, |day| day.training_gpu_h);
    days.max_by(|one, other| training(one).total_cmp(&training(other)))
}

/// A figure under one rule over that under another, day by day, each with at least so many hits.
fn compare(
    reproduction: &mut Reproduction,
    table: &Rows,
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
    let days = one.iter().zip(other);
    let ratios: Vec<f64> = days.map(|(one, other)| figure(one) / figure(other)).collect();
    reproduction.figures.push(Figure::of(what, &ratios, target));
}

fn m1(effort: &Effort) -> Result<Reproduction, Error> {
    let settings = ServiceSettings {
        hours: effort.size(24.0, 0.5),
        ..ServiceSettings::default()
    };
    let world = ServiceWorld::new(settings)?;
    let bench: &MixedBench = world.bench();
    let seeds = effort.seeds(3);
    let days = seeds.iter().map(|seed: &Seed| bench.day(*seed, 1.0));
    let days: Vec<Day> = days.collect::<Result<_, Error>>()?;
    let mut names: Vec<String> = effort
        .size(5..=12, 8..=9)
        .map(|replicas| format!("static:replicas={replicas}"))
        .collect();
    for rule in ["reactive", "oracle"] {
        let targets = effort.size(vec![1.0, 0.85, 0.75, 0.7, 0.65, 0.6], vec![0.6]);
        names.extend(targets.iter().map(|target| format!("{rule}:target={target}")));
    }
    let asked = Comparing {
        policies: names.clone(),
        ..Comparing::default()
    };
    let (compared, outcomes) = compare_on(&world, (&days, 1.0), &asked, &Watcher::silent())?;
    let days_of = |played: &Vec<_>| played.iter().map(|(day, _)| *day).collect();
    let table: Rows = names.into_iter().zip(outcomes.iter().map(days_of)).collect();
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
    reproduction.tables.push(("Autoscalers".into(), compared.table));
    Ok(reproduction)
}
