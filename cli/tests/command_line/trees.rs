//! Trees: as a page, and of many sizes.

use std::fs;

use super::{pleach, succeed, text};

const REFERENCE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../checkpoints/reference/PhillyGang-v1-tree.json"
);

#[test]
fn a_tree_becomes_a_page_and_what_is_no_tree_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let said = succeed(
        folder.path(),
        &format!("policies --show {REFERENCE} --html page.html"),
    );
    assert_eq!(said, "written to page.html\n");
    let html = fs::read_to_string(folder.path().join("page.html")).unwrap();
    for part in [
        "speed_ratio &lt;= 0.927",
        "id=\"tiers\"",
        "id=\"certificates\"",
        "trained_by.search",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let refused = pleach(folder.path(), "policies --show sjf --html other.html");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("show = sjf: allowed is a tree with --html"),
        "{}",
        text(&refused.stderr)
    );
    assert!(!folder.path().join("other.html").exists());
    assert_eq!(
        pleach(folder.path(), "policies --html page.html").status.code(),
        Some(2)
    );
}

#[test]
fn a_frontier_has_a_table_plots_and_a_tree_of_each_size() {
    let folder = tempfile::tempdir().unwrap();
    let line = "distill frontier --teacher gpu-time-reserve --workload Pleach/PhillyGang-v1 --num-jobs 40 --leaves 2,4 --lists 2 \
                --rounds 0 --episodes 2 --against fifo --out frontier --json all.json";
    let said = succeed(folder.path(), line);
    assert!(
        said.contains("| *gpu-time-reserve* |") && said.contains("| *fifo* |"),
        "{said}"
    );
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let report: serde_json::Value = serde_json::from_str(&read("all.json")).unwrap();
    assert_eq!(report["lines"][1]["policy"], "fifo");
    for size in report["sizes"].as_array().unwrap() {
        let tree = read(&format!("frontier/trees/leaves-{}.json", size["leaves"]));
        assert!(tree.contains("\"format\": \"pleach-tree\""));
    }
    let html = read("frontier/frontier.html");
    assert_eq!(html.matches("role=\"img\"").count(), 5);
    assert!(html.contains("four times as long") && said.contains(read("frontier/frontier.md").trim_end()));
}
