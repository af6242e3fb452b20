//! A month in which jobs wait longer than was promised: what the guard does about it, and what it leaves alone.

use std::path::{Path, PathBuf};

use pleach_daemon::config::LogSettings;
use pleach_daemon::round_facts::DecidedBy;
use pleach_daemon::snapshot::{JobSeen, Phase};
use pleach_daemon::state::{State, read_status};
use pleach_daemon::wait::block_on;
use pleach_daemon::{Driver, RoundSettings};
use pleach_scheduler::ExternalId;

use crate::driver::{NOW_S, Toy, waiting};

const HOUR_S: i64 = 3600;
const DAY_S: i64 = 24 * HOUR_S;

/// A promise of a mean wait of 600 s [300, 900], and of 7200 s for 99 of 100 jobs.
fn promise(folder: &Path) -> PathBuf {
    let path = folder.join("promise.json");
    let text = r#"{"version": 1, "policy": "fifo", "before": "easy", "wait_factor": 1.0, "num_days": 20.0,
        "world": {"seed": 0, "scheduling": {}},
        "rows": [{"by": "all", "name": "all", "num_jobs": 480, "figures": {
            "wait_s": {"value": 600.0, "low": 300.0, "high": 900.0},
            "wait_s_p99": {"value": 7200.0, "low": 7000.0, "high": 7400.0}}}]}"#;
    std::fs::write(&path, text).unwrap();
    path
}

/// A toy with a job an hour, each of all GPUs.
struct Month {
    folder: tempfile::TempDir,
    toy: Toy,
    settings: RoundSettings,
    num_jobs: u64,
}

impl Month {
    fn new() -> Month {
        let folder = tempfile::tempdir().unwrap();
        let settings = RoundSettings {
            promise: Some(promise(folder.path())),
            fallback: Some("sjf".into()),
            // The least in which a hundred jobs end.
            promise_days: 4.5,
            ..RoundSettings::default()
        };
        Month {
            folder,
            toy: Toy::default(),
            settings,
            num_jobs: 0,
        }
    }

    fn driver(&self, is_shadow: bool) -> Driver<Toy> {
        let state = State::take(&self.folder.path().join("state"), LogSettings::default()).unwrap();
        let policy = ("fifo", is_shadow);
        Driver::new(self.toy.clone(), self.settings.clone(), state, None, policy).unwrap()
    }

    /// The rounds of a day, one in twenty minutes, in which a job comes each hour that takes `run_s`; what is said of promises.
    fn day(&mut self, driver: &mut Driver<Toy>, number: i64, run_s: i64) -> Vec<String> {
        let mut said = Vec::new();
        for at_s in (0..DAY_S).step_by(1200).map(|at_s| NOW_S + number * DAY_S + at_s) {
            let mut world = self.toy.0.lock().unwrap();
            let has_ended = |job: &JobSeen| job.start_s.is_some_and(|start_s| at_s >= start_s + run_s);
            world.jobs.retain(|job| !has_ended(job));
            if at_s % HOUR_S == NOW_S % HOUR_S {
                self.num_jobs += 1;
                world.jobs.push(JobSeen {
                    submit_s: at_s,
                    ..waiting(self.num_jobs)
                });
            }
            drop(world);
            let notes = block_on(driver.round(at_s));
            said.extend(notes.into_iter().filter(|note| note.contains("promise")));
        }
        said
    }
}

/// The days from `first` on until something is said of a promise, at most `most`; which one, and what.
fn until_said(
    month: &mut Month,
    driver: &mut Driver<Toy>,
    (first, most): (i64, i64),
    run_s: i64,
) -> Option<(i64, Vec<String>)> {
    (first..first + most).find_map(|number| {
        let said = month.day(driver, number, run_s);
        (!said.is_empty()).then_some((number, said))
    })
}

