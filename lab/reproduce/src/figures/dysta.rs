//! DySta (MICRO'23): networks that share an accelerator layer by layer, on drawn profiles.

use pleach_env::Seed;
use pleach_rooms::layers::{Outcome, Profiles, RequestGenerator, by_name, simulate};

use super::figure::show;
use super::{Benchmark, Effort, Figure, Reproduction, Series, Target, plot};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::run::in_parallel;
use pleach_experiments::evaluate::stats::mean;
use pleach_experiments::evaluate::table::Table;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: "dysta-attention",
        title: "DySta on attention models: violations and turnaround beside five rules",
        source: "Fan et al., Sparse-DySta, MICRO'23, abstract; workload and rules of its released code",
        setup: "BERT, GPT-2 and BART on one accelerator, Poisson 10 to 40 requests/s, deadlines 10 to 150 isolated means, 1,000 requests. \
                Measured profiles are not public: attention-1 is drawn (assumed), so figures are shapes",
        run: attention,
    },
    Benchmark {
        id: "dysta-cnn",
        title: "DySta on CNNs with three patterns of sparsity",
        source: "Fan et al., Sparse-DySta, MICRO'23, abstract; workload and rules of its released code",
        setup: "ResNet-50, VGG-16, SSD and MobileNet, each with random, block and channel sparsity, on one accelerator, Poisson 2 to 6 \
                requests/s, deadlines 10 to 150 isolated means, 1,000 requests. Profiles cnn-1 are drawn (assumed)",
        run: cnn,
    },
];

/// Published rules, the last two DySta and its oracle.
const RULES: [&str; 7] = ["fcfs", "sjf", "prema", "sdrm3", "planaria", "dysta", "oracle"];
const FCFS: usize = 0;
const SJF: usize = 1;
const PREMA: usize = 2;
const SDRM3: usize = 3;
const PLANARIA: usize = 4;
const DYSTA: usize = 5;
const ORACLE: usize = 6;
/// Parts of DySta left out or made perfect, played beside the rules.
const VARIANTS: [&str; 4] = [
    "dysta:beta=0",
    "dysta:gamma=false",
    "dysta:last=1",
    "dysta:sample=true",
];
/// Deadlines in isolated means. Source: the released code.
const MULTIPLIERS: [f64; 6] = [10.0, 25.0, 50.0, 75.0, 100.0, 150.0];

/// One family of models.
struct Family {
    id: &'static str,
    profiles: &'static str,
    /// Requests/s that the released code tests.
    rates: &'static [f64],
    /// Those of the main comparison.
    main: [f64; 2],
    /// Model, requests/s: queues of which 90 % are one model, the shortest and the longest.
    hot: [(usize, f64); 2],
    /// What the reader should know.
    findings: &'static [&'static str],
}

/// What is measured of one run.
#[derive(Clone, Copy, Debug)]
struct Measured {
    violations: f64,
    antt: f64,
    p99: f64,
    stp_per_s: f64,
}

/// Rate, multiplier, hot model.
type Point = (f64, f64, Option<(usize, f64)>);

/// `[scheduler][seed]`
type Grid = Vec<Vec<Measured>>;

fn attention(effort: &Effort) -> Result<Reproduction, Error> {
    run(
        effort,
        &Family {
            id: "dysta-attention",
            profiles: "attention-1",
            rates: &[10.0, 20.0, 30.0, 40.0],
            main: [30.0, 40.0],
            hot: [(0, 55.0), (2, 20.0)],
            findings: &FINDINGS_ATTENTION,
        },
    )
}

fn cnn(effort: &Effort) -> Result<Reproduction, Error> {
    run(
        effort,
        &Family {
            id: "dysta-cnn",
            profiles: "cnn-1",
            rates: &[2.0, 3.0, 4.0, 5.0, 6.0],
            main: [3.0, 4.0],
            hot: [(0, 5.5), (3, 2.4)],
            findings: &FINDINGS_CNN,
        },
    )
}

fn measured(outcome: &Outcome) -> Measured {
    Measured {
        violations: outcome.violation_share(),
        antt: outcome.antt(),
        p99: outcome.turnaround_quantile(0.99),
        stp_per_s: outcome.stp_per_s(),
    }
}

