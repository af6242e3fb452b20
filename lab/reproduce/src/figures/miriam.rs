//! A critical and a best-effort network on one edge GPU: Miriam against streams, barriers and one after the other.

use pleach_env::Seed;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::run::in_parallel;
use pleach_experiments::evaluate::stats::mean;
use pleach_experiments::evaluate::table::Table;
use pleach_rooms::contexts::residents::{
    Arrivals, DEVICES, Device, Mix, Outcome, POLICIES, by_name, network, simulate,
};

use super::figure::show;
use super::{Benchmark, Effort, Figure, Reproduction, Target};

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "miriam",
    title: "Miriam: critical and best-effort inference on one edge GPU",
    source: "Miriam (SenSys'23; arXiv 2307.04339), as remembered: its shapes, not its tables",
    setup: "RTX 2060 and Jetson Xavier. Four mixes of its benchmark, who runs with whom from memory: AlexNet in a closed loop \
            beside CifarNet, SqueezeNet at 10 Hz beside AlexNet, GRU at 10 Hz (Poisson) beside ResNet, LSTM at 10 Hz beside \
            SqueezeNet; best effort in a closed loop; and, ours, two ResNets in closed loops. 10 s, four seeds. Blocks follow from the \
            networks' shapes; tile, issue of a block and launches are assumed. Elastic in the number of blocks, not of threads",
    run: miriam,
}];

/// Critical network, arrivals, best-effort network; the last mix is ours.
const MIXES: [(&str, &str, Arrivals, &str); 5] = [
    ("A", "alexnet", Arrivals::Closed, "cifarnet"),
    ("B", "squeezenet", Arrivals::Uniform(10.0), "alexnet"),
    ("C", "gru", Arrivals::Poisson(10.0), "resnet"),
    ("D", "lstm", Arrivals::Uniform(10.0), "squeezenet"),
    ("closed", "resnet", Arrivals::Closed, "resnet"),
];

/// One simulation: of a mix on a device, under a rule or the critical network alone.
type Play = (&'static Device, usize, Option<&'static str>, Seed);

fn play((device, place, rule, seed): &Play, length_s: f64) -> Result<Outcome, Error> {
    let (_, critical, arrivals, best_effort) = MIXES[*place];
    let best_effort = rule.map(|_| network(best_effort, device)).transpose()?;
    let mix = Mix {
        critical: network(critical, device)?,
        arrivals,
        best_effort,
        length_s,
        seed: *seed,
    };
    Ok(simulate(device, &mix, by_name(rule.unwrap_or("streams"))?)?)
}

fn miriam(effort: &Effort) -> Result<Reproduction, Error> {
    let (seeds, length_s) = (effort.seeds(4), effort.size(10.0, 1.0));
    let rules: Vec<Option<&str>> = std::iter::once(None)
        .chain(POLICIES.iter().map(|info| Some(info.name)))
        .collect();
    let mut plays: Vec<Play> = Vec::new();
    for device in &DEVICES {
        for place in 0..MIXES.len() {
            for rule in &rules {
                plays.extend(seeds.iter().map(|seed| (device, place, *rule, *seed)));
            }
        }
    }
    let outcomes = in_parallel("miriam", &effort.watcher, &plays, |one| play(one, length_s))?;
    let mut reproduction = Reproduction::default();
    let mut table = Table {
        header: [
            "device",
            "mix",
            "alone, ms",
            "rule",
            "latency",
            "throughput",
            "critical/s",
            "best effort/s",
        ]
        .map(String::from)
        .to_vec(),
        rows: Vec::new(),
        notes: vec![
            "latency of critical requests over alone, throughput over sequential; means of the seeds".into(),
        ],
    };
    let per_mix = outcomes.chunks(rules.len() * seeds.len());
    let mixes = DEVICES
        .iter()
        .flat_map(|device| MIXES.iter().map(move |mix| (device, mix)));
    for ((device, mix), outcomes) in mixes.zip(per_mix) {
        let by_rule: Vec<&[Outcome]> = outcomes.chunks(seeds.len()).collect();
        figures(device, mix.0, &by_rule, &rules, &mut reproduction.figures);
        rows(device, mix.0, &by_rule, &rules, &mut table);
    }
    reproduction.tables.push(("All rules".into(), table));
    reproduction.findings = FINDINGS.iter().map(|finding| (*finding).to_string()).collect();
    Ok(reproduction)
}

