//! docs/tutorials/experimenter.md in short: its commands with smaller numbers.

use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/tutorials/experimenter.md");

/// The blocks of a language, in their order.
pub(super) fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let blocks = page.split(fence.as_str()).skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

/// The same with other words, each of which stands there.
fn shorter(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (long, short)| {
        assert!(text.contains(long), "{long} is not in {text}");
        text.replace(long, short)
    })
}

/// Runs a line as a shell does, with the program on the path.
pub(super) fn run(folder: &Path, line: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_pleach")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(
        [program.to_path_buf()]
            .into_iter()
            .chain(std::env::split_paths(&path)),
    );
    let mut shell = Command::new("sh");
    let output = shell
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path.unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[cfg(unix)]
#[test]
fn the_first_hour_of_an_experimenter_goes_as_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let files = blocks(PAGE, "toml");
    assert_eq!(files.len(), 1);
    let search = shorter(
        files[0],
        &[
            ("num_jobs = 60", "num_jobs = 15"),
            ("num_validation = 12", "num_validation = 2"),
            ("validate_every = 3", "validate_every = 1"),
            ("num_pairs = 6", "num_pairs = 2"),
            ("judge.seeds = 30", "judge.seeds = 3"),
            ("values = [3, 9, 27]", "values = [1, 2, 3]"),
        ],
    );
    fs::write(folder.path().join("search.toml"), search).unwrap();
    let lines = blocks(PAGE, "bash");
    assert_eq!(lines.len(), 5, "every block is one line of a shell");
    let said: Vec<String> = lines
        .iter()
        .map(|line| {
            let small = line
                .replace("--num-jobs 60", "--num-jobs 15")
                .replace("--seeds 30", "--seeds 3");
            // Which configuration is best is another one on other lists.
            let best = fs::read_to_string(folder.path().join("runs/search/leaderboard.csv")).ok();
            let best = best.and_then(|board| {
                let own = board.lines().skip(1).find(|row| row.contains("sigma"))?;
                Some(own.rsplit(',').nth(1)?.to_owned())
            });
            let small = match (small.split_once("units/"), best) {
                (Some((before, after)), Some(best)) => {
                    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
                    format!("{before}units/{best}{after}")
                }
                _ => small,
            };
            run(folder.path(), &small)
        })
        .collect();
    assert!(
        said[1].contains("27 units in runs/search/sweep.json"),
        "{}",
        said[1]
    );
    assert!(
        said[2].contains("13 units done") && said[2].contains("14 pruned"),
        "{}",
        said[2]
    );
    assert!(
        said[3].contains("avg JCT vs best-type-delay") && said[3].contains("3 of 3"),
        "{}",
        said[3]
    );
    assert!(said[4].contains("learned"), "{}", said[4]);
    for said in &said {
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    }
}
