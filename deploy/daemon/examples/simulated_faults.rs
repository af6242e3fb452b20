//! Plays worlds of faults one after the other: `--seed N` one world, `--rounds N` as many as make so many rounds (a million by
//! default), from `--from N` on. A world that fails prints its seed and what happened, and ends the program with 1.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

use std::process::ExitCode;

use simulated::{Played, play};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |flag: &str| -> Option<u64> {
        let at = args.iter().position(|arg| arg == flag)?;
        Some(args[at + 1].parse().expect("a number behind the flag"))
    };
    let seed = value("--seed");
    let num_rounds = seed.map_or(value("--rounds").unwrap_or(1_000_000), |_| 1);
    let mut all = Played::default();
    for seed in seed.or_else(|| value("--from")).unwrap_or(0).. {
        if all.num_rounds >= num_rounds {
            break;
        }
        match play(seed) {
            Ok(played) => all += played,
            Err(why) => {
                println!("{why}");
                return ExitCode::FAILURE;
            }
        }
        if seed % 100 == 99 {
            println!("seed {seed}: {all:?}");
        }
    }
    println!("{all:?}");
    ExitCode::SUCCESS
}
