use super::super::tests::{any_tree, keyed_tree, small_tree};
use super::*;
use crate::key_weight::weighted_sum;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use std::path::Path;
use std::process::Command;

/// Rows of each tree that is run.
const NUM_ROWS: usize = 1000;

/// What the tree says: bits of score and key, in hexadecimal, a line for each row.
fn expected(tree: &Tree, rows: &[Vec<f32>]) -> String {
    let line = |row: &Vec<f32>| {
        let Node::Leaf { score, .. } = tree.nodes()[tree.walk(row)] else {
            panic!("a walk ended in a split");
        };
        let key = weighted_sum(&tree.meta().key_weights, row);
        format!("{:08x} {:016x}\n", score.to_bits(), key.to_bits())
    };
    rows.iter().map(line).collect()
}

/// Bits of the rows, in hexadecimal, a line for each.
fn written(rows: &[Vec<f32>]) -> String {
    let line = |row: &Vec<f32>| -> String {
        row.iter()
            .map(|value| format!("{:08x} ", value.to_bits()))
            .collect()
    };
    rows.iter().map(|row| line(row) + "\n").collect()
}

/// Output of a program by the first of its names that is there; none where there is none, which is noted.
fn output(folder: &Path, names: &[&str], args: &[&str]) -> Option<String> {
    // What a test has compiled lies in its folder.
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

const MAIN_C: &str = r#"
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include "tree.h"
int main(void) {
    FILE *file = fopen("rows.txt", "r");
    float row[256];
    uint32_t bits;
    for (;;) {
        for (int i = 0; i < NUM; i++) {
            if (fscanf(file, "%x", &bits) != 1) return 0;
            memcpy(&row[i], &bits, 4);
        }
        float score = pleach_score(row);
        double key = pleach_key(row);
        uint64_t wide;
        memcpy(&bits, &score, 4);
        memcpy(&wide, &key, 8);
        printf("%08x %016llx\n", bits, (unsigned long long)wide);
    }
}
"#;

const MAIN_RUST: &str = r#"
mod tree;
fn main() {
    for line in std::fs::read_to_string("rows.txt").unwrap().lines() {
        let bits = line.split_whitespace().map(|bits| u32::from_str_radix(bits, 16).unwrap());
        let row: Vec<f32> = bits.map(f32::from_bits).collect();
        println!("{:08x} {:016x}", tree::score(&row).to_bits(), tree::key(&row).to_bits());
    }
}
"#;

const MAIN_GO: &str = r#"
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"exported/pleach"
)

func main() {
	file, err := os.Open("rows.txt")
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		row := []float32{}
		for _, text := range strings.Fields(lines.Text()) {
			bits, err := strconv.ParseUint(text, 16, 32)
			if err != nil {
				panic(err)
			}
			row = append(row, math.Float32frombits(uint32(bits)))
		}
		fmt.Printf("%08x %016x\n", math.Float32bits(pleach.Score(row)), math.Float64bits(pleach.Key(row)))
	}
}
"#;

const MAIN_PYTHON: &str = r#"
import struct
import tree
for line in open("rows.txt"):
    row = [struct.unpack(">f", bytes.fromhex(bits))[0] for bits in line.split()]
    print(struct.pack(">f", tree.score(row)).hex(), struct.pack(">d", tree.key(row)).hex())
"#;

fn run_everywhere(tree: &Tree, number: usize) {
    let folder = std::env::temp_dir().join(format!("pleach-export-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rows = tree.golden_rows(NUM_ROWS);
    let expected = expected(tree, &rows);
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("rows.txt", &written(&rows));
    for to in Export::ALL {
        write(to.file_name(), &tree.export(to));
    }
    write("main.c", &MAIN_C.replace("NUM", &rows[0].len().to_string()));
    write("main.rs", MAIN_RUST);
    write("main.go", MAIN_GO);
    write("go.mod", "module exported\n\ngo 1.17\n");
    std::fs::create_dir_all(folder.join("pleach")).unwrap();
    write("pleach/tree.go", &tree.export(Export::Go));
    write("main.py", MAIN_PYTHON);
    if output(
        &folder,
        &["cc"],
        &["-O2", "-Wall", "-Werror", "main.c", "-o", "c"],
    )
    .is_some()
    {
        assert_eq!(output(&folder, &["./c"], &[]).unwrap(), expected, "C");
    }
    if output(
        &folder,
        &["rustc"],
        &["-O", "--edition", "2024", "main.rs", "-o", "rust"],
    )
    .is_some()
    {
        assert_eq!(output(&folder, &["./rust"], &[]).unwrap(), expected, "Rust");
    }
    if let Some(found) = output(&folder, &["go"], &["run", "main.go"]) {
        assert_eq!(found, expected, "Go");
    }
    // Part of the same tool: there is nothing that it would lay out in another way.
    if let Some(found) = output(&folder, &["gofmt"], &["-l", "pleach"]) {
        assert_eq!(found, "", "gofmt");
    }
    if let Some(found) = output(&folder, &["python3"], &["main.py"]) {
        assert_eq!(found, expected, "Python");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_export_that_can_be_run_here_answers_bit_for_bit_as_the_tree() {
    let mut runner = TestRunner::deterministic();
    let mut trees = vec![small_tree(), keyed_tree()];
    for _ in 0..2 {
        trees.push(any_tree().new_tree(&mut runner).unwrap().current());
    }
    for (number, tree) in trees.iter().enumerate() {
        run_everywhere(tree, number);
    }
}

#[test]
fn golden_rows_meet_every_threshold_exactly_and_miss_it_by_a_bit() {
    let tree = keyed_tree();
    let rows = tree.golden_rows(NUM_ROWS);
    for node in tree.nodes() {
        let Node::Split {
            feature, threshold, ..
        } = node
        else {
            continue;
        };
        for value in [*threshold, threshold.next_up(), threshold.next_down()] {
            assert!(
                rows.iter().any(|row| row[usize::from(*feature)] == value),
                "{value}"
            );
        }
    }
    assert_eq!(rows, tree.golden_rows(NUM_ROWS));
}
