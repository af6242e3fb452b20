//! The grid file: a base configuration, lists of values to try, and seeds. `plan` turns it into a manifest.
//!
//! ```toml
//! name = "load"
//! seed = 0              # root of all seeds of the sweep
//! seeds = 3             # how many, or a list of them: [0, 1, 2]
//!
//! [base]
//! num_jobs = 2000
//! workload = "philly-like"
//!
//! [grid]                # every combination is tried with every seed
//! load = [0.6, 0.8, 1.0]
//! policy = ["fifo", "srtf"]
//!
//! draws = 20            # at the top: every draw is tried with every combination
//! [draw]
//! num_envs = { choice = [16, 64] }
//!
//! sampler = "tpe"       # at the top: draws that are added to a manifest are learned from its results
//!
//! [halving]             # all with little, one in three with more
//! setting = "train.num_updates"
//! values = [10, 30, 90]
//! ```
//! Units are numbered by rung, then by draw, with the last key of the grid turning fastest and seeds fastest of all; keys are taken
//! in the order of their names. All combinations of one seed share its random numbers, so that policies can be compared in pairs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use pleach_env::Seed;
use pleach_scheduler::Problem;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::draw::Draw;
use super::halving::{Halving, HalvingFile};
use super::manifest::{MAX_UNITS, Manifest, ManifestUnit};
use super::rungs::score;
use super::tpe::{self, Known};
use crate::error::Error;
use crate::evaluate::metric::MAIN_METRIC;
use crate::file_kind::FileKind;
use crate::run_folder::atomic_file::{finite, read_text};

/// Bound on the size of a grid file.
const GRID_BYTES_MAX: u64 = 1 << 20;
/// Bound on the depth of a configuration.
const DEPTH_MAX: usize = 16;

/// A grid file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Name of the sweep, for headings.
    pub name: String,
    /// Root of all seeds.
    #[serde(default)]
    pub seed: u64,
    /// Seeds to try each combination with.
    #[serde(default)]
    pub seeds: Seeds,
    /// Configuration that all units share.
    #[serde(default)]
    pub base: Map<String, Value>,
    /// Values to try, as lists under (nested or dotted) keys.
    #[serde(default)]
    pub grid: Map<String, Value>,
    /// Values that are drawn: how, under (nested or dotted) keys.
    #[serde(default)]
    pub draw: Map<String, Value>,
    /// How often they are drawn.
    #[serde(default)]
    pub draws: Option<usize>,
    /// How draws are made that a manifest takes beyond those that it has.
    #[serde(default)]
    pub sampler: Sampler,
    /// What learned draws make better; as rungs rank by it.
    #[serde(default)]
    pub metric: Option<String>,
    /// Rungs, of which the better part goes on.
    #[serde(default)]
    pub halving: Option<HalvingFile>,
}

/// How more draws are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampler {
    /// Each for itself.
    #[default]
    Random,
    /// By what those that ended came to.
    Tpe,
}

/// How many seeds, or which.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Seeds {
    /// 0, 1, 2, ... so many.
    Count(u64),
    /// These.
    List(Vec<u64>),
}

impl Default for Seeds {
    fn default() -> Seeds {
        Seeds::Count(1)
    }
}

impl Grid {
    /// Reads a grid file.
    ///
    /// # Errors
    /// [`Error::Problem`], or [`Error::Problem`] with line and column.
    pub fn read(path: &Path) -> Result<Grid, Error> {
        Grid::read_toml(path).map_err(|error| FileKind::Grid.or_other(path, error))
    }

