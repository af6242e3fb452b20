//! Periodic networks in contexts of one GPU: SGPRS against whole networks without a limit.

use pleach_env::Seed;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::run::in_parallel;
use pleach_experiments::evaluate::stats::mean;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::plot::Plot;
use pleach_rooms::contexts::released::{self, PERIOD_S};
use pleach_rooms::contexts::{Gpu, Outcome, Policy, Run, StageRun, Task, simulate, timeline};
use pleach_scheduler::ConfigError;

use super::figure::show;
use super::plot::Bar;
use super::{Benchmark, Effort, Figure, Reproduction, Series, Target, plot};

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "sgprs",
    title: "SGPRS: deadlines of periodic networks on a GPU parted into contexts",
    source: "SGPRS (DATE'24); figures, times and recorded throughputs from its repository, AmirFB/SGPRS",
    setup: "One RTX 2080 Ti (68 SMs), 15 to 30 cameras at 30 frames a second, each a ResNet-18 in six stages, first releases \
            uniform in two periods, 2 s, six seeds. Two contexts with three streams each or three with two, caps that sum to \
            1, 1.5 or 2 times the GPU. Stages in flight share the throughput recorded for so many networks in flight, naive \
            that of one context; none is faster than alone on its context's SMs. Shares of the stages are assumed. Throughput \
            is counted from 0.1 s on, misses over all frames released",
    run: sgprs,
}];

/// Length of a run, and what of it does not count as throughput, s. Every camera has begun after two periods.
const RUN_S: (f64, f64) = (2.0, 0.1);
/// What the plots of contexts show of it, ms: three periods.
const SHOWN_MS: (f64, f64) = (500.0, 600.0);
const OVERSUBSCRIPTION: [f64; 3] = [1.0, 1.5, 2.0];
/// Within which a throughput holds, and a number of cameras; stated beforehand.
const FPS_PART: f64 = 0.07;
const CAMERAS_OFF: f64 = 1.0;

/// What was published of a scenario: naive, then over-subscription 1, 1.5, 2.
struct Published {
    contexts: usize,
    /// Most cameras without a miss.
    cameras: [f64; 4],
    /// Highest throughput, frames a second.
    fps: [f64; 4],
    /// Throughput at 30 cameras.
    fps_at_30: [f64; 4],
    /// Missed at 21, 24 and 30 cameras, %, where it was given.
    missed: [[Option<f64>; 3]; 4],
}

/// Read off the output recorded in the authors' notebook.
const PUBLISHED: [Published; 2] = [
    Published {
        contexts: 2,
        cameras: [20.0, 22.0, 23.0, 23.0],
        fps: [600.0, 688.0, 705.0, 720.0],
        fps_at_30: [468.0, 684.0, 693.0, 720.0],
        missed: [
            [Some(72.0), None, Some(96.0)],
            [None, Some(53.0), Some(89.0)],
            [None, Some(41.0), Some(85.0)],
            [None, Some(20.0), Some(84.0)],
        ],
    },
    Published {
        contexts: 3,
        cameras: [20.0, 23.0, 24.0, 23.0],
        fps: [600.0, 714.0, 741.0, 731.0],
        fps_at_30: [459.0, 711.0, 738.0, 729.0],
        missed: [
            [Some(93.0), None, Some(96.0)],
            [None, Some(30.0), Some(85.0)],
            [None, Some(0.0), Some(80.0)],
            [None, Some(8.0), Some(84.0)],
        ],
    },
];

/// One rule on its contexts.
#[derive(Clone, Debug, PartialEq)]
struct Case {
    rule: &'static str,
    contexts: usize,
    oversubscription: f64,
    /// Throughput with six stages in flight instead of the recorded one, frames a second.
    plateau_fps: Option<f64>,
    /// Coefficient of variation of a stage's time.
    spread: f64,
}

impl Case {
    fn new(rule: &'static str, contexts: usize, oversubscription: f64) -> Case {
        Case {
            rule,
            contexts,
            oversubscription,
            plateau_fps: None,
            spread: 0.0,
        }
    }

    fn played<T>(
        &self,
        (num, seed): (usize, Seed),
        play: impl FnOnce(&Gpu, &[Task], &mut dyn Policy, &Run) -> Result<T, ConfigError>,
    ) -> Result<T, Error> {
        let capacity = self.plateau_fps.map(released::plateau).transpose()?;
        let (gpu, mut policy) = released::set_up(self.rule, self.contexts, self.oversubscription, capacity)?;
        let seed = seed.child("cameras", num as u64);
        let run = Run::new(RUN_S.0, RUN_S.1, seed)?.with_spread(self.spread)?;
        let tasks = released::cameras(num, seed)?;
        Ok(play(&gpu, &tasks, policy.as_mut(), &run)?)
    }

