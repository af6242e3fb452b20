//! Solves programmes like Gavel's and prints how long that takes and their objective, and with a folder as argument
//! writes them there as MPS files, so that any other solver can be held against ours. docs/solvers.md has the figures.
//!
//! ```text
//! cargo run --release -p pleach-baselines --example solver_programmes -- /tmp/programmes
//! ```
//!
//! Speeds are those of seven model families on K80, P100 and V100 GPUs (Gavel's table, batch sizes as in its section 7),
//! times a random 0.8 to 1.2 for each of 26 classes; a pair keeps the speeds of its families beside each other on a V100.

#![allow(
    clippy::disallowed_methods,
    reason = "an example; its last places are nobody's promise"
)]

use std::fmt::Write as _;
use std::time::Instant;

use pleach_baselines::linear_program::{Limits, LinearProgram};

const SPEEDS: [[f64; 3]; 7] = [
    [1.81, 11.7, 18.0],
    [0.62, 2.62, 4.39],
    [1.75, 5.09, 8.62],
    [3.44, 5.68, 7.18],
    [17.1, 58.2, 64.7],
    [10.4, 16.6, 7.5],
    [0.50, 2.40, 4.43],
];
/// Speed of the row's family beside the column's, as a part of its speed alone; the order is that of the speeds.
const BESIDE: [[f64; 7]; 7] = [
    [0.91, 0.63, 0.81, 0.99, 0.98, 0.96, 0.81],
    [0.76, 0.38, 0.48, 0.50, 0.49, 0.51, 0.46],
    [0.58, 0.26, 0.75, 0.78, 0.75, 0.73, 0.68],
    [0.69, 0.20, 0.77, 0.51, 0.48, 0.60, 0.64],
    [0.67, 0.42, 0.72, 0.64, 0.64, 0.80, 0.59],
    [0.73, 0.21, 0.66, 0.77, 0.68, 0.33, 0.42],
    [0.55, 0.24, 0.76, 0.71, 0.65, 0.60, 0.62],
];

/// A programme that can be handed to our solver and written down.
struct Shown {
    name: String,
    /// Factor of the objective and upper end; all begin at 0.
    columns: Vec<(f64, f64)>,
    is_integer: bool,
    /// Terms, and the limit that their sum does not pass.
    rows: Vec<(Vec<(usize, f64)>, f64)>,
}

impl Shown {
    fn program(&self) -> LinearProgram {
        let mut program = LinearProgram::new();
        let add = |(objective, high): &(f64, f64)| match self.is_integer {
            true => program.integer(*objective, 0, *high as i32),
            false => program.column(*objective, 0.0, *high),
        };
        let columns: Vec<_> = self.columns.iter().map(add).collect();
        for (terms, limit) in &self.rows {
            let terms = terms.iter().map(|(column, factor)| (columns[*column], *factor));
            program.at_most(terms.collect(), *limit);
        }
        program
    }

    /// As free-form MPS, to be minimised: the objective is written with its sign turned.
    fn mps(&self) -> String {
        let mut text = format!("NAME {}\nROWS\n N cost\n", self.name);
        let mut by_column: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.columns.len()];
        for (row, (terms, _)) in self.rows.iter().enumerate() {
            let _ = writeln!(text, " L r{row}");
            for (column, factor) in terms {
                by_column[*column].push((row, *factor));
            }
        }
        text.push_str("COLUMNS\n");
        if self.is_integer {
            text.push_str(" m 'MARKER' 'INTORG'\n");
        }
        for (column, terms) in by_column.iter().enumerate() {
            let _ = writeln!(text, " c{column} cost {:e}", -self.columns[column].0);
            for (row, factor) in terms {
                let _ = writeln!(text, " c{column} r{row} {factor:e}");
            }
        }
        text.push_str("RHS\n");
        for (row, (_, limit)) in self.rows.iter().enumerate() {
            let _ = writeln!(text, " rhs r{row} {limit:e}");
        }
        text.push_str("BOUNDS\n");
        for (column, (_, high)) in self.columns.iter().enumerate() {
            if high.is_finite() {
                let _ = writeln!(text, " UP b c{column} {high:e}");
            }
        }
        text.push_str("ENDATA\n");
        text
    }
}

/// SplitMix64: numbers in [0, 1).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() * end as f64) as usize
    }
}

/// A job or some equal jobs: family, speed on each type, GPUs, number of jobs, work.
struct Jobs {
    family: usize,
    speed: [f64; 3],
    gpus: f64,
    count: f64,
    work: f64,
}

/// `num` jobs of 26 classes and four gang sizes; equal ones counted together where `grouped`.
fn jobs(num: usize, grouped: bool) -> Vec<Jobs> {
    let mut random = Random(1);
    let class_factor: Vec<f64> = (0..26).map(|_| 0.8 + 0.4 * random.next()).collect();
    let mut all: Vec<(usize, Jobs)> = Vec::new();
    for _ in 0..num {
        let class = random.below(26);
        let gang = match random.next() {
            draw if draw < 0.7 => 0,
            draw if draw < 0.8 => 1,
            draw if draw < 0.95 => 2,
            _ => 3,
        };
        let hours = 0.5 + 20.0 * random.next();
        let family = class % 7;
        let known = all
            .iter_mut()
            .find(|(key, _)| grouped && *key == class * 4 + gang);
        if let Some((_, jobs)) = known {
            jobs.count += 1.0;
            continue;
        }
        let jobs = Jobs {
            family,
            speed: SPEEDS[family].map(|speed| speed * class_factor[class]),
            gpus: f64::from(1 << gang),
            count: 1.0,
            work: hours,
        };
        all.push((class * 4 + gang, jobs));
    }
    all.into_iter().map(|(_, jobs)| jobs).collect()
}

