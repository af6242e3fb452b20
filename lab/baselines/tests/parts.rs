//! Tests that play every planner, in parts that run side by side: one test would keep one core busy while the others idle.

use pleach_dealing::Entry;
use serde_json::{Value, json};

/// All planners: those of the laboratory and those of every program.
pub fn every() -> impl Iterator<Item = &'static Entry> {
    let product = [pleach_dealing::BACKFILLING, pleach_dealing::ENTRIES];
    pleach_baselines::entries().chain(product.into_iter().flatten())
}

/// Every so many planners of the registry, from one on: the parts from 0 to `num_parts - 1` are all of it, each planner once.
pub fn part(number: usize, num_parts: usize) -> impl Iterator<Item = &'static Entry> {
    every().skip(number).step_by(num_parts)
}

/// The published settings of a planner, but a fifth of the population where it searches: what these tests hold does not depend on
/// how good a plan is.
pub fn settings(entry: &Entry) -> Value {
    match (entry.defaults)()["population"].as_u64() {
        Some(population) => json!({ "population": population / 5 }),
        None => Value::Null,
    }
}

/// Makes a module with a test for each part, which calls a function with each planner of its part. The parts are counted from
/// the list of their names, so that none can be left out.
macro_rules! over_all_planners {
    ($name:ident, $check:expr) => {
        crate::parts::over_all_planners!($name, $check; first second third fourth fifth sixth seventh eighth);
    };
    ($name:ident, $check:expr; $($part:ident)+) => {
        mod $name {
            use super::*;

            const PARTS: &[&str] = &[$(stringify!($part)),+];

            $(
                #[test]
                fn $part() {
                    let number = PARTS.iter().position(|part| *part == stringify!($part)).unwrap();
                    for entry in crate::parts::part(number, PARTS.len()) {
                        $check(entry);
                    }
                }
            )+
        }
    };
}
pub(crate) use over_all_planners;

#[test]
fn searches_are_made_smaller_and_nothing_else_is() {
    let smaller: Vec<&str> = every()
        .filter(|entry| !settings(entry).is_null())
        .map(|entry| entry.info.name)
        .collect();
    assert_eq!(smaller, ["pollux"]);
}

#[test]
fn parts_are_the_whole_registry_with_each_planner_once() {
    for num_parts in [1, 8, 100] {
        let mut names: Vec<&str> = (0..num_parts)
            .flat_map(|number| part(number, num_parts))
            .map(|entry| entry.info.name)
            .collect();
        let mut all: Vec<&str> = every().map(|entry| entry.info.name).collect();
        names.sort_unstable();
        all.sort_unstable();
        assert_eq!(names, all, "{num_parts} parts");
    }
}