/// Every scheduler on the same lists: `[point]`.
fn play(effort: &Effort, family: &Family, points: &[Point]) -> Result<Vec<Grid>, Error> {
    let profiles = Profiles::by_name(family.profiles)?;
    let seeds = effort.seeds(5);
    let tasks: Vec<(Point, Seed)> = points
        .iter()
        .flat_map(|point| seeds.iter().map(move |seed| (*point, *seed)))
        .collect();
    let done = in_parallel(
        family.id,
        &effort.watcher,
        &tasks,
        |((rate_per_s, multiplier, hot), seed)| {
            let generator = RequestGenerator {
                num_requests: effort.size(1000, 60),
                rate_per_s: *rate_per_s,
                multiplier: *multiplier,
                hot: *hot,
            };
            let list = generator.draw(&profiles, *seed)?;
            let of = |name: &&str| -> Result<Measured, Error> {
                Ok(measured(&simulate(&list, 1, by_name(name)?.as_mut())?))
            };
            RULES
                .iter()
                .chain(&VARIANTS)
                .map(of)
                .collect::<Result<Vec<_>, _>>()
        },
    )?;
    let num_schedulers = RULES.len() + VARIANTS.len();
    let grid = |of_point: &[Vec<Measured>]| -> Grid {
        (0..num_schedulers)
            .map(|scheduler| of_point.iter().map(|of_seed| of_seed[scheduler]).collect())
            .collect()
    };
    Ok(done.chunks(seeds.len()).map(grid).collect())
}

fn column(grid: &Grid, scheduler: usize, figure: impl Fn(&Measured) -> f64) -> Vec<f64> {
    grid[scheduler].iter().map(figure).collect()
}

fn run(effort: &Effort, family: &Family) -> Result<Reproduction, Error> {
    let rates = effort.size(family.rates, &family.main);
    let multipliers = effort.size(&MULTIPLIERS[1..], &MULTIPLIERS[1..2]);
    let mut points: Vec<Point> = rates.iter().map(|rate| (*rate, MULTIPLIERS[0], None)).collect();
    for rate in family.main {
        points.extend(multipliers.iter().map(|multiplier| (rate, *multiplier, None)));
    }
    points.extend(
        family
            .hot
            .map(|(model, rate)| (rate, MULTIPLIERS[0], Some((model, 0.9)))),
    );
    let grids = play(effort, family, &points)?;
    let by_rate: Vec<(f64, &Grid)> = rates.iter().copied().zip(&grids).collect();
    let profiles = Profiles::by_name(family.profiles)?;
    let names: Vec<&str> = profiles.models.iter().map(|model| model.name.as_str()).collect();
    let mut reproduction = Reproduction::default();
    for rate in family.main {
        if let Some((_, grid)) = by_rate.iter().find(|(other, _)| *other == rate) {
            reproduction.figures.extend(orders(rate, grid));
        }
    }
    reproduction.figures.extend(sizes(&by_rate, family.main[1]));
    reproduction
        .figures
        .extend(embarrassing(family, &by_rate, &points, &grids, &names));
    for ((rate, multiplier, hot), grid) in points.iter().zip(&grids) {
        let heading = match hot {
            Some((model, share)) => {
                format!("{rate} requests/s, {} % of them {}", 100.0 * share, names[*model])
            }
            None => format!("{rate} requests/s, deadlines of {multiplier} isolated means"),
        };
        reproduction.tables.push((heading, table(grid)));
    }
    for (heading, figure) in [
        (
            "ANTT over the rate",
            (&|one: &Measured| one.antt) as &dyn Fn(&Measured) -> f64,
        ),
        ("Violations over the rate", &|one: &Measured| one.violations),
    ] {
        let series = RULES.iter().enumerate().map(|(scheduler, name)| {
            let at = |(rate, grid): &(f64, &Grid)| (*rate, mean(&column(grid, scheduler, figure)));
            Series::new(*name, by_rate.iter().map(at).collect())
        });
        let series: Vec<Series> = series.collect();
        reproduction
            .plots
            .push((heading.into(), plot::lines("requests/s", heading, &series, None)));
    }
    reproduction.findings = family
        .findings
        .iter()
        .map(|finding| (*finding).to_string())
        .collect();
    Ok(reproduction)
}

