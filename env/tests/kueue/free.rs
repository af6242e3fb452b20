//! The recorded lists played by the policy itself, beside the real repetition and beside `fifo` and `fifo-skip`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pleach_dealing::kubernetes::KubernetesConfig;
use pleach_dealing::kueue::{Kueue, KueueConfig};
use pleach_env::workload::{JobSpec, Workload};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::TenantSpec;

use super::{Case, cases};
use crate::kubernetes::free::{Near, Played, near, play, real, workload};

/// A recorded list as one of ours, with its namespaces, queues and priorities.
fn list(case: &Case) -> Workload {
    let mut list = workload(&case.pods);
    let mut names: Vec<&str> = case.jobs.iter().map(|job| job.namespace.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let tenant = |name: &&str| TenantSpec {
        name: (*name).to_owned(),
        quota_gpus: 0,
    };
    list.cluster.tenants = names.iter().map(tenant).collect();
    for (spec, job) in list.jobs.iter_mut().zip(&case.jobs) {
        assert_eq!(spec.id, job.name);
        spec.tenant = names.iter().position(|name| *name == job.namespace).unwrap() as u16;
        let observed = spec.observed.as_mut().unwrap();
        observed.partition = "q".into();
        observed.qos = job.priority.to_string();
    }
    list
}

/// In one recording something that is not in its list holds a GPU of its first queue's quota, until this time, s.
const HELD: (&str, f64) = ("kueue_cohort", 6.4);

/// Such a list with what holds that GPU before all others, as a job of the lowest priority: the log has its preemption.
fn with_held(name: &str, list: &Workload) -> Workload {
    let mut list = list.clone();
    if name == HELD.0 {
        let is_alike = |job: &&JobSpec| (job.num_gpus, job.tenant) == (1, 0);
        let mut held = list.jobs.iter().find(is_alike).unwrap().clone();
        held.id = "held".into();
        (held.submit, held.run_time_s) = (Time::ZERO, HELD.1);
        held.observed.as_mut().unwrap().qos = "0".into();
        list.jobs.insert(0, held);
    }
    list
}

/// The rank correlation of a schedule that has all real waits but those below `least_s`, which are alike: what the order of the short
/// waits is worth.
fn rank_without(case: &Case, least_s: f64) -> f64 {
    let real = real(&case.pods);
    let jobs = case.pods.jobs.iter().zip(&real);
    let alike = jobs.map(|(job, start)| {
        let start = (*start)?;
        Some(if start - job.submit_s < least_s {
            job.submit_s
        } else {
            start
        })
    });
    near(&case.pods.jobs, &real, &alike.collect::<Vec<_>>()).rank
}

/// Seeds that are played: UIDs and equal nodes are drawn.
const SEEDS: u64 = 40;

/// The policy played with several seeds: each held against the recording, and against the next one.
fn own(case: &Case, list: &Workload) -> [Near; 2] {
    let runs = (0..SEEDS).map(|seed| {
        let scheduler = KubernetesConfig {
            seed,
            ..KubernetesConfig::default()
        };
        let config = KueueConfig {
            scheduler,
            ..case.config.clone()
        };
        let starts = play(list, &mut Kueue::new(config).unwrap());
        starts[list.jobs.len() - case.jobs.len()..].to_vec()
    });
    let runs: Vec<Vec<Option<f64>>> = runs.collect();
    let real = real(&case.pods);
    let against_real = runs.iter().map(|run| near(&case.pods.jobs, &real, run));
    let against_own = runs
        .windows(2)
        .map(|pair| near(&case.pods.jobs, &pair[0], &pair[1]));
    [
        means(&against_real.collect::<Vec<_>>()),
        means(&against_own.collect::<Vec<_>>()),
    ]
}

fn means(runs: &[Near]) -> Near {
    let mut within: Vec<f64> = runs.iter().map(|run| run.within_5_s.round()).collect();
    within.sort_by(f64::total_cmp);
    let at = |part: f64| within[((within.len() - 1) as f64 * part) as usize];
    println!(
        "  starts within 5 s, %: {} to {}, middle half {} to {}",
        at(0.0),
        at(1.0),
        at(0.25),
        at(0.75)
    );
    let mean = |of: &dyn Fn(&Near) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    Near {
        within_5_s: mean(&|run| run.within_5_s),
        rank: mean(&|run| run.rank),
        wait_s: [mean(&|run| run.wait_s[0]), mean(&|run| run.wait_s[1])],
    }
}

/// All recorded runs, played.
pub(crate) fn all() -> &'static [Played] {
    static ALL: LazyLock<Vec<Played>> = LazyLock::new(|| {
        let all: BTreeMap<String, Case> = cases().into_iter().collect();
        let play = |(name, case): (&String, &Case)| {
            let (list, again) = (list(case), all.get(&format!("{name}_again")));
            let [found, itself] = own(case, &with_held(name, &list));
            println!("{name}: itself {itself:.3?}");
            println!(
                "  were waits below 2.5 s alike and all others right: rank {:.2}",
                rank_without(case, 2.5)
            );
            Played::of(name, &case.pods, again.map(|again| &again.pods), &list, found)
        };
        all.iter().map(play).collect()
    });
    &ALL
}

#[test]
fn played_freely_it_is_about_as_near_to_a_real_kueue_as_that_to_itself() {
    // Within 5 s (%) and rank of waits, each with two sides; mean waits are within 10 %. A second real run has 57 to 60 %, 66 %
    // (cohort, rank .78) and 90 % (fair, rank .82).
    let wanted = BTreeMap::from([
        ("kueue_best_effort", (62.0..66.0, 0.82..0.86)),
        ("kueue_best_effort_again", (61.5..65.5, 0.85..0.89)),
        ("kueue_strict", (57.0..61.0, 0.88..0.92)),
        ("kueue_strict_again", (56.0..60.0, 0.9..0.94)),
        ("kueue_cohort", (64.0..67.5, 0.75..0.785)),
        ("kueue_fair", (80.0..83.5, 0.7..0.74)),
    ]);
    let is_near = |played: &&Played| {
        let (found, (within, rank)) = (played.own, &wanted[played.name.as_str()]);
        within.contains(&found.within_5_s)
            && rank.contains(&found.rank)
            && (found.wait_s[1] / found.wait_s[0] - 1.0).abs() <= 0.1
    };
    let wrong: Vec<&str> = all()
        .iter()
        .filter(|played| !is_near(played))
        .map(|played| played.name.as_str())
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
