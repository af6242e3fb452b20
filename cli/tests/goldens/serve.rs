//! `serve`: routers, autoscalers beside training, dispatchers of functions, and what searches find for each.

use pleach_tests::golden::hold;

use super::answers;
use crate::command_line::succeed;

const ROUTED: &str = "--num-requests 300 --replicas 3 --rate-per-s 36";

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
        "serve generate --num-requests 300 --turns 4 --to requests.csv --quiet",
    );
    let lines = [
        (
            "routers",
            format!(
                "serve evaluate {ROUTED} --lists 2 --rates 1,1.3 --refuse \
                 --router round-robin,least-ttft:shed=1,headroom,sessions,router.json"
            ),
        ),
        (
            "pools",
            format!("serve evaluate {ROUTED} --lists 2 --tpot-s 0.015 --pools 1:2,2:1 --router least-ttft"),
        ),
        (
            "own requests",
            "serve evaluate --requests requests.csv --replicas 3 --router least-tokens,least-requests".into(),
        ),
        (
            "explained",
            format!("serve evaluate {ROUTED} --lists 1 --refuse --router round-robin,router.json --explain 10"),
        ),
        ("requests", "serve describe requests.csv".into()),
        (
            "search",
            format!("serve search {ROUTED} --refuse --simulations 60 --judge-lists 3 --rates 1 --to found.json"),
        ),
        (
            "evolution",
            format!(
                "serve search {ROUTED} --refuse --learner evolution --updates 1 --pairs 1 --hidden 8 --judge-lists 2 \
                 --rates 1 --to routed"
            ),
        ),
        ("mixed", "serve mixed --hours 1 --lists 2".into()),
        (
            "functions",
            "serve functions --num-requests 400 --lists 2 --loads 1,1.4 --late shed --policy esg,infless,nexus,edf"
                .into(),
        ),
        (
            "functions search",
            "serve functions --setting strict-light --search 20 --judge-lists 2 --num-requests 100 --lists 1 \
             --nodes 2 --to dispatcher.json"
                .into(),
        ),
    ];
    let cases: Vec<_> = lines.iter().map(|(name, line)| (*name, line.as_str())).collect();
    hold("json-serve", answers(folder, &cases));
}

#[test]
fn a_searched_autoscaler_has_the_figures_that_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let line = "serve mixed --hours 1 --search 4 --tune-days 1 --judge-days 2 --to autoscaler.json";
    hold("json-mixed", answers(folder.path(), &[("search", line)]));
}