/// The published order at one rate, seed by seed.
fn orders(rate: f64, grid: &Grid) -> Vec<Figure> {
    let claim = |what: &str, pairs: &[(usize, usize)]| {
        let in_order = |seed: usize| {
            pairs
                .iter()
                .all(|(low, high)| grid[*low][seed].antt <= grid[*high][seed].antt)
        };
        let holds: Vec<bool> = (0..grid[0].len()).map(in_order).collect();
        Figure::claim(format!("{rate}/s: {what}"), &holds)
    };
    let best = best_of_others(grid);
    let is_least = grid[DYSTA]
        .iter()
        .zip(&best)
        .map(|(ours, best)| ours.violations <= *best);
    vec![
        claim("ANTT of oracle <= dysta <= sjf", &[(ORACLE, DYSTA), (DYSTA, SJF)]),
        claim(
            "ANTT of sjf <= prema, sdrm3, planaria",
            &[(SJF, PREMA), (SJF, SDRM3), (SJF, PLANARIA)],
        ),
        claim("ANTT of prema <= fcfs", &[(PREMA, FCFS)]),
        claim("ANTT of sdrm3 <= fcfs", &[(SDRM3, FCFS)]),
        claim("ANTT of planaria <= fcfs", &[(PLANARIA, FCFS)]),
        Figure::claim(
            format!("{rate}/s: violations of dysta at most the best rule's"),
            &is_least.collect::<Vec<_>>(),
        ),
    ]
}

/// The least violations of all rules but DySta and its oracle, `[seed]`.
fn best_of_others(grid: &Grid) -> Vec<f64> {
    let seeds = 0..grid[0].len();
    let best = |seed: usize| {
        (FCFS..DYSTA)
            .map(|rule| grid[rule][seed].violations)
            .fold(1.0, f64::min)
    };
    seeds.map(best).collect()
}

fn ratio(grid: &Grid, over: usize, under: usize) -> Vec<f64> {
    let pairs = grid[over].iter().zip(&grid[under]);
    pairs.map(|(over, under)| over.antt / under.antt).collect()
}

/// How far DySta is ahead where it is most, and what its parts are worth there.
fn sizes(by_rate: &[(f64, &Grid)], main: f64) -> Vec<Figure> {
    let points = |grid: &Grid| -> Vec<f64> {
        let pairs = best_of_others(grid).into_iter().zip(&grid[DYSTA]);
        pairs
            .map(|(best, ours)| 100.0 * (best - ours.violations))
            .collect()
    };
    let largest = |figure: &dyn Fn(&Grid) -> Vec<f64>| {
        let values = by_rate.iter().map(|(rate, grid)| (*rate, figure(grid)));
        values
            .max_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)))
            .unwrap_or_default()
    };
    let mut figures = Vec::new();
    let (rate, gains) = largest(&points);
    figures.push(Figure::of(
        format!("points of violations below the best of the others, most ({rate}/s); \"up to 10\""),
        &gains,
        Target::Between { low: 5.0, high: 15.0 },
    ));
    for (rule, target) in [
        (PREMA, Target::Between { low: 3.0, high: 5.0 }),
        (PLANARIA, Target::Record),
        (SJF, Target::Record),
    ] {
        let (rate, ratios) = largest(&|grid| ratio(grid, rule, DYSTA));
        let note = if rule == PREMA { "; \"nearly 4x\"" } else { "" };
        figures.push(Figure::of(
            format!("ANTT of {} over dysta, most ({rate}/s){note}", RULES[rule]),
            &ratios,
            target,
        ));
    }
    if let Some((_, grid)) = by_rate.iter().find(|(rate, _)| *rate == main) {
        for (number, name) in VARIANTS.iter().enumerate() {
            let what = format!("ANTT of {name} over dysta, {main}/s");
            figures.push(Figure::of(
                what,
                &ratio(grid, RULES.len() + number, DYSTA),
                Target::Record,
            ));
        }
    }
    figures
}