#[test]
fn a_month_that_goes_worse_than_promised_ends_with_the_fallback_until_the_policy_is_read_again() {
    let mut month = Month::new();
    let mut driver = month.driver(false);
    // Two thirds of the GPUs' time are asked for, and no job waits.
    assert_eq!(until_said(&mut month, &mut driver, (0, 6), 2400), None);
    let status = driver.status().promise.clone().unwrap();
    assert!(
        status.is_full && status.broken.is_none() && status.num_jobs >= 100,
        "{status:?}"
    );
    assert_eq!(driver.status().truth.decided_by, DecidedBy::Policy);
    // From now on jobs take an hour and a half, and one comes each hour.
    let (day, said) = until_said(&mut month, &mut driver, (6, 6), 5400).unwrap();
    assert!((6..9).contains(&day), "{day}: {said:?}");
    let news = said
        .iter()
        .find(|text| text.starts_with("the promise is broken: "));
    // The page shows this very line.
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/deploy-slurm.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(news.unwrap().as_str()), "{news:?} on day {day}");
    // The next rounds are the fallback's, also of another process, which says so.
    month.day(&mut driver, day + 1, 5400);
    assert_eq!(driver.status().truth.decided_by, DecidedBy::Fallback);
    assert!(
        driver
            .status()
            .truth
            .why
            .contains("sjf answered: the promise is broken")
    );
    let told = driver.metrics_text().lock().unwrap().clone();
    assert!(told.contains("\npleach_promise_broken 1.0\n"), "{told}");
    drop(driver);
    let mut driver = month.driver(false);
    let warns = |driver: &Driver<Toy>| {
        let warnings = &driver.status().warnings;
        warnings
            .iter()
            .filter(|text| text.starts_with("the promise is broken"))
            .count()
    };
    assert_eq!(warns(&driver), 1);
    month.day(&mut driver, day + 2, 5400);
    assert_eq!(driver.status().truth.decided_by, DecidedBy::Fallback);
    let status = read_status(&month.folder.path().join("state")).unwrap();
    assert!(
        status
            .promise
            .unwrap()
            .told()
            .ends_with("promised is a wait of 600 s: BROKEN")
    );
    // An operator reads the policy again: it decides, and its window begins anew.
    driver.reload().unwrap();
    assert_eq!((warns(&driver), driver.status().promise.clone()), (0, None));
    month.day(&mut driver, day + 3, 2400);
    assert_eq!(driver.status().truth.decided_by, DecidedBy::Policy);
    drop(driver);
    assert_eq!(warns(&month.driver(false)), 0, "what was forgotten stays so");
}

#[test]
fn another_margin_and_a_shadow_break_nothing() {
    let mut month = Month::new();
    month.settings.margin = 100.0;
    let mut driver = month.driver(false);
    assert_eq!(until_said(&mut month, &mut driver, (0, 6), 4200), None);
    assert_eq!(driver.status().promise.clone().unwrap().broken, None);
    drop(driver);
    month.settings.margin = 0.0;
    let mut driver = month.driver(true);
    assert_eq!(until_said(&mut month, &mut driver, (6, 6), 4200), None);
    assert_eq!(driver.status().promise, None);
}

#[test]
fn a_job_that_never_starts_breaks_a_promise_and_one_that_is_blocked_does_not() {
    for is_blocked in [true, false] {
        let mut month = Month::new();
        // Jobs of two nodes, which the toy has not.
        for number in 0..40 {
            let mut job = waiting(1_000_000 + number);
            (job.num_nodes, job.submit_s) = (2, NOW_S);
            if is_blocked {
                job.phase = Phase::Blocked {
                    reason: "Dependency".into(),
                };
            }
            assert!(job.id > ExternalId::number(0));
            month.toy.0.lock().unwrap().jobs.push(job);
        }
        let mut driver = month.driver(false);
        let said = until_said(&mut month, &mut driver, (0, 6), 2400);
        assert_eq!(said.is_none(), is_blocked, "{said:?}");
    }
}

#[test]
fn what_is_no_promise_is_refused_with_its_file_at_the_start_and_when_it_is_read_again() {
    let month = Month::new();
    let path = month.settings.promise.clone().unwrap();
    let mut driver = month.driver(false);
    let text = std::fs::read_to_string(&path).unwrap();
    for (wrong, words) in [
        (
            text.replace("\"version\": 1", "\"version\": 9"),
            "version = 9: allowed is 1",
        ),
        (
            text.replace("600.0", "-600.0"),
            "wait_s = -600: allowed is 0 to 1e12",
        ),
        (text.replace("wait_s_p99", "wait_s_p50"), "has no wait_s_p99"),
        (text[..text.len() / 2].to_owned(), "EOF"),
        (text.replace("\"policy\"", "\"politics\""), "politics"),
    ] {
        std::fs::write(&path, wrong).unwrap();
        let said = driver.reload().unwrap_err().to_string();
        assert!(said.contains("promise.json") && said.contains(words), "{said}");
        let warnings = &driver.status().warnings;
        assert!(
            warnings
                .iter()
                .any(|text| text.starts_with("the last reload was refused: "))
        );
    }
    std::fs::remove_file(&path).unwrap();
    drop(driver);
    let state = State::take(&month.folder.path().join("state"), LogSettings::default()).unwrap();
    let refused = Driver::new(
        month.toy.clone(),
        month.settings.clone(),
        state,
        None,
        ("fifo", false),
    );
    assert!(refused.err().unwrap().to_string().contains("promise.json"));
}
