//! What an index could be besides a formula: a formula with hidden units, a tree, or passes over a cluster whose leases have ended.
//!
//! `cargo run --release -p pleach-experiments --example index_forms -- FORMULA FORM`, where FORMULA is
//! `checkpoints/reference/index.json` and FORM one of
//!
//! - `network UNITS GENERATIONS SEED`: the formula, and for each unit a height times tanh of an offset and a weighted sum of all
//!   features. The search is that of `pleach index` over all numbers, begun with the formula. 0 units: the formula goes on alone.
//! - `tree`: a leaf is a score. Fitted to the formula's scores in its own deals, then in those of the tree of 64 leaves, twice.
//!   Inside a leaf least attained service comes first.
//! - `pass GENERATIONS SEED`: everybody who may be stopped has ended; a pass of candidates, as networks and trees see them, gives
//!   the GPUs out one job after the other by a weighted sum of their features; who is chosen on the type where it runs keeps its
//!   seat. The same search, begun with least attained service.
//!
//! All are judged on lists that no search meets, as average JCT over the formula's; docs/tournament.md has the table.

mod judge;
mod network;
mod pass;
mod shaped;
mod tree;

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use pleach_baselines::dealing::Formula;
use pleach_experiments::index_search::{IndexSearch, Searched};

use judge::{Held, Make, judge};
use network::Network;
use pass::Passes;
use shaped::Form;

const USAGE: &str = "usage: index_forms FORMULA tree | FORMULA network UNITS GENERATIONS SEED | FORMULA pass GENERATIONS SEED";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((path, form)) = args.split_first() else {
        return Err(USAGE.into());
    };
    let formula = Formula::load(Path::new(path))?;
    let words: Vec<&str> = form.iter().map(String::as_str).collect();
    let forms: Vec<(String, Box<Make>)> = match words.as_slice() {
        ["tree"] => tree::trees(&formula)?
            .into_iter()
            .map(|(name, form)| (name, form.make()))
            .collect(),
        ["network", units, generations, seed] => {
            let network = Network::of(&formula, units.parse()?, seed.parse()?)?;
            let found = search(&network, generations.parse()?, seed.parse()?)?;
            vec![(words.join(" "), network.form(&found).make())]
        }
        ["pass", generations, seed] => {
            let passes = Passes { rules: formula.rules };
            let found = search(&passes, generations.parse()?, seed.parse()?)?;
            let begin = Passes { rules: formula.rules };
            vec![
                (
                    "pass by hand".into(),
                    Box::new(move || begin.planner(&begin.first())) as Box<Make>,
                ),
                (words.join(" "), Box::new(move || passes.planner(&found))),
            ]
        }
        _ => return Err(USAGE.into()),
    };
    let lists = Held::draw("judged", judge::LISTS);
    let reference = Held::play_all(&lists, &*Form::of(&formula).make())?;
    println!("{}", judge::head());
    for (name, make) in &forms {
        let begun = Instant::now();
        let cells = judge(&reference, &lists, &**make)?;
        println!("| {name} | {cells} | {:.0} s |", begun.elapsed().as_secs_f64());
    }
    Ok(())
}

fn search(what: &impl Searched, generations: u32, seed: u64) -> Result<Vec<f64>, Box<dyn Error>> {
    let begun = Instant::now();
    let search = IndexSearch {
        generations,
        seed,
        lists: 48,
        ..IndexSearch::default()
    };
    let found = search.search(what, |generation, loss| {
        eprintln!(
            "generation {generation}: {loss:+.4}, {:.0} s",
            begun.elapsed().as_secs_f64()
        );
    })?;
    Ok(found.best)
}