    fn read_toml(path: &Path) -> Result<Grid, Error> {
        let text = read_text(path, GRID_BYTES_MAX)?;
        let grid = toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            Problem::at_byte(path, &text, at, error.message())
        })?;
        // Values are JSON from here on, which has no word for these.
        let table = toml::from_str(&text).map_err(|error| Error::data(path, error.to_string()))?;
        finite(&table).map_err(|message| Error::data(path, message))?;
        Ok(grid)
    }

    /// The manifest of all combinations.
    ///
    /// # Errors
    /// [`Error::Problem`] where a list, key or count cannot be used.
    pub fn plan(&self) -> Result<Manifest, Error> {
        self.plan_after(&Known::default())
    }

    /// The manifest of a study that takes more draws: those of `before` stay, and what came of them in `out` is known.
    ///
    /// # Errors
    /// As [`Grid::plan`].
    pub fn plan_more(&self, before: &Manifest, out: &Path) -> Result<Manifest, Error> {
        let metric = self.metric.as_deref().unwrap_or(MAIN_METRIC);
        let known = self.known(before, |units| score(before, out, metric, units))?;
        self.plan_after(&known)
    }

    /// The draws of a manifest and what they came to; none of one with rungs, which rank all at once.
    pub(super) fn known(
        &self,
        before: &Manifest,
        score: impl Fn(Range<usize>) -> Option<f64>,
    ) -> Result<Known, Error> {
        let mut axes = BTreeMap::new();
        flatten_lists("", &self.grid, &mut axes, 0)?;
        let keys = Draw::all(&self.draw)?;
        let num = axes.values().map(Vec::len).product::<usize>() * self.seeds()?.len();
        let mut known = Known::default();
        if before.halving().is_some() || keys.is_empty() {
            return Ok(known);
        }
        for (number, units) in before.units().chunks_exact(num.max(1)).enumerate() {
            let drawn = units[0].params.iter().filter(|(key, _)| keys.contains_key(*key));
            known
                .draws
                .push(drawn.map(|(key, value)| (key.clone(), value.clone())).collect());
            known.scores.push(score(number * num..(number + 1) * num));
        }
        Ok(known)
    }

    /// The manifest with the draws that are known and those that follow from them.
    ///
    /// # Errors
    /// As [`Grid::plan`].
    pub(super) fn plan_after(&self, known: &Known) -> Result<Manifest, Error> {
        let mut axes = BTreeMap::new();
        flatten_lists("", &self.grid, &mut axes, 0)?;
        let (draws, num_draws) = self.draws(&axes)?;
        let seeds = self.seeds()?;
        let product = |total: usize, num: usize| total.checked_mul(num).filter(|&total| total <= MAX_UNITS);
        let num_combinations = axes
            .values()
            .try_fold(1, |total, values| product(total, values.len()));
        let per_rung = num_combinations
            .and_then(|num| product(num, num_draws))
            .and_then(|num| product(num, seeds.len()));
        let halving = match (&self.halving, per_rung) {
            (Some(file), Some(num)) => Some(file.plan(num / seeds.len(), seeds.len())?),
            _ => None,
        };
        if let Some(halving) = &halving {
            self.refuse_twice(halving, &axes, &draws)?;
        }
        let rungs = halving.as_ref().map_or(1, |halving| halving.values.len());
        let num_units = per_rung.and_then(|num| product(num, rungs));
        let num_units = num_units.ok_or_else(|| {
            let hint = "Take fewer values or seeds, or make two sweeps.";
            Error::config(
                "grid",
                "more combinations",
                format!("at most {MAX_UNITS} units"),
                hint,
            )
        })?;
        let drawn: Vec<BTreeMap<String, Value>> = (0..num_draws)
            .map(|number| {
                let value =
                    |(key, draw): (&String, &Draw)| (key.clone(), self.value(draw, key, number, known));
                draws.iter().map(value).collect()
            })
            .collect();
        let units = (0..num_units)
            .map(|index| {
                let replicate = seeds[index % seeds.len()];
                let configuration = index / seeds.len();
                let num_combinations = num_combinations.unwrap_or(1);
                let mut params = combination(&axes, configuration % num_combinations);
                let number = configuration / num_combinations % num_draws;
                params.extend(drawn[number].clone());
                if let Some(halving) = &halving {
                    let rung = index / (num_units / rungs);
                    params.insert(halving.setting.clone(), halving.values[rung].into());
                }
                ManifestUnit {
                    index,
                    params,
                    replicate,
                    seed: unit_seed(self.seed, replicate),
                    hash: String::new(),
                }
            })
            .collect();
        Ok(Manifest::new(self.name.clone(), self.base.clone(), units)?.with_rungs(halving))
    }

    /// The value of a draw: as it was made, or else as the sampler makes it.
    fn value(&self, draw: &Draw, key: &str, number: usize, known: &Known) -> Value {
        let made = known
            .draws
            .get(number)
            .and_then(|values| values.get(key))
            .cloned();
        let learns = self.sampler == Sampler::Tpe && !known.draws.is_empty();
        let learned = || {
            learns
                .then(|| tpe::value(draw, (self.seed, key, number), known))
                .flatten()
        };
        made.or_else(learned)
            .unwrap_or_else(|| draw.value(self.seed, key, number))
    }

    /// How settings are drawn, and how often.
    fn draws(&self, axes: &BTreeMap<String, Vec<Value>>) -> Result<(BTreeMap<String, Draw>, usize), Error> {
        let draws = Draw::all(&self.draw)?;
        if let Some(key) = draws.keys().find(|key| axes.contains_key(*key)) {
            let hint = "List its values, or draw them.";
            return Err(Error::config(
                format!("draw.{key}"),
                "given",
                "each key once",
                hint,
            ));
        }
        match (self.draws, draws.is_empty()) {
            (None, true) => Ok((draws, 1)),
            (Some(num), false) if (1..=MAX_UNITS).contains(&num) => Ok((draws, num)),
            (num, _) => {
                let num = num.map_or_else(|| "nothing".to_string(), |num| num.to_string());
                let allowed = format!("1 to {MAX_UNITS}, with what is drawn under [draw]");
                let hint = "Write draws = 20 above the tables, and [draw] with a setting or more.";
                Err(Error::config("draws", num, allowed, hint))
            }
        }
    }

    /// Refuses rungs over what is set elsewhere too.
    fn refuse_twice(
        &self,
        halving: &Halving,
        axes: &BTreeMap<String, Vec<Value>>,
        draws: &BTreeMap<String, Draw>,
    ) -> Result<(), Error> {
        let key = &halving.setting;
        Error::refuse_if(
            axes.contains_key(key) || draws.contains_key(key) || self.base.contains_key(key),
            "halving.setting",
            key,
            "a setting of the rungs alone",
            "The rungs say its value: take it out elsewhere.",
        )?;
        Ok(())
    }

    fn seeds(&self) -> Result<Vec<u64>, Error> {
        let refuse = |value: String, hint: &str| {
            Err(Error::config(
                "seeds",
                value,
                format!("1 to {MAX_UNITS} different seeds"),
                hint,
            ))
        };
        match &self.seeds {
            Seeds::Count(count) if (1..=MAX_UNITS as u64).contains(count) => Ok((0..*count).collect()),
            Seeds::Count(count) => refuse(count.to_string(), "Write seeds = 3."),
            Seeds::List(list) => {
                let mut unique = list.clone();
                unique.sort_unstable();
                unique.dedup();
                if list.is_empty() || list.len() > MAX_UNITS || unique.len() < list.len() {
                    return refuse(
                        format!("{} numbers", list.len()),
                        "Write seeds = [0, 1, 2], each once.",
                    );
                }
                Ok(list.clone())
            }
        }
    }
}

