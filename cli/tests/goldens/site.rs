//! `twin` and `run`.

use std::fs;

use pleach_tests::golden::hold;

use super::answers;
use crate::command_line::{
    site::{shorten, synthetic_site},
    succeed,
};

#[test]
fn a_sites_twin_and_its_decision_have_the_figures_that_they_had() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synthetic_site::write(folder, 34.0).unwrap();
    succeed(
        folder,
        "workload import sacct.txt --nodes nodes.txt --to month.csv",
    );
    succeed(folder, "run site.toml --init sacct.txt --nodes nodes.txt");
    shorten(folder);
    let cases = [
        ("twin", "twin --workload month.csv"),
        (
            "fit",
            "twin --workload month.csv --policy easy,fifo,fifo-skip --fit",
        ),
        (
            "under",
            "twin --workload month.csv --estimates user --under sjf,las-deal --since-day 7",
        ),
        ("run", "run site.toml"),
    ];
    let rows = answers(folder, &cases);
    // The figures of the file are those that were printed.
    let kept = fs::read_to_string(folder.join("site-run/decision.json")).unwrap();
    let kept = super::rows("run", &serde_json::from_str(&kept).unwrap());
    assert!(rows.ends_with(&kept));
    hold("json-site", rows);
}
