//! What users see on their pods and Jobs: an event whenever where a job stands changes, and never else.

use std::time::{Duration, Instant};

use crate::driven::Driven;
use crate::fake::{Fake, World, owned};
use crate::objects::{NOW_S, node, pod};
use serde_json::{Value, json};

/// A controller over a node of 8 GPUs, pods of 8 that came one after the other, the first of a Job.
async fn open(num: usize) -> Driven {
    let mut world = World {
        life_ms: 1_000_000,
        now_s: Some(NOW_S),
        ..World::default()
    };
    world.add_node(node("n1", 8));
    for number in 0..num {
        let mut pod = owned(pod(&format!("w-{number}"), 8));
        pod["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": format!("fit-{number}") });
        world.add_pod(pod);
    }
    Driven::new(Fake::start(world).await, "fifo", |_| ())
}

/// Waits until there are so many events, and a moment longer for those that should not be.
async fn events(fake: &Fake, num: usize) -> Vec<Value> {
    let begin = Instant::now();
    while fake.world.lock().unwrap().events.len() < num && begin.elapsed() < Duration::from_secs(30) {
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    tokio::time::sleep(Duration::from_millis(30)).await;
    let world = fake.world.lock().unwrap();
    world.events.iter().map(|(_, event)| event.clone()).collect()
}

fn of<'a>(events: &'a [Value], kind: &str, name: &str) -> Vec<(&'a str, &'a str)> {
    let own = events
        .iter()
        .filter(|event| event["involvedObject"]["kind"] == kind && event["involvedObject"]["name"] == name);
    own.map(|event| {
        (
            event["reason"].as_str().unwrap(),
            event["message"].as_str().unwrap(),
        )
    })
    .collect()
}

#[tokio::test]
async fn users_see_their_place_and_their_start_once_and_a_new_controller_says_nothing_again() {
    let mut driven = open(3).await;
    driven.controller.round(NOW_S).await;
    // A pod and a Job each.
    let seen = events(&driven.fake, 6).await;
    assert_eq!(seen.len(), 6, "{seen:#?}");
    let [(reason, message)] = of(&seen, "Pod", "w-1")[..] else {
        panic!("{seen:#?}")
    };
    assert_eq!(reason, "PleachWaits");
    assert!(
        message.starts_with("Waits for 8 GPUs: number 2 of 3 jobs that wait"),
        "{message}"
    );
    assert_eq!(of(&seen, "Job", "fit-1"), [(reason, message)]);
    // The first was started in that round, which the next one sees; nothing changes for the others.
    for after_s in [2, 4, 6] {
        driven.controller.round(NOW_S + after_s).await;
    }
    let seen = events(&driven.fake, 8).await;
    assert_eq!(seen.len(), 8, "{seen:#?}");
    let first = of(&seen, "Pod", "w-0");
    assert_eq!(first[1].0, "PleachStarted");
    assert!(first[1].1.contains("n1 (1)"), "{first:?}");
    // After ten minutes those whose place has changed hear of it.
    driven.controller.round(NOW_S + 700).await;
    let seen = events(&driven.fake, 12).await;
    let again = of(&seen, "Pod", "w-2");
    assert_eq!((seen.len(), again.len()), (12, 2), "{seen:#?}");
    assert!(again[1].1.contains("number 2 of 2"), "{again:?}");
    // Another controller: the same news have the same names.
    let mut driven = driven.begun_again("fifo");
    driven.controller.round(NOW_S + 710).await;
    driven.controller.round(NOW_S + 712).await;
    assert_eq!(events(&driven.fake, 12).await.len(), 12);
}

#[tokio::test]
async fn without_the_right_to_events_jobs_start_all_the_same_and_an_operator_reads_why() {
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = open(1).await;
    fake.world.lock().unwrap().refuses_events = true;
    controller.round(NOW_S).await;
    assert!(events(&fake, 0).await.is_empty());
    let notes = controller.round(NOW_S + 2).await;
    assert!(
        notes.iter().any(|note| note.contains("may not create them")),
        "{notes:?}"
    );
    assert_eq!(fake.world.lock().unwrap().lifted.len(), 1);
}

#[tokio::test]
async fn of_many_events_some_are_written_at_once_and_the_others_by_and_by() {
    let mut driven = open(80).await;
    for (after_s, num) in [(0, 100), (0, 100), (1, 110), (4, 140), (20, 162)] {
        driven.controller.round(NOW_S + after_s).await;
        let seen = events(&driven.fake, num).await;
        assert_eq!(seen.len(), num, "after {after_s} s");
    }
}

/// Forecasts of all jobs of a look.
fn foretell(driven: &Driven, made_s: i64, median_s: f64) {
    let view = driven.controller.system().view();
    let observed = view.last(Duration::from_secs(600)).unwrap();
    let of = json!({ "at_once": 0.0, "median_s": median_s, "within_s": [600.0, 2.0 * median_s] });
    let jobs: serde_json::Map<String, Value> = observed
        .snapshot
        .jobs
        .iter()
        .map(|job| (job.id.to_string(), of.clone()))
        .collect();
    let starts = json!({ "version": 1, "made_s": made_s, "method": "replay", "policy": "fifo", "held": 0.8, "num_held": 9,
        "jobs": jobs, "requests": [] });
    std::fs::write(driven.settings.state_dir.join("when.json"), starts.to_string()).unwrap();
}

/// The forecasts shown on the second pod, once there are so many, or after a second, and two rounds: other events go first.
async fn told(driven: &mut Driven, now_s: i64, num: usize) -> Vec<String> {
    let mut told = Vec::new();
    for round in 0..2 {
        driven.controller.round(now_s + round).await;
        for _ in 0..20 {
            let seen = events(&driven.fake, 0).await;
            let of_pod = of(&seen, "Pod", "w-1");
            let all = of_pod.iter().filter(|(reason, _)| *reason == "PleachForecast");
            told = all.map(|(_, message)| (*message).to_owned()).collect();
            if told.len() >= num && round == 1 {
                break;
            }
        }
    }
    told
}

#[tokio::test]
async fn users_see_another_bucket_of_their_start_and_nothing_of_old_forecasts() {
    let mut driven = open(2).await;
    for after_s in [0, 2] {
        driven.controller.round(NOW_S + after_s).await;
        events(&driven.fake, 4 + after_s as usize).await;
    }
    // The first has started; of the second nothing was said of when it would.
    let mut num = 0;
    for (after_s, median_s, is_news) in [
        (4, 9000.0, true),
        (6, 9001.0, false),
        (300, 60_000.0, false),
        (620, 60_000.0, true),
        (1300, 60_001.0, false),
    ] {
        foretell(&driven, NOW_S + after_s, median_s);
        num += usize::from(is_news);
        let told = told(&mut driven, NOW_S + after_s, num).await;
        assert_eq!(told.len(), num, "after {after_s} s: {told:?}");
        assert!(
            told.iter().all(|message| message.starts_with("Median wait ")),
            "{told:?}"
        );
    }
    foretell(&driven, NOW_S + 1300, 100.0);
    let told = told(&mut driven, NOW_S + 1950, num).await;
    assert_eq!(told.len(), num, "it is too old: {told:?}");
    let seen = events(&driven.fake, 0).await;
    let of_first = of(&seen, "Pod", "w-0");
    assert!(
        of_first.iter().all(|(reason, _)| *reason != "PleachForecast"),
        "{of_first:?}"
    );
}