/// Of each seed, a figure over that of another rule.
fn over(ours: &[Outcome], theirs: &[Outcome], figure: fn(&Outcome) -> f64) -> Vec<f64> {
    let pairs = ours.iter().zip(theirs);
    pairs
        .map(|(ours, theirs)| figure(ours) / figure(theirs))
        .collect()
}

fn figures(
    device: &Device,
    mix: &str,
    by_rule: &[&[Outcome]],
    rules: &[Option<&str>],
    figures: &mut Vec<Figure>,
) {
    let of = |name: &str| by_rule[rules.iter().position(|rule| *rule == Some(name)).unwrap_or(0)];
    let (alone, miriam, streams, sequential) = (by_rule[0], of("miriam"), of("streams"), of("sequential"));
    let mut push = |what: &str, values: Vec<f64>, target: Target| {
        let is_theirs = mix != "closed";
        let target = if is_theirs { target } else { Target::Record };
        figures.push(Figure::of(
            format!("{}, mix {mix}: {what}", device.name),
            &values,
            target,
        ));
    };
    let between = |low, high| Target::Between { low, high };
    push(
        "critical latency of Miriam over alone",
        over(miriam, alone, Outcome::critical_ms),
        between(0.9, 1.1),
    );
    push(
        "throughput of Miriam over sequential",
        over(miriam, sequential, Outcome::throughput),
        between(1.5, 1.9),
    );
    push(
        "critical latency of streams over alone",
        over(streams, alone, Outcome::critical_ms),
        between(1.5, 2.0),
    );
    push(
        "throughput of streams over Miriam",
        over(streams, miriam, Outcome::throughput),
        Target::ClaimedAtLeast {
            value: 1.0,
            claim: "streams have the most",
        },
    );
}

fn rows(device: &Device, mix: &str, by_rule: &[&[Outcome]], rules: &[Option<&str>], table: &mut Table) {
    let place = |name| rules.iter().position(|rule| *rule == Some(name)).unwrap_or(0);
    let (alone, sequential) = (by_rule[0], by_rule[place("sequential")]);
    let of = |outcomes: &[Outcome], figure: &dyn Fn(&Outcome) -> f64| {
        show(mean(&outcomes.iter().map(figure).collect::<Vec<f64>>()))
    };
    for (rule, outcomes) in rules.iter().zip(by_rule).skip(1) {
        table.rows.push(vec![
            device.name.into(),
            mix.into(),
            of(alone, &Outcome::critical_ms),
            rule.unwrap_or_default().into(),
            show(mean(&over(outcomes, alone, Outcome::critical_ms))),
            show(mean(&over(outcomes, sequential, Outcome::throughput))),
            of(outcomes, &|outcome| {
                outcome.critical_ns.len() as f64 / outcome.length_s
            }),
            of(outcomes, &|outcome| {
                outcome.num_best_effort as f64 / outcome.length_s
            }),
        ]);
    }
}

/// What the reader should know.
const FINDINGS: [&str; 3] = [
    "At 10 Hz a critical network holds the GPU for 1 to 2 % of the time, so no rule can gain on one after the other: B, C and D are \
     missed by arithmetic on any GPU on which a request takes about a millisecond. The published gain must come from longer or more frequent \
     critical requests than ours.",
    "In A the small network runs in what AlexNet leaves, several times while AlexNet runs once: in requests a second that is four times, for \
     one after the other serves as many of both.",
    "Two ResNets in closed loops (ours) show the published shape on the small device: 1.04 of the latency alone and 1.54 of the \
     throughput for Miriam, 1.35 and 1.48 for streams. On the large one they do not meet: a ResNet of batch 1 fills less than half of its places.",
];
