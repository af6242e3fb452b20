//! Constants of the law, fitted to the rows that are marked to fit by.

use std::collections::BTreeMap;

use pleach_scheduler::portable_math::{exp, ln};
use pleach_serving::llm::{Constants, ENGINE_NAMES, ENGINES, Levels, NUM_CONSTANTS, NUM_LEVELS, Pace};

use super::rows::Held;

/// A set of numbers: constants, levels of engines, and what measurements of the most reach.
#[derive(Clone, Debug)]
struct Set {
    constants: [f64; NUM_CONSTANTS],
    /// In the order of [`Levels::of`].
    levels: [[f64; NUM_LEVELS]; ENGINES.len()],
    most_part: f64,
}

/// Sets of numbers: of families of GPU types with enough rows, and one for all others.
pub(super) struct Fitted {
    shared: Set,
    families: BTreeMap<&'static str, Set>,
}

/// Where a fit begins.
const START: Set = Set {
    constants: [
        3.5e-5, 2e-5, 1e-5, 1.5e-5, 1e-5, 4e-12, 5e-12, 0.85, 0.8, 0.7, 0.65, 0.4, 0.6,
    ],
    levels: [[1.0, 1.0, 1.0, 0.0, 0.0]; ENGINES.len()],
    most_part: 0.85,
};
/// Largest shares of bandwidth and of peak, the last of the constants. FlashAttention-3 reaches 0.75 (740 of 989 TFLOPS); the others are
/// *assumed*.
const SHARES_MAX: [f64; 6] = [1.0, 1.0, 1.0, 0.85, 0.85, 0.75];
const FIRST_SHARE: usize = NUM_CONSTANTS - SHARES_MAX.len();
/// Rows that a family needs for a set of its own, and what it costs to leave the one for all by a factor of e, in rows.
const FAMILY_ROWS_MIN: usize = 15;
const AWAY: f64 = 0.5;
/// Sweeps over all numbers at most, and how often steps begin anew.
const SWEEPS: usize = 40;
const ROUNDS: usize = 2;
/// Waits before the queue from which one is chosen: up to 40 steps, 0.1 apart, and 40 us a token of the prompt, 0.5 apart.
const WAITS: [(u32, f64); 2] = [(400, 0.1), (80, 0.5e-6)];

/// A number of a set.
#[derive(Clone, Copy, Debug)]
enum Free {
    Constant(usize),
    Level(usize, usize),
    MostPart,
}

impl Set {
    fn number(&mut self, free: Free) -> &mut f64 {
        match free {
            Free::Constant(place) => &mut self.constants[place],
            Free::Level(engine, place) => &mut self.levels[engine][place],
            Free::MostPart => &mut self.most_part,
        }
    }

    fn is_within(&self, free: Free) -> bool {
        match free {
            Free::Constant(place) if place >= FIRST_SHARE => {
                (0.05..=SHARES_MAX[place - FIRST_SHARE]).contains(&self.constants[place])
            }
            Free::Constant(_) => true,
            Free::Level(engine, place) => (0.2..=5.0).contains(&self.levels[engine][place]),
            Free::MostPart => self.most_part <= 1.0,
        }
    }

    fn pace(&self, held: &Held) -> Option<Pace> {
        let engine = held.server.engine.name;
        let place = ENGINE_NAMES.iter().position(|name| *name == engine)?;
        let levels = Levels::of(self.levels[place]);
        held.server
            .pace_with(&Constants::of(self.constants), &levels)
            .ok()
    }

    /// The logarithm of what the law says over what was measured; 1 where it says that the model does not fit.
    fn miss(&self, held: &Held) -> f64 {
        let pace = self.pace(held);
        pace.map_or(1.0, |pace| {
            ln(held.predicted(&pace, self.most_part) / held.measured)
        })
    }

    /// Mean of the misses, each at most 1 so that no single one decides; with what it costs to leave another set.
    fn loss(&self, rows: &[&Held], from: Option<&Set>) -> f64 {
        let sum: f64 = rows.iter().map(|held| self.miss(held).abs().min(1.0)).sum();
        let away: f64 = from.map_or(0.0, |from| {
            let both = self.constants.iter().zip(&from.constants);
            AWAY * both.map(|(own, other)| ln(own / other).abs()).sum::<f64>()
        });
        (sum + away) / rows.len() as f64
    }

    /// Each free number in turn goes up or down by a factor while that helps, in ever smaller steps.
    fn fitted(self, rows: &[&Held], free: &[Free], from: Option<&Set>) -> Set {
        let (mut best, mut set) = (self.loss(rows, from), self);
        let mut steps = vec![0.3_f64; free.len()];
        for _ in 0..SWEEPS {
            for (step, free) in steps.iter_mut().zip(free) {
                let better = [*step, -*step].into_iter().find_map(|by| {
                    let mut other = set.clone();
                    *other.number(*free) *= exp(by);
                    let loss = other.loss(rows, from);
                    (other.is_within(*free) && loss < best - 1e-7).then_some((other, loss))
                });
                match better {
                    Some(found) => (set, best) = found,
                    None => *step *= 0.6,
                }
            }
            if steps.iter().all(|step| *step < 0.02) {
                break;
            }
        }
        set
    }
}

