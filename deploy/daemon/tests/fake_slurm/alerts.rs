//! Each alert rule, with the state that it is for: it fires there and not beside it. Of `for` and of the lengths of windows nothing
//! is tried here: a window is from one moment to another.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pleach_daemon::metrics::Metrics;
use pleach_daemon::promised::PromiseStatus;
use pleach_daemon::round_facts::DecidedBy;
use pleach_daemon::slurm::Slurm;
use pleach_daemon::state::Status;
use pleach_daemon::wait::block_on;
use pleach_daemon::{BatchSystem, Driver, Settings};
use serde_json::Value;

use super::aside::narrow_tree;
use super::fake::{Fake, QUEUE};

/// When the first round is, Unix time, s.
const BEGIN_S: i64 = 1_795_001_000;

/// Figures that are not there without a webhook and without a promise.
const OPTIONAL: [&str; 2] = ["pleach_jobs_unheld", "pleach_promise_broken"];

/// Expressions by the names of their alerts.
fn rules() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/alerts.yaml");
    let rules: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap().clone();
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
    rules
        .iter()
        .map(|rule| (text(rule, "alert"), text(rule, "expr")))
        .collect()
}

/// Figures at a moment.
#[derive(Clone, Default)]
struct Moment {
    now_s: i64,
    figures: BTreeMap<String, f64>,
}

impl Moment {
    fn value(&self, name: &str) -> f64 {
        *self
            .figures
            .get(name)
            .unwrap_or_else(|| panic!("nobody tells {name}: {:?}", self.figures))
    }

    /// The part of Prometheus' language that the rules use.
    fn term(&self, before: &Moment, text: &str) -> f64 {
        if let Some(name) = text.strip_prefix("time() - ") {
            return self.now_s as f64 - self.value(name);
        }
        match text
            .strip_prefix("increase(")
            .and_then(|rest| rest.split_once('['))
        {
            Some((name, _)) => self.value(name) - before.value(name),
            // A figure that is not there fires nothing.
            None if OPTIONAL.contains(&text) => *self.figures.get(text).unwrap_or(&f64::NAN),
            None => self.value(text),
        }
    }

    fn fires(&self, before: &Moment, rule: &str) -> bool {
        rule.split(" and ").all(|part| {
            let words: Vec<&str> = part.rsplitn(3, ' ').collect();
            let (value, limit) = (self.term(before, words[2]), words[0].parse::<f64>().unwrap());
            match words[1] {
                ">" => value > limit,
                "<" => value < limit,
                other => panic!("{other}"),
            }
        })
    }

    /// The alerts that fire.
    fn alerts(&self, before: &Moment) -> Vec<String> {
        let all = rules().into_iter();
        let firing = all.filter(|(_, rule)| self.fires(before, rule));
        firing.map(|(name, _)| name).collect()
    }
}

/// A daemon in this process, at times that the test tells.
struct Run {
    fake: Fake,
    driver: Driver<Slurm>,
    /// Whether Slurm looks at its queue behind each round.
    looks: bool,
}

impl Run {
    fn new(fake: Fake, policy: &str) -> Run {
        let settings = Settings::load(&fake.at("pleach.toml")).unwrap();
        let driver = Slurm::driver(&settings, policy, false).unwrap();
        Run {
            fake,
            driver,
            looks: true,
        }
    }

    /// A round so many seconds after the first one, and the figures after it.
    fn round(&mut self, after_s: i64) -> Moment {
        fs::write(self.fake.at("now"), (BEGIN_S + after_s).to_string()).unwrap();
        let moment = Moment::after(&mut self.driver, BEGIN_S + after_s);
        if self.looks {
            self.fake.look();
        }
        moment
    }
}

impl Moment {
    /// After a round of a driver.
    fn after(driver: &mut Driver<Slurm>, now_s: i64) -> Moment {
        block_on(driver.round(now_s));
        Moment::of(&driver.metrics_text().lock().unwrap(), now_s)
    }

    fn of(text: &str, now_s: i64) -> Moment {
        let figure = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Moment {
            now_s,
            figures: text.lines().filter_map(figure).collect(),
        }
    }
}

