//! What a tree could hold besides tiers, on one teacher's decisions: a slope in each leaf, or a tree that compares two candidates.
//!
//! `cargo run --release -p pleach-experiments --example leaf_forms -- checkpoints/reference/PhillyGang-v1.ckpt Pleach/PhillyGang-v1 16`
//! for 16 lists of each part. All forms are fitted to the same rows (the teacher's episodes, then three rounds in which a tree of
//! 16 tiers decides), and run on the same lists; docs/distilling-results.md has the table.
//!
//! - *tiers*: the mean of a leaf is the score; the shortest estimate comes first among equals.
//! - *slope*: the same tree; each leaf adds the one feature times a factor that fits its rows best.
//! - *pairs*: a tree over what two candidates differ in and the cluster, fitted to which of the two the teacher ranks higher. A
//!   candidate's score is what it wins against all others (Borda). A comparison needs n^2 walks and may contradict itself.

use std::error::Error;
use std::sync::Arc;

use pleach_distill::cart::{Binned, CartConfig, Grown, grow};
use pleach_distill::{Dataset, Recording, TargetConfig, Targets};
use pleach_env::{EnvConfig, Seed, SimConfig, Source, simulate};
use pleach_experiments::distill::parts::{Lists, PartRow, REPORTED, Rivals, in_words};
use pleach_experiments::evaluate::policy_spec::PolicySpec;
use pleach_experiments::evaluate::workload_source::env_of;
use pleach_experiments::progress::Watcher;
use pleach_scheduler::PolicyError;
use pleach_scheduler::observation::{NUM_CANDIDATE_FEATURES, NUM_GLOBAL_FEATURES};
use pleach_scheduler::policy::{ChoiceRule, DecisionPoint, Needs, Policy, TieKey};

const NUM_FEATURES: usize = NUM_CANDIDATE_FEATURES + NUM_GLOBAL_FEATURES;
const SEED: Seed = Seed(0);
const ROWS_MAX: usize = 300_000;
/// Rounds after the teacher's own, and episodes of each.
const ROUNDS: usize = 3;
const EPISODES: usize = 8;
const LEAVES: [usize; 4] = [4, 8, 16, 32];
/// Pairs of a decision: what was chosen against so many others, both ways round.
const OTHERS: usize = 8;

/// A row as the tree reads it.
type Row = [f32; NUM_FEATURES];

/// A score for each candidate of a decision.
type Score = dyn Fn(&[Row], &mut [f32]) + Send + Sync;

/// Whatever scores rows, as a policy.
#[derive(Clone)]
struct Scored {
    needs: Needs,
    score: Arc<Score>,
}

