//! What the daemon says of starts that another process forecast: in a job's comment, and no more often than there is news.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use super::fake::Fake;

/// Two jobs that wait, the second with a comment of an operator's, and forecasts of them that were made so long ago.
fn site(age_s: u64) -> Fake {
    let fake = Fake::ordered(&[(4, "4:00:00")]);
    fake.come(2, 4, "4:00:00", "mark=see-ticket-7");
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let of = r#"{"at_once":0.0,"median_s":9000.0,"within_s":[3600.0,20000.0]}"#;
    let text = format!(
        r#"{{"version":1,"made_s":{},"method":"replay","policy":"sjf","held":0.8,"num_held":40,"jobs":{{"1":{of},"2":{of},"91":{of}}},"requests":[]}}"#,
        now_s - age_s
    );
    fs::create_dir_all(fake.at("state")).unwrap();
    fs::write(fake.at("state/when.json"), text).unwrap();
    fake
}

fn comments(fake: &Fake) -> Vec<String> {
    let log = fake.read("scontrol.log");
    let lines = log.lines().filter(|line| line.contains("admincomment"));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_bucket_of_a_job_that_waits_is_written_once_and_never_over_an_operators_words() {
    let fake = site(30);
    let said = fake.rounds("sjf", "--live", "3");
    let written = comments(&fake);
    assert_eq!(written.len(), 1, "{written:?} {said}");
    assert!(
        written[0].starts_with("update jobid=1 admincomment=pleach:median-wait-1h-to-4h-at-2"),
        "{written:?}"
    );
    assert!(fake.job(2).contains("see-ticket-7"), "{}", fake.job(2));
    // Our own comment is no operator's: another daemon writes it anew.
    fake.rounds("sjf", "--live", "2");
    assert_eq!(comments(&fake).len(), 2);
}

#[test]
fn a_shadow_writes_nothing_and_neither_does_old_news() {
    let fake = site(30);
    fake.rounds("sjf", "--shadow", "2");
    assert_eq!(comments(&fake), Vec::<String>::new());
    let fake = site(700);
    fake.rounds("sjf", "--live", "2");
    assert_eq!(comments(&fake), Vec::<String>::new());
}

#[test]
fn a_file_that_cannot_be_understood_costs_a_line_of_the_log_and_no_round() {
    let fake = site(30);
    fs::write(fake.at("state/when.json"), "{\"version\":7}").unwrap();
    let said = fake.rounds("sjf", "--live", "2");
    assert!(said.contains("when.json"), "{said}");
    assert!(fake.read("state/status.json").contains("\"num_failed\":0"));
    assert_eq!(fake.line().len(), 2);
}