#[test]
fn where_all_is_well_no_alert_fires_and_silence_and_failures_are_told() {
    let mut run = Run::new(Fake::new(&QUEUE), "sjf");
    let first = run.round(0);
    let well = run.round(2);
    assert_eq!(well.alerts(&first), [""; 0]);
    assert_eq!(
        (
            well.value("pleach_jobs_started_total"),
            well.value("pleach_gpus_idle")
        ),
        (3.0, 0.0)
    );
    assert_eq!(run.driver.status().truth.oldest.as_ref().unwrap().name, "job 1");
    let later = |after_s| Moment {
        now_s: BEGIN_S + after_s,
        ..well.clone()
    };
    assert_eq!(later(62).alerts(&first), [""; 0]);
    assert_eq!(later(63).alerts(&first), ["PleachSilent"]);
    fs::write(run.fake.at("garbage"), "").unwrap();
    (4..7).for_each(|after_s| drop(run.round(after_s)));
    assert_eq!(run.round(7).alerts(&well), ["PleachRoundsFail"]);
}

#[test]
fn pods_that_arrive_unheld_are_told() {
    let mut metrics = Metrics::new(("jobs_left_alone", "Jobs that are left alone"));
    let mut alerts = |num_unheld| {
        let (at_s, num_rounds) = (BEGIN_S, 1);
        metrics.publish(&Status {
            at_s,
            num_rounds,
            num_unheld,
            ..Status::default()
        });
        let moment = Moment::of(&metrics.text().lock().unwrap(), BEGIN_S);
        moment.alerts(&moment)
    };
    assert_eq!((alerts(None), alerts(Some(0))), (vec![], vec![]));
    assert_eq!(alerts(Some(2)), ["PleachJobsUnheld"]);
}

#[test]
fn a_broken_promise_fires_and_a_kept_one_does_not() {
    let mut metrics = Metrics::new(("jobs_left_alone", "Jobs that are left alone"));
    let mut alerts = |broken: Option<&str>| {
        metrics.publish(&Status {
            at_s: BEGIN_S,
            num_rounds: 1,
            promise: Some(PromiseStatus {
                broken: broken.map(str::to_owned),
                ..PromiseStatus::default()
            }),
            ..Status::default()
        });
        let moment = Moment::of(&metrics.text().lock().unwrap(), BEGIN_S);
        moment.alerts(&moment)
    };
    assert_eq!(alerts(None), [""; 0]);
    assert_eq!(alerts(Some("jobs wait")), ["PleachPromiseBroken"]);
}

#[test]
fn a_job_that_waits_for_a_week_is_told_with_its_name() {
    let mut run = Run::new(Fake::new(&QUEUE), "sjf");
    run.round(0);
    let before = run.round(6 * 86_400);
    assert_eq!(before.alerts(&before), [""; 0]);
    assert_eq!(run.round(7 * 86_400).alerts(&before), ["PleachJobWaits"]);
    let told = run.driver.status().told(BEGIN_S + 7 * 86_400, &Slurm::WORDS);
    assert!(told.contains("job 1 has waited longest: 605799 s"), "{told}");
    assert!(
        told.contains("3 jobs were seen to start; 0 GPU(s) idle, 0 waiting job(s) would fit there"),
        "{told}"
    );
}

#[test]
fn gpus_that_slurm_leaves_idle_beside_jobs_that_fit_are_told() {
    let fake = Fake::ordered(&QUEUE);
    fake.end(91);
    // From now on Slurm starts no job.
    fs::remove_file(fake.at("own")).unwrap();
    let mut run = Run::new(fake, "sjf");
    run.looks = false;
    let before = run.round(0);
    let after = run.round(2);
    assert_eq!(after.alerts(&before), ["PleachIdleGpus"]);
    assert_eq!(
        (
            after.value("pleach_gpus_idle"),
            after.value("pleach_jobs_fitting")
        ),
        (4.0, 4.0)
    );
    // It does so now.
    fs::write(run.fake.at("own"), "").unwrap();
    run.round(4);
    let last = run.round(6);
    assert!(
        last.value("pleach_jobs_started_total") >= 1.0,
        "{:?}",
        last.figures
    );
}

#[test]
fn starts_that_do_not_run_are_told() {
    let mut metrics = Metrics::new(("jobs_left_alone", "Jobs that are left alone"));
    let mut moment = |num_starts| {
        metrics.publish(&Status {
            at_s: BEGIN_S,
            num_rounds: 1,
            num_starts,
            ..Status::default()
        });
        Moment::of(&metrics.text().lock().unwrap(), BEGIN_S)
    };
    let (first, well, last) = (moment(0), moment(3), moment(4));
    assert_eq!(well.alerts(&first), [""; 0]);
    assert_eq!(last.alerts(&first), ["PleachStartsDoNotRun"]);
}