/// Max-min fairness or (with the work of each job) the shortest makespan: the least share of all is as large as can be.
fn fair(name: &str, jobs: &[Jobs], gpus_per_type: f64, packed: bool, makespan: bool) -> Shown {
    let mut columns = vec![(1.0, f64::INFINITY)];
    let mut rows = Vec::new();
    let mut capacity: [Vec<(usize, f64)>; 3] = Default::default();
    let mut time: Vec<Vec<(usize, f64)>> = vec![Vec::new(); jobs.len()];
    // The least share, less what a job gets, is at most nothing.
    let mut gets: Vec<Vec<(usize, f64)>> = vec![vec![(0, 1.0)]; jobs.len()];
    let mean = |job: &Jobs| job.speed.iter().sum::<f64>() / 3.0;
    let weight = |job: &Jobs| mean(job) * if makespan { job.work } else { 1.0 / job.gpus };
    for (index, job) in jobs.iter().enumerate() {
        for (kind, capacity) in capacity.iter_mut().enumerate() {
            let column = columns.len();
            columns.push((0.0, f64::INFINITY));
            time[index].push((column, 1.0));
            gets[index].push((column, -job.speed[kind] / weight(job) / job.count));
            capacity.push((column, job.gpus));
        }
    }
    for (a, first) in jobs.iter().enumerate().filter(|_| packed) {
        for (b, second) in jobs.iter().enumerate().skip(a) {
            let (ab, ba) = (
                BESIDE[first.family][second.family],
                BESIDE[second.family][first.family],
            );
            if first.gpus != second.gpus || ab + ba < 1.1 || (a == b && first.count < 2.0) {
                continue;
            }
            for (kind, capacity) in capacity.iter_mut().enumerate() {
                let column = columns.len();
                columns.push((0.0, f64::INFINITY));
                capacity.push((column, first.gpus));
                if a == b {
                    time[a].push((column, 2.0));
                    gets[a].push((
                        column,
                        -2.0 * ab * first.speed[kind] / weight(first) / first.count,
                    ));
                    continue;
                }
                for (index, job, part) in [(a, first, ab), (b, second, ba)] {
                    time[index].push((column, 1.0));
                    gets[index].push((column, -part * job.speed[kind] / weight(job) / job.count));
                }
            }
        }
    }
    rows.extend(gets.into_iter().map(|terms| (terms, 0.0)));
    rows.extend(time.into_iter().zip(jobs).map(|(terms, job)| (terms, job.count)));
    rows.extend(capacity.into_iter().map(|terms| (terms, gpus_per_type)));
    Shown {
        name: name.into(),
        columns,
        is_integer: false,
        rows,
    }
}

/// One configuration (0 to 4 doublings of a GPU on one of three types) for every job: a programme like Sia's.
fn configurations(num: usize, gpus_per_type: f64) -> Shown {
    let mut shown = Shown {
        name: format!("configurations-{num}"),
        columns: Vec::new(),
        is_integer: true,
        rows: Vec::new(),
    };
    let mut capacity: [Vec<(usize, f64)>; 3] = Default::default();
    for job in jobs(num, false) {
        let first = shown.columns.len();
        for (kind, capacity) in capacity.iter_mut().enumerate() {
            for doubling in 0..5 {
                let gpus = f64::from(1 << doubling);
                let goodput = job.speed[kind] / job.speed[0] * gpus.powf(0.8);
                capacity.push((shown.columns.len(), gpus));
                shown.columns.push((goodput.sqrt(), 1.0));
            }
        }
        let one = (first..shown.columns.len()).map(|column| (column, 1.0));
        shown.rows.push((one.collect(), 1.0));
    }
    shown
        .rows
        .extend(capacity.into_iter().map(|terms| (terms, gpus_per_type)));
    shown
}

fn main() {
    let folder = std::env::args().nth(1);
    let mut all = Vec::new();
    for num in [60, 250, 1000] {
        let alone = jobs(num, false);
        all.push(fair(&format!("las-{num}"), &alone, 36.0, false, false));
        all.push(fair(&format!("makespan-{num}"), &alone, 36.0, false, true));
    }
    all.push(fair("las-packed-60", &jobs(60, false), 36.0, true, false));
    all.push(fair("las-packed-250", &jobs(250, false), 36.0, true, false));
    all.push(fair("las-1000-grouped", &jobs(1000, true), 36.0, false, false));
    all.push(fair(
        "las-packed-1000-grouped",
        &jobs(1000, true),
        36.0,
        true,
        false,
    ));
    all.push(configurations(60, 36.0));
    all.push(configurations(250, 128.0));
    println!("programme,columns,rows,terms,time_ms,objective,is_best");
    for shown in all {
        let program = shown.program();
        if let Some(folder) = &folder {
            let path = format!("{folder}/{}.mps", shown.name);
            if let Err(error) = std::fs::write(&path, shown.mps()) {
                eprintln!("{path}: {error}");
            }
        }
        let begin = Instant::now();
        let answer = program.solve(Limits::default());
        let time_ms = begin.elapsed().as_secs_f64() * 1e3;
        let (objective, is_best) = match answer {
            Ok(answer) => (answer.objective.to_string(), answer.is_best.to_string()),
            Err(error) => (error.to_string(), String::new()),
        };
        println!(
            "{},{},{},{},{time_ms:.1},{objective},{is_best}",
            shown.name,
            program.num_columns(),
            shown.rows.len(),
            program.num_terms(),
        );
    }
}