impl Policy for Scored {
    fn name(&self) -> &str {
        "scored"
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        ChoiceRule {
            tie_key: TieKey::ShortestEstimate,
            ..ChoiceRule::PLAIN
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let rows: Vec<Row> = (0..scores.len())
            .map(|index| joined(point.observation.row(index), point.observation.global))
            .collect();
        (self.score)(&rows, scores);
        Ok(())
    }
}

fn joined(candidate: &[f32], global: &[f32]) -> Row {
    let mut row = [0.0; NUM_FEATURES];
    row[..NUM_CANDIDATE_FEATURES].copy_from_slice(candidate);
    row[NUM_CANDIDATE_FEATURES..].copy_from_slice(global);
    row
}

/// Rows and what they should be given.
#[derive(Default)]
struct Table {
    rows: Vec<Row>,
    target: Vec<f32>,
    weight: Vec<f32>,
}

impl Table {
    fn fit(&self, leaves: usize) -> Grown {
        let value = |row: usize, feature: usize| self.rows[row][feature];
        let config = CartConfig::default();
        let data = Binned::new(self.rows.len(), NUM_FEATURES, config.bins, value);
        grow(&data, value, &self.target, &self.weight, leaves, &config, &[])
    }
}

/// Candidates and the teacher's scores, each centred on the mean of its decision.
fn single(data: &Dataset) -> Table {
    let points: Vec<usize> = (0..data.num_points()).collect();
    let targets = Targets::of(data, &points, &TargetConfig::default());
    let mut table = Table::default();
    for &point in &points {
        let found = data.point(point);
        for candidate in found.candidates.chunks_exact(NUM_CANDIDATE_FEATURES) {
            table.rows.push(joined(candidate, found.global));
        }
    }
    (table.target, table.weight) = (targets.target, targets.weight);
    table
}

/// What was chosen less each of some others, and the other way round; 1 and -1.
fn pairs(data: &Dataset) -> Table {
    let mut table = Table::default();
    for point in 0..data.num_points() {
        let found = data.point(point);
        let rows: Vec<&[f32]> = found.candidates.chunks_exact(NUM_CANDIDATE_FEATURES).collect();
        let others = (0..rows.len()).filter(|other| *other != found.choice);
        for other in others.take(OTHERS) {
            for (first, second, target) in [(found.choice, other, 1.0), (other, found.choice, -1.0)] {
                table
                    .rows
                    .push(difference(rows[first], rows[second], found.global));
                table.target.push(target);
                table.weight.push(1.0);
            }
        }
    }
    table
}

fn difference(first: &[f32], second: &[f32], global: &[f32]) -> Row {
    let less: Vec<f32> = first.iter().zip(second).map(|(a, b)| a - b).collect();
    joined(&less, global)
}

fn tiers(grown: &Grown, leaves: usize) -> Arc<Score> {
    let grown = grown.clone();
    Arc::new(move |rows, scores| {
        for (row, score) in rows.iter().zip(scores) {
            *score = grown.answer(leaves, |feature| row[feature]) as f32;
        }
    })
}

/// Value, feature and factor of each leaf, by the leaf's mean, which tells leaves apart.
fn slopes(grown: &Grown, table: &Table, leaves: usize) -> Arc<Score> {
    let mut of_leaf: std::collections::BTreeMap<u64, Vec<usize>> = std::collections::BTreeMap::new();
    for (number, row) in table.rows.iter().enumerate() {
        let mean = grown.answer(leaves, |feature| row[feature]);
        of_leaf.entry(mean.to_bits()).or_default().push(number);
    }
    let lines = of_leaf
        .into_iter()
        .map(|(leaf, rows)| (leaf, best_line(table, &rows)));
    let lines: std::collections::BTreeMap<u64, (f64, usize, f64)> = lines.collect();
    let grown = grown.clone();
    Arc::new(move |rows, scores| {
        for (row, score) in rows.iter().zip(scores) {
            let mean = grown.answer(leaves, |feature| row[feature]);
            let (value, feature, factor) = lines.get(&mean.to_bits()).copied().unwrap_or((mean, 0, 0.0));
            *score = (value + factor * f64::from(row[feature])) as f32;
        }
    })
}

/// The weighted least-squares line in the feature that leaves the least error.
fn best_line(table: &Table, rows: &[usize]) -> (f64, usize, f64) {
    let sum = |of: &dyn Fn(usize) -> f64| -> f64 {
        rows.iter()
            .map(|row| f64::from(table.weight[*row]) * of(*row))
            .sum()
    };
    let weight = sum(&|_| 1.0);
    let target = sum(&|row| f64::from(table.target[row])) / weight;
    let mut best = (0.0, (target, 0, 0.0));
    for feature in 0..NUM_FEATURES {
        let value = |row: usize| f64::from(table.rows[row][feature]);
        let mean = sum(&value) / weight;
        let spread = sum(&|row| (value(row) - mean) * (value(row) - mean));
        if spread <= 1e-9 * weight {
            continue;
        }
        let both = sum(&|row| (value(row) - mean) * (f64::from(table.target[row]) - target));
        let gain = both * both / spread;
        if gain > best.0 {
            let factor = both / spread;
            best = (gain, (target - factor * mean, feature, factor));
        }
    }
    best.1
}

fn borda(grown: &Grown, leaves: usize) -> Arc<Score> {
    let grown = grown.clone();
    Arc::new(move |rows, scores| {
        scores.fill(0.0);
        let answer = |first: &Row, second: &Row| {
            let (own, other) = (
                &first[..NUM_CANDIDATE_FEATURES],
                &second[..NUM_CANDIDATE_FEATURES],
            );
            let row = difference(own, other, &first[NUM_CANDIDATE_FEATURES..]);
            grown.answer(leaves, |feature| row[feature]) as f32
        };
        for (index, row) in rows.iter().enumerate() {
            let others = rows.iter().enumerate().filter(|(other, _)| *other != index);
            scores[index] = others
                .map(|(_, other)| answer(row, other) - answer(other, row))
                .sum();
        }
    })
}

/// The teacher's scores where it decides, then where a tree of 16 tiers does.
fn recorded(env: &EnvConfig, teacher: &PolicySpec) -> Result<Dataset, Box<dyn Error>> {
    let source = Source::open(env)?;
    let mut data = Dataset::new(SEED.child("leaf forms", 0), ROWS_MAX);
    let mut teacher = teacher.policy()?;
    let needs = teacher.needs();
    let mut actor: Option<Scored> = None;
    for round in 0..=ROUNDS {
        for episode in 0..EPISODES {
            let number = (round * EPISODES + episode) as u64;
            let draw = SEED.child("leaf forms/episode", number);
            let workload = source.workload(env, draw)?;
            let sim = SimConfig {
                seed: draw.0,
                ..env.sim.clone()
            };
            let rng = SEED.stream("leaf forms/record", number);
            let mut recording = match &mut actor {
                None => Recording::of_teacher(teacher.as_mut(), &mut data, rng),
                Some(actor) => Recording::of_actor(teacher.as_mut(), actor, 0.0, &mut data, rng),
            };
            simulate(&workload, &sim, &mut recording)?;
        }
        let score = tiers(&single(&data).fit(16), 16);
        actor = Some(Scored { needs, score });
    }
    Ok(data)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [teacher, task, lists] = args.as_slice() else {
        return Err("usage: leaf_forms TEACHER TASK LISTS".into());
    };
    let env = env_of(task, None, None)?;
    let teacher = PolicySpec::open(teacher)?.remove(0);
    let needs = teacher.policy()?.needs();
    let data = recorded(&env, &teacher)?;
    let (one, two) = (single(&data), pairs(&data));
    let most = LEAVES[LEAVES.len() - 1];
    let (of_one, of_two) = (one.fit(most), two.fit(most));
    let watcher = Watcher::nobody();
    let drawn = Lists::draw(
        &env,
        &REPORTED,
        (SEED.0, "leaf forms"),
        lists.parse()?,
        Rivals::Heuristics,
        &watcher,
    )?;
    let print = |name: &str, rows: &[PartRow]| {
        let words: Vec<String> = rows.iter().map(|row| in_words(&row.jct)).collect();
        println!("| {name} | {} |", words.join(" | "));
    };
    println!("| form | {} |", drawn.parts.join(" | "));
    println!("|---|{}", "---:|".repeat(drawn.parts.len()));
    for leaves in LEAVES {
        for (name, score) in [
            ("tiers", tiers(&of_one, leaves)),
            ("slope", slopes(&of_one, &one, leaves)),
            ("pairs", borda(&of_two, leaves)),
        ] {
            let name = format!("{leaves} leaves, {name}");
            let policy = Scored { needs, score };
            let spec = PolicySpec::made(&name, move || -> Box<dyn Policy> { Box::new(policy.clone()) });
            print(&name, &drawn.rows(&drawn.all(&spec)?));
        }
    }
    print("*teacher*", &drawn.rows(&drawn.all(&teacher)?));
    Ok(())
}
