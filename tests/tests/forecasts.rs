//! What `pleach when --answers` writes is what the daemons read: two programs with a file between them.

use pleach_daemon::forecasts;
use pleach_env::{GeneratorConfig, Seed, SimConfig, generate};
use pleach_experiments::door::DOOR;
use pleach_experiments::progress::Watcher;
use pleach_experiments::when::{Kept, asked, recorded, starts};
use pleach_scheduler::ClusterSpec;

#[test]
fn forecasts_are_read_as_they_are_written_and_all_that_wait_have_one() {
    let generated = generate(&GeneratorConfig::default().with(300, 1.5), Seed(4)).unwrap();
    let mut workload = generated.on_cluster(ClusterSpec::uniform(4, 8, 4)).unwrap();
    workload.cluster.seen.time_0_unix_s = Some(1_795_000_000.0);
    let (sim, policy) = (SimConfig::default(), DOOR.open_one("easy").unwrap());
    let (workload, _) = recorded(workload, &sim, &policy).unwrap();
    let asked = asked(&workload, (&sim, &policy), 5, "auto");
    let at = workload.jobs[250].submit;
    let mut kept = Kept::default();
    let at_s = Some(at.as_secs_f64());
    let first = starts(&asked, at_s, &mut kept, &Watcher::silent()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(forecasts::FILE);
    std::fs::write(&path, serde_json::to_vec(&first).unwrap()).unwrap();
    let read = forecasts::read(&path).unwrap();
    assert_eq!(read, first);
    assert_eq!(read.made_s, 1_795_000_000 + at.as_secs_f64() as i64);
    let waits = |job: &&pleach_env::workload::JobSpec| {
        let seen = job.observed.as_deref().unwrap();
        job.submit <= at && seen.start > at
    };
    let mut waiting: Vec<&String> = workload.jobs.iter().filter(waits).map(|job| &job.id).collect();
    waiting.sort();
    assert!(waiting.len() > 3, "{waiting:?}");
    assert_eq!(read.jobs.keys().collect::<Vec<_>>(), waiting);
    assert!(
        read.requests
            .iter()
            .any(|request| request.gpus == 1 && request.time_s.is_none())
    );
    // What was learned serves until an hour later, and the same instant is the same answer.
    assert_eq!(
        starts(&asked, at_s, &mut kept, &Watcher::silent()).unwrap(),
        first
    );
}