    fn outcome(&self, num: usize, seed: Seed) -> Result<Outcome, Error> {
        self.played((num, seed), simulate)
    }

    /// Which stage ran in which context in [`SHOWN_MS`], as a plot.
    fn timeline(&self, num: usize, seed: Seed) -> Result<Plot, Error> {
        let (_, mut runs) = self.played((num, seed), timeline)?;
        runs.sort_by_key(|run| (run.start_us, run.end_us));
        let bar = |run: &StageRun| {
            let (from, to) = (run.start_us as f64 / 1e3, run.end_us as f64 / 1e3);
            Bar {
                group: run.context,
                from,
                to,
                series: usize::from(run.end_us > run.due_us),
            }
        };
        let bars: Vec<Bar> = runs.iter().map(bar).collect();
        let num_groups = bars.iter().map(|bar| bar.group + 1).max().unwrap_or(0);
        let groups: Vec<String> = (1..=num_groups)
            .map(|number| format!("context {number}"))
            .collect();
        let names = ["before its frame is due", "after"];
        Ok(plot::lanes("time (ms)", SHOWN_MS, &groups, &bars, &names))
    }
}

/// A case over numbers of cameras and seeds.
struct Curve {
    nums: Vec<usize>,
    /// By number of cameras and seed.
    outcomes: Vec<Vec<Outcome>>,
}

impl Curve {
    /// A figure of the outcomes of each seed, with their numbers of cameras.
    fn by_seed(&self, figure: impl Fn(&[(usize, Outcome)]) -> f64) -> Vec<f64> {
        let of_seed = |seed: usize| {
            let pairs = self.nums.iter().zip(&self.outcomes);
            let curve: Vec<(usize, Outcome)> = pairs.map(|(num, seeds)| (*num, seeds[seed])).collect();
            figure(&curve)
        };
        (0..self.outcomes[0].len()).map(of_seed).collect()
    }

    /// Most cameras up to which no frame was missed.
    fn cameras(&self) -> Vec<f64> {
        self.by_seed(|curve| {
            let met = curve
                .iter()
                .take_while(|(_, outcome)| outcome.missed_share() == 0.0);
            met.last().map_or(curve[0].0 - 1, |(num, _)| *num) as f64
        })
    }

    /// Highest throughput.
    fn fps_max(&self) -> Vec<f64> {
        self.by_seed(|curve| curve.iter().map(|(_, outcome)| outcome.fps()).fold(0.0, f64::max))
    }

    /// Throughput with most cameras over the highest one.
    fn kept(&self) -> Vec<f64> {
        let last = self.by_seed(|curve| curve[curve.len() - 1].1.fps());
        last.iter()
            .zip(self.fps_max())
            .map(|(last, most)| last / most)
            .collect()
    }

    /// Mean over seeds at a number of cameras; none where it was not run.
    fn at(&self, num: usize, figure: impl Fn(&Outcome) -> f64) -> Option<f64> {
        let place = self.nums.iter().position(|given| *given == num)?;
        Some(mean(
            &self.outcomes[place].iter().map(figure).collect::<Vec<f64>>(),
        ))
    }

    fn series(&self, name: &str, figure: impl Fn(&Outcome) -> f64) -> Series {
        let point = |num: &usize| (*num as f64, self.at(*num, &figure).unwrap_or(f64::NAN));
        Series::new(name, self.nums.iter().map(point).collect())
    }
}

/// Plays all cases.
fn curves(effort: &Effort, cases: &[Case]) -> Result<Vec<Curve>, Error> {
    let nums: Vec<usize> = effort.size((15..=30).collect(), vec![20, 24, 30]);
    let seeds = effort.seeds(6);
    let runs: Vec<(&Case, usize, Seed)> = cases
        .iter()
        .flat_map(|case| nums.iter().map(move |num| (case, *num)))
        .flat_map(|(case, num)| seeds.iter().map(move |seed| (case, num, *seed)))
        .collect();
    let play = |(case, num, seed): &(&Case, usize, Seed)| case.outcome(*num, *seed);
    let outcomes = in_parallel("sgprs", &effort.watcher, &runs, play)?;
    let of_case = |outcomes: &[Outcome]| Curve {
        nums: nums.clone(),
        outcomes: outcomes.chunks(seeds.len()).map(<[Outcome]>::to_vec).collect(),
    };
    Ok(outcomes.chunks(nums.len() * seeds.len()).map(of_case).collect())
}

fn percent(outcome: &Outcome) -> f64 {
    100.0 * outcome.missed_share()
}

