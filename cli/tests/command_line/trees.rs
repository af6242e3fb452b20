//! Trees: as a page, and of many sizes.

use std::fs;

use pleach_scheduler::tree::Tree;

use super::{pleach, succeed, text};

const REFERENCE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/trees/PhillyGang-v1-tree.json"
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
        "<h2>Tiers</h2>",
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

/// What the files say in Go is held to ours, and to the pickers, by the tests of `pleach-serving`.
#[test]
fn a_tree_that_routes_is_exported_as_code_and_as_plug_ins() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("router.json"), include_str!("router.json")).unwrap();
    succeed(
        folder.path(),
        "export router.json --to gie,llm-d-router,go,onnx --gpu A100 --ttft-s 0.25 --refuse --out code",
    );
    let read = |name: &str| fs::read_to_string(folder.path().join("code").join(name)).unwrap();
    for name in ["tree_gie.go", "tree_llm_d_router.go"] {
        let code = read(name);
        for part in [
            "llama-3-8b on one A100",
            "exportedTTFTS  = 0.25",
            "exportedRefuse = true",
        ] {
            assert!(code.contains(part), "{name}: {part}");
        }
    }
    assert!(read("tree.go").contains("func Score(") && folder.path().join("code/tree.onnx").is_file());
    for (line, expected) in [
        (
            format!("export {REFERENCE} --to gie"),
            "to = gie: allowed is other forms",
        ),
        ("export router.json --to cobol".into(), "onnx, gie, llm-d-router"),
        ("export router.json --to gie --gpu T4".into(), "H100, A100, L40S"),
    ] {
        let refused = pleach(folder.path(), &line);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        assert!(
            text(&refused.stderr).contains(expected),
            "{}",
            text(&refused.stderr)
        );
    }
}

