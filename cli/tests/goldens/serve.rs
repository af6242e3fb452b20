//! Worlds that serve: routers, autoscalers beside training, dispatchers of functions, and what searches find for each.

use pleach_tests::golden::hold;

use super::answers;
use crate::command_line::succeed;

const ROUTED: &str = "--set num_requests=300 --set replicas=3 --set rate_per_s=36";

#[test]
fn routers_autoscalers_and_dispatchers_have_the_figures_that_they_had() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(
        folder.join("router.json"),
        include_str!("../command_line/router.json"),
    )
    .unwrap();
    succeed(
        folder,
        "workload write --workload requests --set num_requests=300 --set turns=4 --to requests.csv",
    );
    let lines = [
        (
            "routers",
            format!(
                "evaluate --workload requests {ROUTED} --set lists=2 --set loads=1,1.3 --set refuse=true \
                 --policy round-robin,least-ttft:shed=1,headroom,sessions,router.json"
            ),
        ),
        (
            "pools",
            format!(
                "evaluate --workload requests {ROUTED} --set lists=2 --set tpot_s=0.015 --set pools=1:2,2:1 \
                 --policy least-ttft"
            ),
        ),
        (
            "own requests",
            "evaluate --workload requests.csv --set replicas=3 --policy least-tokens,least-requests".into(),
        ),
        (
            "explained",
            format!("explain router.json --workload requests {ROUTED} --set refuse=true --decision 11"),
        ),
        ("requests", "workload describe --workload requests.csv".into()),
        (
            "search",
            format!(
                "distill --search --workload requests {ROUTED} --set refuse=true --simulations 60 \
                 --set search.judge_lists=3 --set search.loads=1 --out found"
            ),
        ),
        (
            "evolution",
            format!(
                "train --workload requests {ROUTED} --set refuse=true --learner evolution --set train.num_updates=1 \
                 --set train.evolution.num_pairs=1 --set train.network.hidden=8 --set train.network.context=8 \
                 --set search.judge_lists=2 --set search.loads=1 --out routed"
            ),
        ),
        ("mixed", "evaluate --workload service --set hours=1 --set lists=2".into()),
        (
            "functions",
            "evaluate --workload calls --set num_requests=400 --set lists=2 --set loads=1,1.4 --set late=shed \
             --policy esg,infless,nexus,edf"
                .into(),
        ),
        (
            "functions search",
            "distill --search --workload calls --set setting=strict-light --simulations 20 --set search.judge_lists=2 \
             --set num_requests=100 --set nodes=2 --out dispatcher"
                .into(),
        ),
    ];
    let cases: Vec<_> = lines.iter().map(|(name, line)| (*name, line.as_str())).collect();
    hold("json-serve", answers(folder, &cases));
}

#[test]
fn a_searched_autoscaler_has_the_figures_that_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let line = "distill --search --workload service --set hours=1 --simulations 4 --set search.tune_lists=1 \
                --set search.judge_lists=2 --out autoscaler";
    hold("json-mixed", answers(folder.path(), &[("search", line)]));
}
