//! Pages as a browser shows them: nothing is cut or covered on a phone and a screen, and all can be read in light and in dark. The
//! pages of comparisons and of sweeps are looked at beside their code.

use std::fs;
use std::path::Path;

use pleach_tests::browser_faults;

use super::succeed;

const TREE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/trees/PhillyGang-v1-tree.json"
);

/// What is wrong with the pages in `here`, by their paths.
pub(super) fn faults(here: &Path, names: &[&str]) -> Option<Vec<String>> {
    let read = |name: &&str| fs::read_to_string(here.join(name)).unwrap();
    let pages: Vec<String> = names.iter().map(read).collect();
    let pages: Vec<(&str, &str)> = names
        .iter()
        .copied()
        .zip(pages.iter().map(String::as_str))
        .collect();
    browser_faults(here, &pages)
}

#[test]
fn in_a_browser_nothing_is_cut_or_covered_or_too_pale_on_any_page() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let list = "--workload Pleach/GavelMulti-v1 --num-jobs 60 --load 3 --seeds 1";
    for line in [
        #[cfg(feature = "lab")]
        "tournament --policy sjf,fifo,las-deal,best-type-delay --workload gavel-multi --load 4 --num-jobs 40 --seeds 2 \
         --html tournament.html --quiet",
        "workload describe --workload philly-like --num-jobs 120 --out describe",
        &format!("evaluate {list} --policy fifo,sjf --schedule record.csv --quiet"),
        &format!("watch record.csv {list} --out watch.html --quiet"),
        &format!("policies --show {TREE} --html tree.html"),
        #[cfg(feature = "lab")]
        "reproduce R1 L1 --smoke --html reproduce.html --quiet",
    ] {
        succeed(here, line);
    }
    let names = [
        #[cfg(feature = "lab")]
        "tournament.html",
        "describe/report.html",
        "watch.html",
        "tree.html",
        #[cfg(feature = "lab")]
        "reproduce.html",
    ];
    if let Some(faults) = faults(here, &names) {
        assert_eq!(faults, [] as [String; 0]);
    }
}
