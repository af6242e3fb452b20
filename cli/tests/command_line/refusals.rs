//! What is refused, with which exit code and in which words.

use std::fs;

use super::{pleach, succeed, text};

#[test]
fn an_input_that_cannot_be_used_exits_with_2_and_says_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("grid.toml"), "name = 'load'\nsedes = 3\n").unwrap();
    let plan = pleach(folder.path(), "sweep plan --config grid.toml");
    assert_eq!(plan.status.code(), Some(2));
    assert!(plan.stdout.is_empty());
    let words = text(&plan.stderr);
    assert!(
        words.contains("grid.toml, line 2, column 1") && words.contains("`seeds`"),
        "{words}"
    );
    assert_eq!(pleach(folder.path(), "sweep gather").status.code(), Some(2));
    assert_eq!(pleach(folder.path(), "prune").status.code(), Some(2));
    fs::write(folder.path().join("sweep.json"), "{}").unwrap();
    assert_eq!(
        pleach(folder.path(), "sweep gather --manifest sweep.json --status")
            .status
            .code(),
        Some(2)
    );
}

/// Each of these is refused with code 2, nothing on standard output, and these words.
#[test]
fn bad_input_is_refused_with_the_reason_and_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    succeed(
        folder.path(),
        "workload write --workload philly-like --num-jobs 20 --to good.csv",
    );
    let good = fs::read_to_string(folder.path().join("good.csv")).unwrap();
    let header = good.lines().find(|line| line.contains("num_gpus")).unwrap();
    let column = header.split(',').position(|name| name == "num_gpus").unwrap();
    let spoil = |value: &str| {
        let mut number = 0;
        let lines = good.lines().map(|line| {
            number += usize::from(!line.starts_with('#'));
            let mut cells: Vec<&str> = line.split(',').collect();
            if number == 3 {
                cells[column] = value;
            }
            cells.join(",")
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    for name in ["zero", "nan", "many", "none", "column"] {
        let cluster = folder.path().join(format!("{name}.cluster.toml"));
        fs::copy(folder.path().join("good.cluster.toml"), cluster).unwrap();
    }
    write("zero.csv", spoil("0").as_bytes());
    write("nan.csv", spoil("NaN").as_bytes());
    write("many.csv", spoil("1000000").as_bytes());
    write("none.csv", good.lines().next().unwrap().as_bytes());
    write("column.csv", good.replace("num_gpus", "how_many").as_bytes());
    write("torn.csv.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 75]);
    write("tree.json", b"{\"schema\": 1}");
    write("network.ckpt", b"not a checkpoint");
    write("nan.toml", b"[las-deal.rules]\nstint = nan\n");
    fs::create_dir(folder.path().join("folder.toml")).unwrap();
    for (line, words) in [
        ("evaluate --policy fofo", vec!["fofo", "fifo", "easy"]),
        ("evaluate --policy tree.json", vec!["tree.json"]),
        ("evaluate --policy network.ckpt", vec!["network.ckpt"]),
        (
            "evaluate --workload nothing.csv",
            vec!["nothing.csv (there is no such file)"],
        ),
        (
            "evaluate --workload zero.csv",
            vec!["data: zero.csv, line 3, column num_gpus: "],
        ),
        (
            "evaluate --workload nan.csv",
            vec!["data: nan.csv, line 3, column num_gpus: ", "NaN"],
        ),
        (
            "evaluate --workload none.csv",
            vec!["data: none.csv: ", "no job is left to run"],
        ),
        ("evaluate --workload many.csv", vec!["1000000"]),
        (
            "evaluate --workload column.csv",
            vec!["column.csv", "no known header", "pleach workload import"],
        ),
        ("evaluate --workload torn.csv.gz", vec!["torn.csv.gz"]),
        ("evaluate --load 1000", vec!["1000", "10"]),
        (
            "workload describe --workload philly-like,gavel-multi",
            vec!["philly-like,gavel-multi", "one workload"],
        ),
        (
            "workload describe --window-days 3",
            vec!["window_days = 3", "for trace files"],
        ),
        (
            "workload describe --workload good.csv --window-days 3",
            vec!["window_days = 3", "--from-day"],
        ),
        (
            "workload write --workload philly-like,gavel-multi --to w.csv",
            vec!["philly-like,gavel-multi", "one workload"],
        ),
        (
            "workload write --workload good.csv --window-days 3 --to w.csv",
            vec!["window_days = 3", "--from-day"],
        ),
        // The cluster of good.csv lies where this one's would.
        (
            "workload write --workload gavel-multi --to good.parquet",
            vec!["good.cluster.toml", "--force"],
        ),
        (
            "workload describe --from-day 3",
            vec!["from_day = 3", "Pleach/Philly-v0", "for trace files"],
        ),
        (
            "evaluate --workload philly-like --virtual-clusters",
            vec!["virtual_clusters", "philly-like", "for trace files"],
        ),
        (
            "evaluate --workload good.csv,./good.csv",
            vec!["./good.csv", "listed twice"],
        ),
        (
            "evaluate --policy fifo,sjf --reference srtf",
            vec!["reference = srtf", "fifo, sjf"],
        ),
        (
            "distill --teacher sjf --format philly",
            vec!["format = philly", "for trace files"],
        ),
        (
            "distill --teacher sjf --cluster good.cluster.toml",
            vec!["good.cluster.toml", "workload write --cluster"],
        ),
        (
            "distill --teacher sjf --workload good.csv --split test",
            vec!["split = test", "the last for judging"],
        ),
        (
            "distill --teacher sjf --objective avg_jct_s=1,jct_s=0.5",
            vec![
                "objective = jct_s",
                "avg_jct_s, p50_jct_s",
                "--objective avg_jct_s=1,p99",
            ],
        ),
        (
            "workload describe --policy fofo",
            vec!["fofo", "Did you mean fifo?"],
        ),
        (
            "workload describe --policy easy --no-simulate",
            vec!["--no-simulate"],
        ),
        (
            "train --env Pleach/Nothing-v9",
            vec!["Pleach/Nothing-v9", "Pleach/Philly-v0"],
        ),
        #[cfg(feature = "lab")]
        (
            "reproduce B1 --smoke --data nowhere",
            vec!["data = nowhere", "no such folder"],
        ),
        ("quickstart --leaves 0", vec!["0"]),
        ("--generate folder policies", vec!["--generate"]),
        (
            "policies --features --json list.json",
            vec!["--features", "--json"],
        ),
        (
            "distill --teacher sjf --workload philly-like --against fifo",
            vec!["against = given", "of a teacher alone"],
        ),
        // What earlier versions took.
        (
            "distill --teacher sjf --fits 2",
            vec![
                "unexpected argument '--fits'",
                "command = \"distill\" and seeds = 5",
            ],
        ),
        (
            "verify record.csv --html page.html",
            vec!["pleach watch FILE --out PAGE"],
        ),
        ("sweep status", vec!["sweep gather --status"]),
        (
            "distill --teacher sjf --frontier",
            vec!["unexpected argument '--frontier'", "a grid of leaves"],
        ),
        ("train --config folder.toml", vec!["folder.toml"]),
        ("train --fine-tune network.ckpt", vec!["network.ckpt", "PLEACHCK"]),
        (
            "evaluate --policy las-deal --policy-config nan.toml",
            vec!["nan.toml", "las-deal.rules.stint = nan"],
        ),
        ("train --num-envs 7", vec!["num_envs = 7", "group_size = 16"]),
        ("train --device gpu", vec!["gpu", "cpu, cuda, wgpu"]),
        (
            "train --device cuda --set train.learner=evolution",
            vec!["device = cuda", "cpu with evolution strategies", "--device"],
        ),
        #[cfg(not(feature = "cuda"))]
        (
            "train --device cuda",
            vec![
                "device = cuda",
                "in this build",
                "cargo build --release --features cuda",
            ],
        ),
        #[cfg(not(feature = "wgpu"))]
        (
            "train --device wgpu",
            vec![
                "device = wgpu",
                "in this build",
                "cargo build --release --features wgpu",
            ],
        ),
    ] {
        let output = pleach(folder.path(), line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
        for word in words {
            assert!(said.contains(word), "{line}: no {word} in {said}");
        }
    }
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_not_utf_8_and_a_full_standard_error_are_no_panic() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"tr\xff\xfece.csv");
    let run = |words: &[&std::ffi::OsStr], full: bool| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pleach"));
        command.current_dir(folder.path()).args(words);
        if full {
            command.stderr(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        }
        command.output().unwrap()
    };
    let words = |line: &str| -> Vec<std::ffi::OsString> { line.split(' ').map(Into::into).collect() };
    let as_words = |words: &[std::ffi::OsString], last: Option<&std::ffi::OsStr>, full| {
        let words: Vec<_> = words.iter().map(AsRef::as_ref).chain(last).collect();
        run(&words, full)
    };
    for line in [
        "evaluate --workload",
        "evaluate --policy",
        "train --config",
        "train --fine-tune",
        "sweep plan --config",
    ] {
        let refused = as_words(&words(line), Some(odd), false);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{line}: {said}");
        assert!(!said.contains("panicked") && !said.is_empty(), "{line}: {said}");
    }
    // It is no part of a report; the run itself is fine.
    let line = "evaluate --policy sjf --num-jobs 20 --seeds 1 --quiet --html";
    assert_eq!(as_words(&words(line), Some(odd), false).status.code(), Some(0));
    if std::path::Path::new("/dev/full").exists() {
        for (line, code) in [
            ("evaluate --policy nobody", 2),
            ("evaluate --policy sjf --num-jobs 20 --seeds 1", 0),
            ("train --nothing", 2),
        ] {
            assert_eq!(
                as_words(&words(line), None, true).status.code(),
                Some(code),
                "{line}"
            );
        }
    }
}

#[test]
fn threads_by_variable_are_bounded_as_threads_by_flag() {
    let folder = tempfile::tempdir().unwrap();
    for (value, code) in [("100000000", 2), ("-3", 2), ("1025", 2), ("2", 0), ("0", 0)] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pleach"));
        command.current_dir(folder.path()).env("RAYON_NUM_THREADS", value);
        let line = "evaluate --policy sjf --num-jobs 20 --seeds 1 --quiet";
        let output = command.args(line.split(' ')).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{value}: {said}");
        let names_it = said.contains(&format!("RAYON_NUM_THREADS = {value}: allowed is 1 to 1024"));
        assert_eq!(names_it, code == 2, "{said}");
    }
}

#[cfg(not(feature = "lab"))]
#[test]
fn without_the_laboratory_its_names_are_answered_with_the_feature_that_brings_them() {
    let folder = tempfile::tempdir().unwrap();
    for line in [
        "evaluate --policy tiresias",
        "policies --show gavel-las",
        "suite",
        "tournament",
        "reproduce B1",
        "bench",
    ] {
        let refused = pleach(folder.path(), line);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("feature `lab`"), "{line}: {said}");
    }
    let listed = succeed(folder.path(), "policies");
    assert!(listed.contains("conservative") && listed.contains("las-deal") && !listed.contains("tiresias"));
}
