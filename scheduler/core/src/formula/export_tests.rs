//! Exports run, in each language that is there, on the golden rows.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::features::{CONTEXT_WIDTH, ROW_WIDTH};
use crate::tree::Export;

/// What each says of the score: a number a line.
const MAIN_C: &str = r#"
#include <stdio.h>
#include "formula.h"
int main(void) {
    FILE *file = fopen("rows.txt", "r");
    float row[256];
    for (;;) {
        for (int i = 0; i < NUM; i++) {
            if (fscanf(file, "%f", &row[i]) != 1) return 0;
        }
        printf("%.9g\n", pleach_score(row));
    }
}
"#;
const MAIN_RUST: &str = r#"
mod formula;
fn main() {
    for line in std::fs::read_to_string("rows.txt").unwrap().lines() {
        let row: Vec<f32> = line.split_whitespace().map(|value| value.parse().unwrap()).collect();
        println!("{:e}", formula::score(&row));
    }
}
"#;
const MAIN_GO: &str = r#"
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"exported/pleach"
)

func main() {
	file, _ := os.Open("rows.txt")
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		row := []float32{}
		for _, text := range strings.Fields(lines.Text()) {
			value, _ := strconv.ParseFloat(text, 32)
			row = append(row, float32(value))
		}
		fmt.Println(pleach.Score(row))
	}
}
"#;
const MAIN_PYTHON: &str = r#"
import struct
import formula
for line in open("rows.txt"):
    row = [struct.unpack("f", struct.pack("f", float(value)))[0] for value in line.split()]
    print(repr(formula.score(row)))
"#;

const TEXTS: [&str; 3] = [
    "if is_reserve or not (speed_ratio > 0.8 and end_gain <= 0.3) then max(log1p(wait_s), 2) - min(num_gpus, 8) / locality else -1.5e-3",
    "log1p(duration_s) * -2 + log1p(abs(num_gpus - 3)) / (oldest_slack - 0.1) + exp(end_gain * 3) - wait_s / (remaining_s - wait_s)",
    "if pending_gpus_ratio >= 1 then if wait_s < 86400 or num_left > 3 then num_left else free_fraction else -(wait_ratio - 1)",
];

fn output(folder: &Path, names: &[&str], args: &[&str]) -> Option<String> {
    let place = match names[0].starts_with("./") {
        true => folder.join(names[0]),
        false => pleach_tests::program(names)?,
    };
    let found = Command::new(place)
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        found.status.success(),
        "{names:?}: {}",
        String::from_utf8_lossy(&found.stderr)
    );
    Some(String::from_utf8(found.stdout).unwrap())
}

/// Joined rows with the scores that are meant.
fn rows(formula: &ScoreFormula) -> Vec<(Vec<f32>, f32)> {
    let policy = FormulaPolicy::new(formula.clone());
    let join = |(row, context): (Vec<f32>, Vec<f32>)| {
        let mut joined = vec![0.0; ROW_WIDTH + CONTEXT_WIDTH];
        FeatureSchema::current().join(&row, &context, &mut joined);
        let score = policy.score_of(&row, &context);
        (joined, score)
    };
    formula.golden_rows().into_iter().map(join).collect()
}

#[test]
fn every_export_that_can_be_run_here_answers_as_the_formula() {
    for (number, text) in TEXTS.iter().enumerate() {
        let formula = ScoreFormula::of("mine", text).unwrap();
        let folder = std::env::temp_dir().join(format!("pleach-formula-{}-{number}", std::process::id()));
        std::fs::create_dir_all(folder.join("pleach")).unwrap();
        let rows = rows(&formula);
        let lines: String = rows
            .iter()
            .map(|(row, _)| row.iter().map(|value| format!("{value:e} ")).collect::<String>() + "\n")
            .collect();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("rows.txt", &lines);
        for to in Export::ALL {
            let (name, content) = formula.export(to);
            write(name, &content);
        }
        write("main.c", &MAIN_C.replace("NUM", &rows[0].0.len().to_string()));
        write("main.rs", MAIN_RUST);
        write("main.go", MAIN_GO);
        write("go.mod", "module exported\n\ngo 1.17\n");
        write("pleach/formula.go", &formula.export(Export::Go).1);
        write("main.py", MAIN_PYTHON);
        let compiled = |compiler: &str, args: &[&str], program: &str| {
            output(&folder, &[compiler], args)?;
            output(&folder, &[program], &[])
        };
        let found = [
            (
                "C",
                compiled(
                    "cc",
                    &["-O2", "-Wall", "-Werror", "main.c", "-lm", "-o", "c"],
                    "./c",
                ),
            ),
            (
                "Rust",
                compiled(
                    "rustc",
                    &["-O", "--edition", "2024", "main.rs", "-o", "rust"],
                    "./rust",
                ),
            ),
            ("Go", output(&folder, &["go"], &["run", "main.go"])),
            ("Python", output(&folder, &["python3"], &["main.py"])),
        ];
        for (language, found) in found {
            let Some(found) = found else { continue };
            let found: Vec<f64> = found.lines().map(|line| line.parse().unwrap()).collect();
            assert_eq!(found.len(), rows.len(), "{language}");
            for ((_, meant), found) in rows.iter().zip(found) {
                let meant = f64::from(*meant);
                let is_near = (found - meant).abs() <= 2e-7 * meant.abs().max(1e-3);
                assert!(is_near, "{language}, {text}: {found} for {meant}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn a_column_and_its_logarithm_are_written_as_what_rows_hold() {
    let formula = ScoreFormula::of("mine", "log1p(wait_s) - speed_ratio").unwrap();
    let (name, text) = formula.export(Export::Python);
    assert_eq!(name, "formula.py");
    assert!(
        text.contains("row[9] * 13.8155105579642") && text.contains("row[14] * 1.0"),
        "{text}"
    );
    assert!(text.starts_with("# score = log1p(wait_s) - speed_ratio\n"));
}