#[test]
fn a_tree_is_exported_and_certified() {
    let folder = tempfile::tempdir().unwrap();
    succeed(
        folder.path(),
        &format!("export {REFERENCE} --to c,onnx --out code"),
    );
    let names: Vec<String> = fs::read_dir(folder.path().join("code"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in ["tree.h", "tree.onnx"] {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
    // A form of earlier versions is answered with what does the same.
    for (form, hint) in [
        ("cobol", "Several are given with commas"),
        ("sql", "--to python"),
        ("markdown", "policies --show"),
        ("sklearn", "--to onnx"),
    ] {
        let refused = pleach(
            folder.path(),
            &format!("export {REFERENCE} --to {form} --out code"),
        );
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        let said = text(&refused.stderr);
        assert!(
            said.contains(&format!("to = {form}: allowed is c, rust, go, python, onnx"))
                && said.contains(hint),
            "{said}"
        );
    }
    fs::copy(REFERENCE, folder.path().join("tree.json")).unwrap();
    let said = succeed(folder.path(), "distill check tree.json");
    assert!(said.contains("proved: "), "{said}");
    succeed(folder.path(), "policies --show tree.json");
}

/// The reference tree as it was before it was sealed.
fn unsealed() -> String {
    let sealed = Tree::load(REFERENCE.as_ref()).unwrap();
    Tree::new(sealed.meta().clone(), sealed.nodes())
        .unwrap()
        .to_json()
}

#[test]
fn a_tree_is_sealed_and_an_edit_breaks_the_seal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.json");
    fs::write(&path, unsealed()).unwrap();
    let read = || fs::read_to_string(&path).unwrap();
    let said = succeed(folder.path(), "distill seal tree.json --fallback sjf-reserve");
    assert!(
        said.contains("golden vectors: 1009 rows, SHA-256 ")
            && said.contains("fallback: sjf-reserve\nvisits: none, so nothing watches for drift (--visits)\nsealed: tree.json"),
        "{said}"
    );
    let sealed = read();
    for key in ["certificates", "fallback", "golden"] {
        assert!(sealed.contains(&format!("\n  \"{key}\": ")), "{key}");
    }
    // Once more: nothing is lost.
    succeed(folder.path(), "distill seal tree.json");
    assert_eq!(read(), sealed);
    // An unknown fallback changes nothing.
    let refused = pleach(folder.path(), "distill seal tree.json --fallback esay");
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(
        said.contains("fallback = esay: allowed is one of fifo, "),
        "{said}"
    );
    assert_eq!(read(), sealed);
    // An edited tree is not run until it is sealed again.
    let score = sealed
        .split("\"score\":")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    fs::write(
        &path,
        sealed.replacen(&format!("\"score\":{score}"), "\"score\":0.123", 1),
    )
    .unwrap();
    let refused = pleach(folder.path(), "policies --show tree.json");
    assert_eq!(refused.status.code(), Some(2));
    succeed(folder.path(), "distill check tree.json");
    succeed(folder.path(), "distill seal tree.json");
    assert!(read().contains("\n  \"golden\": ") && read().contains("\"sjf-reserve\""));
    succeed(folder.path(), "policies --show tree.json");
}

#[test]
fn drift_is_measured_against_the_lists_of_the_seal_and_a_bundle_holds_what_is_deployed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.json");
    fs::write(&path, unsealed()).unwrap();
    let lists = "--workload Pleach/PhillyGang-v1 --num-jobs 200 --estimates oracle";
    let refused = pleach(
        folder.path(),
        &format!("distill check tree.json --drift {lists} --seeds 2"),
    );
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("pleach distill seal FILE --visits"), "{said}");
    let said = succeed(
        folder.path(),
        &format!("distill seal tree.json --visits --seeds 4 {lists}"),
    );
    assert!(
        said.contains("visits: ") && said.contains("\"num_jobs\":800"),
        "{said}"
    );
    let measure = |more: &str| {
        let line = format!("distill check tree.json --drift --window 200 --seeds 3 {lists} {more}");
        succeed(folder.path(), &line)
    };
    let said = measure("--seed 1 --out near");
    assert!(
        said.contains("| all | ") && said.contains("a step every 10."),
        "{said}"
    );
    measure("--seed 1 --threads 1 --out again");
    for name in ["check.json", "check.md"] {
        let read = |run: &str| fs::read(folder.path().join(run).join(name)).unwrap();
        assert_eq!(read("near"), read("again"), "{name}");
    }
    assert!(folder.path().join("near/check.html").is_file());
    // The middle index of another load is larger.
    measure("--seed 1 --load 0.2 --out far");
    let middle = |run: &str| {
        let text = fs::read_to_string(folder.path().join(run).join("check.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        report["drift"]["rows"].as_array().unwrap().last().unwrap()["psi"][1]
            .as_f64()
            .unwrap()
    };
    assert!(
        middle("far") > middle("near"),
        "{} {}",
        middle("far"),
        middle("near")
    );
    let said = succeed(
        folder.path(),
        "distill seal tree.json --bundle bundle --to c,onnx --commit v1",
    );
    assert!(
        said.contains(" tree.onnx\n") && said.ends_with("written to bundle\n"),
        "{said}"
    );
    let manifest = fs::read_to_string(folder.path().join("bundle/manifest.json")).unwrap();
    assert!(manifest.contains("\"commit\": \"v1\"") && manifest.contains("jobs_sha256"));
    succeed(folder.path(), "policies --show bundle");
    let before = fs::read(folder.path().join("tree.json")).unwrap();
    let refused = pleach(
        folder.path(),
        "distill seal tree.json --overdue 12h --bundle bundle",
    );
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(
        text(&refused.stderr).contains("bundle = bundle"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(fs::read(folder.path().join("tree.json")).unwrap(), before);
    let refused = pleach(folder.path(), "distill seal tree.json --bundle b --to cobol");
    assert!(
        text(&refused.stderr).contains("to = cobol"),
        "{}",
        text(&refused.stderr)
    );
    assert!(!folder.path().join("b").exists());
    // A bundle that was touched is no policy.
    fs::write(folder.path().join("bundle/tree.txt"), "tree: other words\n").unwrap();
    let refused = pleach(folder.path(), "evaluate --policy bundle --seeds 1 --num-jobs 20");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("tree.txt"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn a_search_leaves_a_tree_and_its_report_and_refuses_what_it_does_not_use() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!(
        "distill --search --workload Pleach/PhillyGang-v1 --num-jobs 30 --simulations 400 --accept-lists 2 --test-seeds 1 \
         --start {REFERENCE} --against fifo"
    );
    let said = succeed(folder.path(), &format!("{line} --out found"));
    assert!(said.contains("The tree over fifo"), "{said}");
    for name in ["tree.json", "search.json", "search.md"] {
        assert!(folder.path().join("found").join(name).is_file(), "{name}");
    }
    succeed(folder.path(), &format!("{line} --threads 1 --out again"));
    let tree = |name: &str| fs::read(folder.path().join(name).join("tree.json")).unwrap();
    assert_eq!(tree("found"), tree("again"), "at any number of threads");
    for flag in [
        "--objective avg_wait_s=1",
        "--depth 3",
        "--part-lists 2",
        "--rounds 1",
    ] {
        let refused = pleach(folder.path(), &format!("{line} {flag} --out other"));
        assert_eq!(refused.status.code(), Some(2), "{flag}");
    }
}

#[test]
fn a_network_is_given_a_standby_that_stands_in_its_card() {
    let folder = tempfile::tempdir().unwrap();
    let network = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../checkpoints/reference/Elastic-v1.ckpt"
    );
    let line = format!("calibrate --network {network} --env Pleach/Elastic-v1 --lists 4");
    let said = succeed(folder.path(), &format!("{line} --to a.ckpt --json a.json"));
    assert!(
        said.contains("the network alone") && said.contains("load 0.3"),
        "{said}"
    );
    succeed(folder.path(), &format!("{line} --to b.ckpt --threads 1 --quiet"));
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("a.ckpt"), read("b.ckpt"), "at any number of threads");
    let told: serde_json::Value = serde_json::from_slice(&read("a.json")).unwrap();
    let chosen = &told["tried"][told["chosen"].as_u64().unwrap() as usize]["standby"];
    let card = succeed(folder.path(), "policies --show a.ckpt");
    let standby = chosen["policy"]
        .as_str()
        .map(|name| format!("{name} decides while the queue"));
    assert_eq!(
        card.contains("decides while the queue"),
        standby.is_some(),
        "{card}"
    );
    assert!(standby.is_none_or(|words| card.contains(&words)), "{card}");
    assert_eq!(
        pleach(folder.path(), &format!("{line} --to a.ckpt"))
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn guards_are_priced_and_the_one_that_is_chosen_stands_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(REFERENCE, folder.path().join("tree.json")).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let line = "distill check tree.json --workload Pleach/PhillyGang-v1 --num-jobs 60 --estimates oracle --lists 2 --against fifo";
    let said = succeed(
        folder.path(),
        &format!("{line} --after 30min,6h,12h --out guard --json all.json"),
    );
    assert!(said.contains("| overdue after 6.0 h |"), "{said}");
    let report: serde_json::Value = serde_json::from_str(&read("all.json")).unwrap();
    let after: Vec<Option<f64>> = report["guards"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["overdue_after_s"].as_f64())
        .collect();
    assert_eq!(after, [None, Some(43_200.0), Some(21_600.0), Some(1800.0), None]);
    assert!(
        read("guard/check.html").contains("<svg")
            && read("guard/check.md").contains("**four times as long**")
    );
    succeed(folder.path(), "distill seal tree.json --overdue 12h");
    assert!(read("tree.json").contains("\"guards\": {\"overdue_after_s\":43200.0}"));
    let shown = succeed(folder.path(), "policies --show tree.json");
    assert!(
        shown.contains("Guard: of jobs that have waited more than 43,200 s (12.0 h)"),
        "{shown}"
    );
    succeed(folder.path(), "policies --show tree.json --html page.html");
    assert!(read("page.html").contains("<p>Guard: of jobs"));
    let exported = succeed(folder.path(), "export tree.json --to c,onnx --out code");
    assert!(exported.contains("guards are not in these files"), "{exported}");
    let search =
        "distill --search --workload Pleach/PhillyGang-v1 --start tree.json --simulations 100 --out found";
    let refused = pleach(folder.path(), search);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("start = tree.json: allowed is trees without guards"));
    for (flags, words) in [
        ("--after 5s", "guards.overdue_after_s = 5: allowed is 60 to"),
        ("--after soon", "expected number at 0"),
    ] {
        let refused = pleach(folder.path(), &format!("{line} {flags} --out other"));
        assert_eq!(refused.status.code(), Some(2), "{flags}");
        assert!(text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
    }
}

#[test]
fn an_edited_tree_is_checked_against_the_version_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::read_to_string(REFERENCE).unwrap();
    let edited = file.replace("\"tie_key\": \"smallest-gpu-time\"", "\"tie_key\": \"arrival\"");
    assert_ne!(file, edited);
    fs::write(folder.path().join("mine.json"), edited).unwrap();
    let line = "distill check mine.json --workload Pleach/PhillyGang-v1 --num-jobs 40 --estimates oracle --lists 2 --json check.json";
    let said = succeed(folder.path(), &format!("{line} --before {REFERENCE}"));
    assert!(said.contains("\n- "), "{said}");
    assert!(
        said.contains("inside a tier by arrival") && said.contains("| load 0.3 |"),
        "{said}"
    );
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("check.json")).unwrap()).unwrap();
    assert_eq!(
        (
            report["before"]["is_same"].as_bool(),
            report["before"]["parts"].as_array().unwrap().len()
        ),
        (Some(false), 5)
    );
    let same = succeed(
        folder.path(),
        &format!("distill check {REFERENCE} --before {REFERENCE} --num-jobs 20 --lists 2"),
    );
    assert!(same.contains("Both files decide alike.\n"), "{same}");
    assert_eq!(
        pleach(folder.path(), &format!("{line} --before none.json"))
            .status
            .code(),
        Some(2)
    );
}