/// The seed of all units with this replicate. 53 bits, so that any reader of JSON keeps it exactly.
fn unit_seed(root: u64, replicate: u64) -> u64 {
    Seed(root).child("sweep/unit", replicate).0 >> 11
}

/// Collects lists under dotted keys; a table inside the grid only groups keys.
fn flatten_lists(
    prefix: &str,
    table: &Map<String, Value>,
    axes: &mut BTreeMap<String, Vec<Value>>,
    depth: usize,
) -> Result<(), Error> {
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        let refuse = |allowed: &str, hint: &str| {
            Err(Error::config(
                format!("grid.{key}"),
                value,
                allowed.to_string(),
                hint,
            ))
        };
        match value {
            Value::Object(inner) if depth < DEPTH_MAX => flatten_lists(&key, inner, axes, depth + 1)?,
            Value::Array(list) if list.is_empty() => {
                return refuse(
                    "a list of at least one value",
                    "Leave the key out, or put one value in it.",
                );
            }
            Value::Array(list) => {
                if axes.insert(key.clone(), list.clone()).is_some() {
                    return refuse("each key once", "It is given both dotted and nested.");
                }
            }
            _ => {
                return refuse(
                    "a list of values",
                    "A value that all units share belongs under [base].",
                );
            }
        }
    }
    Ok(())
}