/// Two daemons with folders of their own on one Slurm, round by round: what alerts fire, and what their statuses say.
fn both(fake: Fake, policies: [&str; 2]) -> [(Vec<String>, String); 2] {
    let settings = Settings::load(&fake.at("pleach.toml")).unwrap();
    let other = Settings {
        state_dir: fake.at("other"),
        ..settings.clone()
    };
    let mut other = Slurm::driver(&other, policies[1], false).unwrap();
    let mut run = Run::new(fake, policies[0]);
    let first = run.round(0);
    let mut last = [first.clone(), first.clone()];
    for after_s in (2..24).step_by(4) {
        let of_other = Moment::after(&mut other, BEGIN_S + after_s);
        last = [run.round(after_s + 2), of_other];
    }
    let told = [&run.driver, &other].map(|driver| driver.status().told(BEGIN_S + 24, &Slurm::WORDS));
    let [alerts, of_other] = last.map(|moment| moment.alerts(&first));
    let [told, by_other] = told;
    [(alerts, told), (of_other, by_other)]
}

#[test]
fn of_two_daemons_on_one_slurm_one_finds_the_other_out() {
    let is_told = |(alerts, told): &(Vec<String>, String), words: &str| {
        alerts.contains(&"PleachTwoDaemons".to_owned())
            && told.contains("WARNING: another daemon drives these jobs: job ")
            && told.contains(words)
    };
    let found = both(Fake::ordered(&QUEUE), ["sjf", "fifo"]);
    assert!(
        found.iter().any(|one| is_told(one, "which was not told here")),
        "{found:?}"
    );
}

#[test]
fn a_policy_that_does_not_decide_is_told_whoever_decides() {
    let fake = Fake::new(&QUEUE);
    let tree = narrow_tree(&fake);
    let mut run = Run::new(fake, &tree);
    let first = run.round(0);
    let fires = first.alerts(&first);
    assert!(fires.contains(&"PleachNotDeciding".to_owned()), "{fires:?}");
    assert_eq!(first.value("pleach_decided_by"), 1.0);
    let told = run.driver.status().told(BEGIN_S, &Slurm::WORDS);
    assert!(
        told.contains("another rule decided the last round: sjf decides"),
        "{told}"
    );

    // The fallback is the other way not to decide.
    let mut status = Status::default();
    status.truth.decided_by = DecidedBy::Fallback;
    status.truth.why = "sjf answered: tree was not done within 1 s".into();
    let mut metrics = Metrics::new(Slurm::WORDS.left_alone);
    metrics.publish(&status);
    let text = metrics.text().lock().unwrap().clone();
    assert!(text.contains("\npleach_decided_by 2\n"), "{text}");
    let told = status.told(0, &Slurm::WORDS);
    assert!(
        told.contains("the fallback decided the last round: sjf answered"),
        "{told}"
    );
}

#[test]
fn a_log_that_loses_lines_is_told() {
    let fake = Fake::new(&QUEUE);
    fs::create_dir_all(fake.at("state/decisions.jsonl")).unwrap();
    let mut run = Run::new(fake, "sjf");
    // Nothing was lost before.
    let mut before = run.round(0);
    before.figures.insert("pleach_log_lines_lost_total".into(), 0.0);
    run.fake.come(5, 1, "1:00", "");
    assert_eq!(run.round(2).alerts(&before), ["PleachLogLost"]);
}

#[test]
fn drift_is_told_by_its_index_and_every_rule_has_its_entry_in_the_documents() {
    // The state itself is provoked in `policies.rs`.
    let rule = &rules()["PleachDrift"];
    let at = |psi| Moment {
        now_s: 0,
        figures: BTreeMap::from([("pleach_drift_psi".to_owned(), psi)]),
    };
    assert!(
        at(1.5).fires(&at(0.0), rule)
            && !at(0.5).fires(&at(0.0), rule)
            && !at(f64::NAN).fires(&at(0.0), rule)
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/deploy-slurm.md");
    let page = fs::read_to_string(path).unwrap();
    for name in rules().keys() {
        assert!(page.contains(&format!("| `{name}` |")), "{name} has no entry");
    }
}
