//! `evaluate` and `explain`.

use std::fs;

use pleach_tests::golden::hold;

use super::answers;
use crate::command_line::{site::synthetic_site, succeed};

const MULTI: &str = "evaluate --workload Pleach/GavelMulti-v1 --num-jobs 200 --load 4 --seeds 3";
const GANG: &str = "evaluate --workload Pleach/PhillyGang-v1 --num-jobs 80 --load 4 --seeds 3";

#[cfg(feature = "lab")]
#[test]
fn comparisons_and_explanations_have_the_figures_that_they_had() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (place, file) in [
        ("checkpoints/reference", "GavelMulti-v1.ckpt"),
        ("tests/trees", "GavelMulti-v1-tree.json"),
        ("tests/trees", "PhillyGang-v1-tree.json"),
        ("checkpoints/reference", "index.json"),
    ] {
        let from = format!("{}/../{place}/{file}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, folder.join(file)).unwrap();
    }
    synthetic_site::write(folder, 12.0).unwrap();
    succeed(
        folder,
        "workload import sacct.txt --nodes nodes.txt --to month.csv",
    );
    let explained = "explain PhillyGang-v1-tree.json --workload Pleach/PhillyGang-v1 --num-jobs 80 --load 4";
    let lines = [
        ("reference", format!("{MULTI} --policy fifo,sjf,easy,las --reference sjf")),
        (
            "files",
            format!("{MULTI} --policy fifo,GavelMulti-v1-tree.json,GavelMulti-v1.ckpt,index.json"),
        ),
        (
            "two workloads",
            "evaluate --workload Pleach/PhillyGang-v1,Pleach/HeliosTenants-v1 --num-jobs 80 --load 3 --seeds 2 \
             --policy fifo,easy,tiresias --preemption --metric p99_jct_s"
                .into(),
        ),
        (
            "windows keep running",
            "evaluate --workload month.csv --window-days 3 --keep-running --policy easy,sjf,fifo".into(),
        ),
        (
            "history",
            format!("{GANG} --policy easy,sjf --estimates history"),
        ),
        (
            "estimates, restarts",
            format!("{GANG} --policy sjf,las --preemption --estimates lognormal:1 --overheads by-class"),
        ),
        (
            "batch system",
            format!("{GANG} --policy easy,sjf --batch-system slurm"),
        ),
        (
            "ablations",
            format!("{MULTI} --policy sjf,sjf-best-type --ablate"),
        ),
        (
            "sharing",
            "evaluate --workload Pleach/GavelShare-v1 --num-jobs 200 --load 4 --seeds 2 --policy sjf,sjf-share \
             --sharing mps"
                .into(),
        ),
        ("planners", format!("{MULTI} --policy gavel-las,las-deal,allox --preemption")),
        ("overtaking", explained.into()),
        ("job", format!("{explained} --job 17")),
        (
            "why not",
            "explain PhillyGang-v1-tree.json --workload Pleach/PhillyGang-v1 --num-jobs 200 --load 8 --why-not 40".into(),
        ),
        ("against", format!("{explained} --against sjf")),
        ("certificates", "distill check PhillyGang-v1-tree.json".into()),
    ];
    let cases: Vec<_> = lines.iter().map(|(name, line)| (*name, line.as_str())).collect();
    hold("json-evaluate", answers(folder, &cases));
}
