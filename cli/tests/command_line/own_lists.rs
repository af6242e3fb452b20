//! A list of one's own: trained on, distilled on, searched on, judged on what none of these saw.

use std::fs;

use super::{SMALL, pleach, succeed, text};

#[test]
fn a_list_of_ones_own_is_split_and_a_policy_of_it_is_judged_on_the_last_part() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("small.toml"), SMALL).unwrap();
    succeed(
        here,
        "workload write --workload philly-like --num-jobs 200 --to mine.csv",
    );
    let list = "--workload mine.csv --cluster 8x8:V100 --load 0.9 --estimates user --num-jobs 20";
    let said = succeed(here, &format!("train --config small.toml {list} --out net"));
    let split = "200 jobs, in windows of 20: 120 to train on (";
    assert!(said.contains(split) && said.contains("40 to judge on"), "{said}");
    let compare = said.split("compare it: pleach ").nth(1).unwrap().trim();
    assert!(compare.contains("--workload net/settings.toml"), "{said}");
    let table = succeed(here, &format!("{compare} --seeds 2"));
    assert!(table.contains("network"), "{table}");
    let line = format!("evaluate {list} --policy fifo,net --split test").replace(" --num-jobs 20", "");
    let table = succeed(here, &line);
    assert!(table.contains("the part test: 40 of 200 jobs"), "{table}");
    let said = succeed(
        here,
        &format!(
            "distill --teacher net {list} --leaves 4 --rounds 0 --episodes 2 --test-seeds 2 --part-lists 2 --out tree"
        ),
    );
    assert!(said.contains(split) && said.contains("load 0.3"), "{said}");
    let said = succeed(
        here,
        &format!("index --to f.json {list} --generations 1 --population 4 --lists 1 --validation-lists 1"),
    );
    assert!(said.contains(split), "{said}");
    for command in [
        "train --out no",
        "distill --teacher sjf --out no",
        "index --to no.json",
    ] {
        let refused = pleach(here, &format!("{command} --workload mine.csv --num-jobs 41"));
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{command}: {said}");
        assert!(
            said.contains("1 to 40") && said.contains("--num-jobs 10"),
            "{command}: {said}"
        );
        assert!(!here.join("no").exists(), "{command}");
    }
}

#[test]
fn a_search_for_an_index_says_of_a_list_whose_twin_is_not_believable_that_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    succeed(
        here,
        "workload write --workload philly-like --num-jobs 100 --to mine.csv",
    );
    let index = "index --to f.json --force --workload mine.csv --cluster 8x8:V100 --num-jobs 20 --generations 1 --population 4 \
                 --lists 1 --validation-lists 1";
    let doubt = "not believable";
    assert!(!succeed(here, index).contains(doubt));
    // All jobs are held back for a day, for a reason that no policy knows.
    let list = fs::read_to_string(here.join("mine.csv")).unwrap();
    let seen = list.lines().enumerate().map(|(row, line)| {
        let submit_s = line.split(',').nth(1).unwrap_or_default();
        match row {
            0 => format!("{line},observed_start_s\n"),
            _ => format!("{line},{}\n", submit_s.parse::<f64>().unwrap() + 86_400.0),
        }
    });
    fs::write(here.join("mine.csv"), seen.collect::<String>()).unwrap();
    let said = succeed(here, index);
    let line = said.lines().find(|line| line.contains(doubt)).unwrap_or_default();
    assert!(line.contains("pleach twin --fit"), "{said}");
    assert!(!succeed(here, &format!("{index} --quiet")).contains(doubt));
}