fn sgprs(effort: &Effort) -> Result<Reproduction, Error> {
    let mut reproduction = Reproduction::default();
    let mut missed = Table {
        header: [
            "contexts",
            "policy",
            "capacity",
            "fps at 30",
            "missed at 21",
            "at 24",
            "at 30",
        ]
        .map(String::from)
        .to_vec(),
        rows: Vec::new(),
        notes: vec!["ours (published); %, mean of the seeds".into()],
    };
    for published in &PUBLISHED {
        scenario(effort, published, &mut reproduction, &mut missed)?;
    }
    reproduction.tables.push(("Misses".into(), missed));
    ablation(effort, &mut reproduction)?;
    reproduction.findings = FINDINGS.iter().map(|finding| (*finding).to_string()).collect();
    Ok(reproduction)
}

/// Names of the four curves of a scenario.
fn names() -> [String; 4] {
    let of = |over: f64| format!("SGPRS {over:.1}x");
    ["naive".into(), of(1.0), of(1.5), of(2.0)]
}

/// Both capacities: as recorded, and such that the published plateau comes out.
fn scenario(
    effort: &Effort,
    published: &Published,
    reproduction: &mut Reproduction,
    missed: &mut Table,
) -> Result<(), Error> {
    let contexts = published.contexts;
    let mut cases = vec![Case::new("naive", contexts, 1.0)];
    cases.extend(OVERSUBSCRIPTION.map(|over| Case::new("sgprs", contexts, over)));
    for (place, fps) in published.fps.into_iter().enumerate().skip(1) {
        cases.push(Case {
            plateau_fps: Some(fps),
            ..cases[place].clone()
        });
    }
    let with_spread = |case: &Case| Case {
        spread: 0.15,
        ..case.clone()
    };
    cases.extend(cases[4..7].iter().map(with_spread).collect::<Vec<Case>>());
    let curves = curves(effort, &cases)?;
    let figures = &mut reproduction.figures;
    let near = |value: f64| Target::Between {
        low: value - CAMERAS_OFF,
        high: value + CAMERAS_OFF,
    };
    for (place, name) in names().iter().enumerate() {
        let (curve, named) = (&curves[place], format!("{contexts} contexts, {name}"));
        figures.push(Figure::of(
            format!("{named}: most cameras without a miss"),
            &curve.cameras(),
            near(published.cameras[place]),
        ));
        let fps = Target::Within {
            value: published.fps[place],
            part: FPS_PART,
        };
        figures.push(Figure::of(
            format!("{named}: highest throughput, fps"),
            &curve.fps_max(),
            fps,
        ));
        let kept = if place == 0 {
            Target::Between { low: 0.76, high: 0.8 }
        } else {
            // No throughput is above the highest.
            Target::Between { low: 0.97, high: 1.0 }
        };
        figures.push(Figure::of(
            format!("{named}: throughput at 30 over the highest"),
            &curve.kept(),
            kept,
        ));
        if place > 0 {
            figures.push(Figure::of(
                format!("{named}: most cameras without a miss, capacity as the published plateau"),
                &curves[3 + place].cameras(),
                near(published.cameras[place]),
            ));
        }
    }
    for (place, curve) in curves.iter().enumerate() {
        let (of, capacity) = match place {
            0..4 => (place, "recorded"),
            4..7 => (place - 3, "plateau"),
            _ => (place - 6, "plateau, spread 0.15"),
        };
        let beside = |ours: Option<f64>, published: Option<f64>| {
            let ours = ours.map_or("-".into(), show);
            published.map_or(ours.clone(), |published| format!("{ours} ({})", show(published)))
        };
        let fps = beside(curve.at(30, Outcome::fps), Some(published.fps_at_30[of]));
        let mut row = vec![contexts.to_string(), names()[of].clone(), capacity.into(), fps];
        let cells = [21, 24, 30].into_iter().zip(published.missed[of]);
        row.extend(cells.map(|(num, published)| beside(curve.at(num, percent), published)));
        missed.rows.push(row);
    }
    let all = || names().into_iter().zip(&curves);
    let fps: Vec<Series> = all()
        .map(|(name, curve)| curve.series(&name, Outcome::fps))
        .collect();
    let misses: Vec<Series> = all().map(|(name, curve)| curve.series(&name, percent)).collect();
    let plots = &mut reproduction.plots;
    plots.push((
        format!("Throughput over cameras, {contexts} contexts"),
        plot::lines("cameras", "frames a second", &fps, None),
    ));
    plots.push((
        format!("Missed frames over cameras, {contexts} contexts"),
        plot::lines("cameras", "missed (%)", &misses, None),
    ));
    Ok(())
}

