//! Forecasts of starts: bare intervals against what a real Slurm did, and what an answer never shows.

use pleach_env::workload::estimates::EstimateModel;
use pleach_env::{GeneratorConfig, Seed, SimConfig, generate};
use pleach_experiments::SchedulingConfig;
use pleach_experiments::door::DOOR;
use pleach_experiments::progress::Watcher;
use pleach_experiments::when::{Ask, asked, hindcast, list_of, recorded, when};
use pleach_forecast::boost::quantile;
use pleach_forecast::draws::Draws;
use pleach_forecast::hindcast::Asked;
use pleach_forecast::record::Present;
use pleach_forecast::replay::{DAYS_MAX_S, Site};
use pleach_scheduler::{ActionKind, Capabilities, Time};

use crate::recorded_sites::list;
use crate::slurm_sites::recorded as recorded_slurms;

/// Replays of each forecast.
const REPLAYS: u64 = 40;

/// 80 % intervals of replays alone, from the few jobs that have ended: no answer is made of them alone, and this is why.
#[test]
fn intervals_of_bare_replays_hold_three_fifths_of_the_starts_of_recorded_slurms() {
    let (mut num_held, mut num) = (0, 0);
    for (name, path, _, _, policy) in recorded_slurms() {
        let workload = list(&path, "sacct.txt", "nodes.txt");
        if workload.jobs.len() < 50 {
            continue;
        }
        let sim = SimConfig {
            capabilities: Capabilities::DEFAULT.with(ActionKind::MixTypes),
            estimates: EstimateModel::UserLimit { default_s: 3600.0 },
            ..SimConfig::default()
        };
        let asked = Asked {
            workload: &workload,
            sim: &sim,
            policy: &policy,
            num_replays: REPLAYS,
            seed: Seed(1),
            method: None,
        };
        let (held_before, before) = (num_held, num);
        for (job, spec) in workload.jobs.iter().enumerate().skip(20).step_by(3) {
            let Some(observed) = spec.observed.as_deref() else {
                continue;
            };
            let now = asked.until(spec.submit + Time(1), |_| false).unwrap();
            let present: Present = now.present();
            let Some(number) = present.waiting.iter().position(|other| *other == job) else {
                continue;
            };
            let site = Site {
                workload: &workload,
                sim: &sim,
                policy: &policy,
                estimates: now.estimates(),
            };
            let draws = Draws::at(&site, &now.past, &present);
            let start = |replay| {
                let drawn = draws.draw(Seed(2), replay, None, DAYS_MAX_S);
                site.replay(&present, &drawn, 0, &[number], DAYS_MAX_S).unwrap()[number]
            };
            let mut starts_s: Vec<f64> = (0..REPLAYS).map(start).collect();
            starts_s.sort_unstable_by(f64::total_cmp);
            // The record is in whole seconds.
            let within = quantile(&starts_s, 0.1) - 1.0..=quantile(&starts_s, 0.9) + 1.0;
            num_held += usize::from(within.contains(&(observed.start - spec.submit).as_secs_f64()));
            num += 1;
        }
        println!("{name}: {} of {}", num_held - held_before, num - before);
    }
    if num > 0 {
        let held = num_held as f64 / num as f64;
        println!("{num_held} of {num}: {held:.3}");
        assert!((0.56..=0.68).contains(&held), "{num_held} of {num}");
    }
}

