//! What another policy would have decided, by a log.

use serde_json::Value;

use super::fake::{Fake, QUEUE, out};

#[test]
fn another_policy_on_the_same_log_is_told_start_by_start() {
    let fake = Fake::new(&QUEUE);
    // By the limits 4, 2 and 3 start; strictly in the order of arrival 1 does and 2 on the other
    // node, and 4 waits behind 3.
    fake.played("sjf", 1);
    assert_eq!(fake.order(), [4, 2, 3]);
    let same = out(&fake.scheduler(&["diff", "--policy", "sjf"]));
    assert!(
        same.contains("0 of 1 rounds")
            && same.contains("3 starts in the log: 3 in the same round on the same nodes"),
        "{same}"
    );
    let state = fake.at("state").display().to_string();
    let text = out(&fake.scheduler(&["diff", &state, "--policy", "fifo", "--json"]));
    let told: Value = serde_json::from_str(&text).unwrap();
    let num = |key: &str| told[key].as_u64().unwrap();
    assert_eq!(
        (num("num_rounds"), num("num_otherwise"), num("num_starts")),
        (1, 1, 3),
        "{text}"
    );
    // 1 comes, which the log does not have; 3 and 4 do not.
    assert_eq!(
        (num("num_earlier"), num("num_later"), num("num_only_here")),
        (1, 2, 1),
        "{text}"
    );
    assert_eq!((num("num_alike"), num("num_elsewhere")), (0, 1), "{text}");
    let starts = told["starts"].as_array().unwrap();
    let of = |change: &str| -> Vec<&str> {
        let all = starts.iter().filter(|start| start["change"] == change);
        all.map(|start| start["job"].as_str().unwrap()).collect()
    };
    assert_eq!(
        (of("earlier"), of("later")),
        (vec!["1"], vec!["3", "4"]),
        "{text}"
    );
    let words = out(&fake.scheduler(&["diff", "--policy", "fifo", "--last", "7d"]));
    assert!(
        words.contains("1 of 1 rounds") && words.contains("job 1, 4 GPU(s): "),
        "{words}"
    );
    assert!(words.contains("job 3, 4 GPU(s): later"), "{words}");
    assert!(
        words.contains("as it was in the log") && words.contains("pleach evaluate"),
        "{words}"
    );
    assert!(words.lines().count() <= 23, "{words}");
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let none = out(&fake.scheduler(&["diff", "--policy", "fifo", "--last", "1s"]));
    assert!(none.contains("No round of the log was decided again"), "{none}");
    let bad = fake.scheduler(&["diff", "--policy", "fifo", "--last", "7 moons"]);
    assert!(!bad.status.success());
}