/// What of SGPRS matters: rules with a part taken away, in three contexts with 1.5 times the GPU.
const ABLATION: [(&str, &str); 13] = [
    ("sgprs", "SGPRS"),
    ("sgprs:fifo=true", "first come, first served"),
    ("sgprs:deadlines=false", "deadlines of frames for those of stages"),
    ("sgprs:brake=false", "early stages do not wait"),
    ("sgprs:deadlines=false:brake=false", "both"),
    ("limit", "only the limit of six stages, first come first served"),
    ("limit:whole=true", "only a limit of six whole networks"),
    ("edf", "one context, earliest deadline first"),
    ("static", "contexts that do not overlap, each camera its own"),
    ("naive", "no limit"),
    ("sgprs:give-up=true", "SGPRS that gives up what would be late"),
    ("fixed", "six stages, the lowest camera first"),
    ("fixed:give-up=true", "the same that gives up what would be late"),
];
/// Places of `sgprs`, `limit`, `naive` and `fixed` there.
const SGPRS: usize = 0;
const LIMIT: usize = 5;
const NAIVE: usize = 9;
const FIXED: usize = 11;

fn ablation(effort: &Effort, reproduction: &mut Reproduction) -> Result<(), Error> {
    let case = |(rule, _): (&'static str, &str)| Case::new(rule, 3, 1.5);
    let curves = curves(effort, &ABLATION.map(case))?;
    let most = curves[SGPRS].fps_max();
    let of_limit = curves[LIMIT].fps_max();
    reproduction.figures.push(Figure::of(
        "highest throughput of only the limit of six stages over SGPRS's",
        &of_limit
            .iter()
            .zip(&most)
            .map(|(limit, most)| limit / most)
            .collect::<Vec<f64>>(),
        Target::Record,
    ));
    let missed = |place: usize| {
        curves[place].by_seed(|curve| {
            let at_24 = curve.iter().find(|(num, _)| *num == 24);
            at_24.map_or(f64::NAN, |(_, outcome)| percent(outcome))
        })
    };
    // What the highest throughput does not reach at 24 cameras, any order misses.
    let least = |fps: &f64| 100.0 * (1.0 - fps * PERIOD_S / 24.0).max(0.0);
    for (what, values) in [
        ("SGPRS", missed(SGPRS)),
        ("the lowest camera first", missed(FIXED)),
        (
            "no policy below its highest throughput",
            most.iter().map(least).collect(),
        ),
    ] {
        let what = format!("missed at 24 cameras, {what}, %");
        reproduction
            .figures
            .push(Figure::of(what, &values, Target::Record));
    }
    let cell = |value: Option<f64>| value.map_or("-".into(), show);
    let row = |((rule, does), curve): (&(&str, &str), &Curve)| {
        let mut row = vec![(*rule).to_string(), (*does).to_string()];
        row.extend([show(mean(&curve.cameras())), show(mean(&curve.fps_max()))]);
        row.push(cell(curve.at(30, Outcome::fps)));
        row.extend([23, 24, 25, 30].map(|num| cell(curve.at(num, percent))));
        row
    };
    let header = [
        "policy",
        "",
        "most cameras",
        "highest fps",
        "fps at 30",
        "missed at 23",
        "at 24",
        "at 25",
        "at 30",
    ];
    let table = Table {
        header: header.map(String::from).to_vec(),
        rows: ABLATION.iter().zip(&curves).map(row).collect(),
        notes: vec!["recorded capacity; most cameras without a miss; missed in %".into()],
    };
    reproduction.tables.push(("What of SGPRS matters".into(), table));
    for (rule, does) in [ABLATION[SGPRS], ABLATION[NAIVE]] {
        let heading = format!("24 cameras in three contexts, 1.5x, stage by stage: {rule} ({does})");
        let svg = case((rule, does)).timeline(24, effort.seeds(1)[0])?;
        reproduction.plots.push((heading, svg));
    }
    Ok(())
}

/// What the reader should know.
const FINDINGS: [&str; 5] = [
    "Naive keeps 82 % of its best, not below 80: the recorded row of one context falls from 665 to 522 frames a second. The authors' \
     naive runs had two and three contexts and lost a tenth more, which no recorded row has. It begins to miss at 22 cameras, theirs \
     at 21.",
    "Of three contexts that do not overlap the recorded row has 638 frames a second with six networks in flight, SGPRS's own run \
     714; we guess that six stages are lighter than six networks. Throughput and cameras of that row are missed; the five others are 4 to 6 % low \
     for the same reason. With the published plateau as the capacity the cameras come out, its throughput then says nothing.",
    "Our misses rise more steeply past the pivot: 24 cameras want 3 % more than there is, so nearly every frame is a little late. Stage \
     times that vary by 0.15 do not soften it. That the published curves are softer is not explained.",
    "Only the limit of six in flight matters: with first come first served the throughput is the same. Deadlines of stages and waiting of early \
     stages cost some: 64 % are missed at 24 cameras without both, 76 % with.",
    "There is room past the pivot, in whom to serve and not in which context: the lowest camera first misses 11 % at 24 cameras and 30 % at 30, \
     where no policy can miss fewer than 3 and 23 %. It starves the last cameras. So contexts have no learned policy here.",
];