#[test]
fn an_answer_repeats_itself_names_no_user_and_says_how_it_came_about() {
    let generated = generate(&GeneratorConfig::default().with(400, 1.0), Seed(4)).unwrap();
    let mut workload = generated
        .on_cluster(pleach_scheduler::ClusterSpec::uniform(8, 8, 4))
        .unwrap();
    for (number, job) in workload.jobs.iter_mut().enumerate() {
        job.user = Some(format!("secret{}", number % 5));
        job.id = format!("hidden{number}");
    }
    let sim = SimConfig {
        estimates: EstimateModel::HISTORY,
        ..SimConfig::default()
    };
    let policy = DOOR.open_one("easy").unwrap();
    let (workload, is_played) = recorded(workload, &sim, &policy).unwrap();
    assert!(is_played);
    let asked = asked(&workload, (&sim, &policy), 5, "auto");
    let ask = Ask {
        gpus: 8,
        time_s: Some(3600.0),
        ..Ask::default()
    };
    let at_s = workload.jobs[300].submit.as_secs_f64();
    let answer = when(&asked, Some(at_s), &ask, &Watcher::silent()).unwrap();
    let text = serde_json::to_string(&answer).unwrap();
    assert_eq!(
        text,
        serde_json::to_string(&when(&asked, Some(at_s), &ask, &Watcher::silent()).unwrap()).unwrap()
    );
    let words = answer.words();
    for shown in [&text, &words] {
        assert!(!shown.contains("secret") && !shown.contains("hidden"), "{shown}");
    }
    assert!(
        words.contains("80 %") && words.contains("how: ") && words.contains("not known here"),
        "{words}"
    );
    let refused = when(&asked, Some(at_s), &Ask { gpus: 65, ..ask }, &Watcher::silent())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("gpus = 65: allowed is 1 to 64"), "{refused}");
    let found = hindcast(&asked, None, is_played, &Watcher::silent()).unwrap();
    assert_eq!(found.rows.len(), 7);
    let gains = found.gains.unwrap();
    assert!(gains.num_gangs > 3 && gains.num_picked > 0, "{gains:?}");
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.loss_s >= 0.0 && row.loss_log.is_finite())
    );
}

/// Of a site's accounting, at its end: of two jobs that wait one is held.
#[test]
fn a_job_that_waits_in_a_sites_accounting_has_an_answer_and_one_that_is_held_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let row = |id: u32, [submit, eligible, start, end]: [&str; 4], elapsed: &str, state: &str, gpus: u32| {
        let at = |clock: &str| match clock {
            "" => "Unknown".to_owned(),
            clock => format!("2024-03-01T{clock}:00"),
        };
        let [submit, eligible, start, end] = [submit, eligible, start, end].map(at);
        let tres = format!("gres/gpu={gpus},node=1");
        let (alloc, node) = if start == "Unknown" {
            ("", "None assigned")
        } else {
            (&*tres, "g1")
        };
        format!(
            "{id}|ann|{submit}|{eligible}|{start}|{end}|{elapsed}|04:00:00|{state}|{tres}|{alloc}|{node}\n"
        )
    };
    let rows = [
        row(
            1,
            ["08:00", "08:00", "08:00", "09:00"],
            "01:00:00",
            "COMPLETED",
            8,
        ),
        row(2, ["08:30", "08:30", "09:00", ""], "01:00:00", "RUNNING", 8),
        row(3, ["09:30", "09:30", "", ""], "00:00:00", "PENDING", 8),
        row(4, ["09:40", "", "", ""], "00:00:00", "PENDING", 1),
    ];
    let header = "JobID|User|Submit|Eligible|Start|End|Elapsed|Timelimit|State|ReqTRES|AllocTRES|NodeList\n";
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("sacct.txt"), header.to_owned() + &rows.concat()).unwrap();
    let jobs = file("sacct.txt").display().to_string();
    std::fs::write(
        file("site.toml"),
        format!("jobs = {jobs:?}\npolicy = [\"easy\"]\n"),
    )
    .unwrap();
    let name = file("site.toml").display().to_string();
    let (list, sim, policy) = list_of(&name, None, None, &SchedulingConfig::default()).unwrap();
    let (list, is_played) = recorded(list, &sim, &policy).unwrap();
    assert!(!is_played);
    let asked = asked(&list, (&sim, &policy), 5, "replay");
    let of = |job: &str| {
        let ask = Ask {
            job: Some(job.into()),
            ..Ask::default()
        };
        when(&asked, None, &ask, &Watcher::silent())
    };
    let answer = of("3").unwrap();
    assert_eq!((answer.queue, answer.gpus), ([1.0, 1.0, 8.0], [0.0, 8.0]));
    assert!(
        answer.words().starts_with("job 3 of 8 GPUs has waited 30.0 min"),
        "{}",
        answer.words()
    );
    assert!((1.0..10_800.0).contains(&answer.forecast.median_s), "{answer:?}");
    assert!(
        of("4")
            .unwrap_err()
            .to_string()
            .contains("one of the 1 jobs that wait")
    );
}