/// Constants; of all engines but TensorRT-LLM's, to which they are relative, the levels; what the most reach. Old engines were measured
/// with many requests only, which says nothing of the times of their layers.
fn shared() -> Vec<Free> {
    let engines = ENGINE_NAMES
        .iter()
        .enumerate()
        .filter(|(_, name)| **name != "trtllm");
    let levels = engines.flat_map(|(engine, name)| {
        let first = usize::from(name.contains("2024"));
        (first..3).map(move |place| Free::Level(engine, place))
    });
    let constants = (0..NUM_CONSTANTS).map(Free::Constant);
    constants.chain(levels).chain([Free::MostPart]).collect()
}

impl Fitted {
    /// To some rows, at least one.
    pub fn of(rows: &[&Held]) -> Fitted {
        let (mut set, free) = (START, shared());
        for _ in 0..ROUNDS {
            set = set.fitted(rows, &free, None);
        }
        let mut by_family = BTreeMap::<&str, Vec<&Held>>::new();
        for held in rows {
            by_family.entry(held.server.gpu.family).or_default().push(held);
        }
        by_family.retain(|_, rows| rows.len() >= FAMILY_ROWS_MIN);
        let constants: Vec<Free> = (0..NUM_CONSTANTS).map(Free::Constant).collect();
        let families = by_family
            .iter()
            .map(|(family, rows)| (*family, set.clone().fitted(rows, &constants, Some(&set))));
        let mut fitted = Fitted {
            families: families.collect(),
            shared: set,
        };
        fitted.wait(rows);
        fitted
    }

    fn set(&self, held: &Held) -> &Set {
        self.families.get(held.server.gpu.family).unwrap_or(&self.shared)
    }

    /// Chooses the wait before the queue of each engine by times to the first token, played without it.
    fn wait(&mut self, rows: &[&Held]) {
        let mut played = BTreeMap::<&str, Vec<Played>>::new();
        for held in rows {
            if let (Some(pace), Some(ttft_s)) = (self.set(held).pace(held), held.low_ttft_s()) {
                let of_engine = played.entry(held.server.engine.name).or_default();
                of_engine.push(Played {
                    own_s: held.played(&pace)[0],
                    step_s: pace.token_s(1, 0),
                    prompt: held.prompt,
                    measured_s: ttft_s,
                });
            }
        }
        let all: Vec<_> = played.values().flatten().copied().collect();
        for (place, name) in ENGINE_NAMES.iter().enumerate() {
            // An engine without such rows waits as all do.
            let wait = before_queue(played.get(name).unwrap_or(&all));
            for set in self.families.values_mut().chain([&mut self.shared]) {
                set.levels[place][3..].copy_from_slice(&wait);
            }
        }
    }

    /// What the law says over what was measured, less 1.
    pub fn error(&self, held: &Held) -> f64 {
        exp(self.set(held).miss(held)) - 1.0
    }

    /// What measurements of the most reach.
    pub fn most_part(&self) -> f64 {
        self.shared.most_part
    }

    /// The rows of the program's file.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let row = |kind: &str, name: &str, numbers: &[f64]| {
            let numbers = numbers.iter().map(|number| format!("{number:.3e}"));
            [kind.to_string(), name.to_string()]
                .into_iter()
                .chain(numbers)
                .collect()
        };
        let families = self.families.iter().map(|(name, set)| (*name, set));
        let sets = [("all", &self.shared)].into_iter().chain(families);
        let gpus = sets.map(|(name, set)| row("gpu", name, &set.constants));
        let engines = ENGINE_NAMES.iter().zip(&self.shared.levels);
        gpus.chain(engines.map(|(name, levels)| row("engine", name, levels)))
            .collect()
    }
}

/// A time to the first token that was played without a wait before the queue, and the measured one.
#[derive(Clone, Copy)]
struct Played {
    own_s: f64,
    step_s: f64,
    prompt: f64,
    measured_s: f64,
}

/// The wait before the queue with which times to the first token miss the measured ones least: steps of one request, and s for each
/// token of the prompt.
fn before_queue(played: &[Played]) -> [f64; 2] {
    let [steps, tokens] = WAITS.map(|(num, apart)| (0..=num).map(move |place| f64::from(place) * apart));
    let waits = steps.flat_map(|steps| tokens.clone().map(move |token_s| [steps, token_s]));
    let miss = |[steps, token_s]: [f64; 2]| {
        let each = played.iter().map(|row| {
            let wait_s = steps * row.step_s + token_s * row.prompt;
            ln((row.own_s + wait_s) / row.measured_s).abs().min(1.0)
        });
        each.sum::<f64>()
    };
    let missed = waits.map(|wait| (miss(wait), wait));
    missed
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .map_or([0.0; 2], |(_, wait)| wait)
}