/// The combination number `number`; the last key turns fastest.
fn combination(axes: &BTreeMap<String, Vec<Value>>, number: usize) -> BTreeMap<String, Value> {
    let mut rest = number;
    let mut params = BTreeMap::new();
    for (key, values) in axes.iter().rev() {
        params.insert(key.clone(), values[rest % values.len()].clone());
        rest /= values.len();
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn grid(text: &str) -> Grid {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn every_combination_meets_every_seed_and_seeds_turn_fastest() {
        let manifest = grid(
            "name = 'x'\nseeds = 2\n[base]\nload = 0.5\nworkload.preset = 'p'\n\
             [grid]\npolicy = ['fifo', 'srtf']\nworkload.load = [1, 2, 3]\n",
        )
        .plan()
        .unwrap();
        assert_eq!(manifest.num_units(), 12);
        let seen: Vec<_> = (0..3).map(|index| manifest.unit(index).unwrap()).collect();
        assert_eq!(seen[0].params["policy"], "fifo");
        assert_eq!(seen[0].replicate, 0);
        assert_eq!(seen[1].replicate, 1);
        assert_eq!(seen[2].params["workload.load"], 2);
        assert_eq!(manifest.unit(6).unwrap().params["policy"], "srtf");
        assert_eq!(
            seen[2].config,
            json!({"load": 0.5, "policy": "fifo", "workload": {"preset": "p", "load": 2}})
        );
    }

    #[test]
    fn combinations_of_one_replicate_share_its_seed_and_replicates_differ() {
        let manifest = grid("name = 'x'\nseeds = [4, 9]\n[grid]\npolicy = ['a', 'b']")
            .plan()
            .unwrap();
        let seed = |index| manifest.unit(index).unwrap().seed;
        assert_eq!((seed(0), seed(1)), (seed(2), seed(3)));
        assert_ne!(seed(0), seed(1));
        assert!(seed(0) < 1 << 53);
        let other = grid("name = 'x'\nseed = 1\nseeds = [4, 9]\n[grid]\npolicy = ['a', 'b']")
            .plan()
            .unwrap();
        assert_ne!(other.unit(0).unwrap().seed, seed(0));
    }

    #[test]
    fn a_grid_without_lists_is_one_unit_for_each_seed() {
        assert_eq!(grid("name = 'x'\nseeds = 3").plan().unwrap().num_units(), 3);
    }

    #[test]
    fn grids_that_cannot_be_planned_are_refused_with_a_hint() {
        let refused = |text: &str| grid(text).plan().unwrap_err().to_string();
        assert!(refused("name = 'x'\n[grid]\nload = 0.5").contains("belongs under [base]"));
        assert!(refused("name = 'x'\n[grid]\nload = []").contains("at least one value"));
        assert!(refused("name = 'x'\nseeds = 0").contains("config: seeds = 0"));
        assert!(refused("name = 'x'\nseeds = [1, 1]").contains("each once"));
        assert!(refused("name = 'x'\nseeds = 99999\n[grid]\na = [1, 2]").contains("at most"));
        assert!(refused("name = 'x'\n[grid]\n'a.b' = [1]\na.b = [2]").contains("each key once"));
        assert!(refused("name = 'x'\n[grid]\n'../a' = [1]").contains("letters"));
    }

    #[test]
    fn draws_meet_every_combination_and_seed_and_rungs_come_first() {
        let manifest = grid(
            "name = 'x'\nseeds = 2\ndraws = 3\n[grid]\na = [1, 2]\n[draw]\nb.c = { uniform = [0, 1] }\n\
             [halving]\nsetting = 'n'\nvalues = [1, 4]",
        )
        .plan()
        .unwrap();
        assert_eq!(manifest.num_units(), 24);
        let of = |index: usize| manifest.units()[index].params.clone();
        assert_eq!((of(0)["n"].clone(), of(12)["n"].clone()), (json!(1), json!(4)));
        assert_eq!(of(0)["b.c"], of(3)["b.c"]);
        assert_ne!(of(0)["b.c"], of(4)["b.c"]);
        assert_eq!(of(4)["b.c"], of(16)["b.c"]);
        let refused = |text: &str| grid(text).plan().unwrap_err().to_string();
        assert!(refused("name = 'x'\ndraws = 2").contains("under [draw]"));
        assert!(refused("name = 'x'\n[draw]\na = { choice = [1] }").contains("draws = 20"));
        let twice = "name = 'x'\ndraws = 1\n[grid]\na = [1]\n[draw]\na = { choice = [1] }";
        assert!(refused(twice).contains("each key once"));
        let twice = "name = 'x'\n[grid]\na = [1]\n[halving]\nsetting = 'a'\nvalues = [1, 2]";
        assert!(refused(twice).contains("take it out elsewhere"));
    }

    #[test]
    fn a_file_with_an_unknown_key_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grid.toml");
        std::fs::write(&path, "name = 'x'\nsedes = 3\n").unwrap();
        let error = Grid::read(&path).unwrap_err();
        assert!(
            error.to_string().contains("grid.toml, line 2, column 1: "),
            "{error}"
        );
        assert!(error.to_string().contains("sedes"));
        std::fs::write(&path, "name = 'x'\n[grid]\nload = [0.5, nan]\n").unwrap();
        let said = Grid::read(&path).unwrap_err().to_string();
        assert!(said.contains("grid.load[1] = nan"), "{said}");
    }
}