/// Where DySta has nothing to win or loses.
fn embarrassing(
    family: &Family,
    by_rate: &[(f64, &Grid)],
    points: &[Point],
    grids: &[Grid],
    names: &[&str],
) -> Vec<Figure> {
    let hot = &grids[grids.len() - family.hot.len()..];
    let mut figures = Vec::new();
    let behind = |grid: &Grid| -> Vec<f64> {
        let pairs = best_of_others(grid).into_iter().zip(&grid[DYSTA]);
        pairs
            .map(|(best, ours)| 100.0 * (ours.violations - best))
            .collect()
    };
    if let Some((rate, grid)) = by_rate.first() {
        figures.push(Figure::of(
            format!("ANTT of sjf over dysta, {rate}/s"),
            &ratio(grid, SJF, DYSTA),
            Target::Record,
        ));
    }
    for (point, grid) in points.iter().zip(grids) {
        if point.0 == family.main[1] && point.1 == MULTIPLIERS[5] {
            let what = format!(
                "points of violations above the best of the others, {}/s, deadlines of {}",
                point.0, point.1
            );
            figures.push(Figure::of(what, &behind(grid), Target::Record));
        }
    }
    for ((model, rate), grid) in family.hot.iter().zip(hot) {
        let what = format!("90 % {}, {rate}/s", names[*model]);
        figures.push(Figure::of(
            format!("{what}: ANTT of sjf over dysta"),
            &ratio(grid, SJF, DYSTA),
            Target::Record,
        ));
        figures.push(Figure::of(
            format!("{what}: points of violations above the best of the others"),
            &behind(grid),
            Target::Record,
        ));
    }
    figures
}

fn table(grid: &Grid) -> Table {
    let names = RULES.iter().chain(&VARIANTS);
    let row = |(name, of_seeds): (&&str, &Vec<Measured>)| {
        let over =
            |figure: fn(&Measured) -> f64| show(mean(&of_seeds.iter().map(figure).collect::<Vec<_>>()));
        vec![
            (*name).to_string(),
            over(|one| 100.0 * one.violations),
            over(|one| one.antt),
            over(|one| one.p99),
            over(|one| one.stp_per_s),
        ]
    };
    Table {
        header: ["scheduler", "violations %", "ANTT", "99th percentile", "STP 1/s"]
            .map(str::to_string)
            .to_vec(),
        rows: names.zip(grid).map(row).collect(),
        notes: Vec::new(),
    }
}

/// What we found.
const FINDINGS_ATTENTION: [&str; 4] = [
    "SDRM3 is missed: with the constants of DySta's released code idle time over the next layer is most of its score, so it is round \
     robin, which is worse than first come first served where sizes are alike. Planaria is missed at 40/s, where nearly all are late: \
     its order by deadline is then that of arrival. What it does with late requests is assumed.",
    "PREMA is missed: tokens grow at each decision by the time since a request last ran, so soon all are above the threshold, and what \
     is left is sjf. The published factor is that over planaria here.",
    "Violations fall by twice the published points at 40/s, since that load is 1.15 of the drawn profiles' capacity and sjf lets all long \
     requests wait alike.",
    "DySta is behind where deadlines are loose and the load is above 1 (150 isolated means: beta times the slack is then as much as the \
     rest, and planaria, which goes by deadlines, is never late), and in a hot queue of the shortest model (sjf has less turnaround and \
     fewer violations: slack weighs more than a short rest). At low load no request is late, and it gains 1 %. Half of what the oracle gains \
     over DySta is beta's: without it the turnaround is as low, with more violations.",
];
/// What we found.
const FINDINGS_CNN: [&str; 3] = [
    "SDRM3 and PREMA are missed as in dysta-attention.",
    "Here most of the gain over sjf is the pattern's, not the densities': with means of patterns alone (gamma=false) DySta has 4 to 6 % \
     more turnaround, sjf, which knows means of models, 20 to 40 %.",
    "At 2/s, and at 3/s with deadlines of 25 isolated means, planaria or sjf is never late, DySta and its oracle sometimes are: they let \
     long requests wait for ever shorter ones.",
];
