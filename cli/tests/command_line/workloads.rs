//! `pleach workload`, and lists that are given to other commands.

use std::fs;

use super::{assert_same_files, pleach, succeed, text};

#[test]
fn a_workload_is_described_with_tables_a_page_and_figures_that_agree() {
    let folder = tempfile::tempdir().unwrap();
    let line = "workload describe --workload philly-like --num-jobs 300 --load 1.2 --policy easy";
    let said = succeed(folder.path(), &format!("{line} --out a --json a.json"));
    for words in [
        "Gangs",
        "Arrivals",
        "Tenants",
        "Causes of waiting under easy",
        "empty nodes %",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("NaN") && !said.contains("inf"), "{said}");
    let page = fs::read_to_string(folder.path().join("a/report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("NaN") && !page.contains("<script"));
    let bytes = fs::read(folder.path().join("a.json")).unwrap();
    assert_eq!(bytes, fs::read(folder.path().join("a/describe.json")).unwrap());
    let figures: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(figures["sizes"]["num_jobs"], 300);
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!((number(&figures["load"]["offered"]) - 1.2).abs() < 1e-6);
    // The causes are parts of one whole.
    let causes = &figures["simulated"]["delay_by_bucket"][4]["causes"];
    let sum: f64 = ["fair_share", "capacity", "fragmentation", "held_back"]
        .iter()
        .map(|cause| number(&causes[*cause]))
        .sum();
    assert!((sum - 1.0).abs() < 1e-9, "{causes}");
    // The same again, byte by byte; and a finished run is not overwritten.
    succeed(folder.path(), &format!("{line} --out b --quiet --threads 1"));
    assert_same_files(&folder.path().join("a"), &folder.path().join("b"));
    assert_eq!(
        pleach(folder.path(), &format!("{line} --out b")).status.code(),
        Some(2)
    );
    let alone = succeed(folder.path(), "workload describe --num-jobs 5 --no-simulate");
    assert!(
        !alone.contains("Waiting") && alone.contains("Run times"),
        "{alone}"
    );
}

#[test]
fn a_workload_survives_the_way_through_parquet_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let say = |line: &str| succeed(folder.path(), line);
    say("workload write --workload philly-like --num-jobs 50 --to a.csv");
    say("workload convert --workload a.csv --to b.parquet");
    say("workload convert --workload b.parquet --to c.csv");
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(bytes("a.csv"), bytes("c.csv"));
    assert_eq!(bytes("a.cluster.toml"), bytes("c.cluster.toml"));
    assert!(bytes("b.parquet").starts_with(b"PAR1"));
    let list = "job_id,num_gpu,submit_time,model_name,duration\n0,2,30,vgg19,90\n";
    fs::write(folder.path().join("list.csv"), list).unwrap();
    say("workload convert --workload list.csv --format tiresias --to d.parquet");
}

#[test]
fn the_cluster_that_is_written_beside_a_list_can_be_given_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let write = pleach(
        folder.path(),
        "workload write --workload philly-like --num-jobs 20 --to a.csv",
    );
    assert_eq!(write.status.code(), Some(0), "{}", text(&write.stderr));
    let line =
        "evaluate --workload philly-like --num-jobs 20 --cluster a.cluster.toml --policy fifo --seeds 1";
    let evaluate = pleach(folder.path(), line);
    assert_eq!(evaluate.status.code(), Some(0), "{}", text(&evaluate.stderr));
}

#[test]
fn a_minus_for_a_file_of_json_is_standard_output_and_nothing_else_is_there() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("grid.toml"), "name = 'load'\n").unwrap();
    succeed(
        folder.path(),
        "sweep plan --config grid.toml --out sweep.json --quiet",
    );
    for (line, key) in [
        (
            "evaluate --policy fifo,sjf --num-jobs 20 --seeds 1 --json -",
            "policies",
        ),
        ("policies --json -", "policies"),
        (
            "workload describe --workload philly-like --num-jobs 20 --json -",
            "name",
        ),
        #[cfg(feature = "lab")]
        (
            "tournament --policy fifo,sjf --workload philly-like,itp-like --num-jobs 20 --seeds 1 --json -",
            "rounds",
        ),
        ("sweep gather --manifest sweep.json --json -", "num_units"),
    ] {
        let said = succeed(folder.path(), line);
        let value: serde_json::Value = serde_json::from_str(&said).expect(&said);
        assert!(!value[key].is_null(), "{line}: {said}");
    }
    assert!(!folder.path().join("-").exists());
}
