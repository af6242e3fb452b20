//! Forecasts where the site hides a priority: what is not known costs width, not honesty.

use pleach_env::workload::Workload;
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::{GeneratorConfig, Seed, SimConfig, generate};
use pleach_experiments::door::DOOR;
use pleach_experiments::evaluate::workload_source::WorkloadSource;
use pleach_experiments::progress::Watcher;
use pleach_experiments::when::{asked, hindcast};
use pleach_forecast::hindcast::Asked;
use pleach_forecast::record::played;
use pleach_scheduler::ClusterSpec;
use pleach_scheduler::cluster_spec::TenantSpec;

/// How often 80 % intervals of jobs that had to wait hold, and their median width, h.
type Kept = [f64; 2];

/// What a site made of a list, forecast by its own rule and by the same without its priority. A tenth of the users (of a
/// trace: of the jobs) goes first: as a tenant with nearly all of the quota under `fair-share`, which is `fifo-skip` without it.
fn forecast(name: &str, is_by_user: bool, mut workload: Workload) -> [Kept; 2] {
    let num_gpus = workload.cluster.num_gpus() as u32;
    let tenant = |name: &str, quota_gpus| TenantSpec {
        name: name.into(),
        quota_gpus,
    };
    workload.cluster.tenants = vec![tenant("first", num_gpus - 1), tenant("others", 1)];
    let digest = |text: &str| {
        text.bytes()
            .fold(0, |sum, byte| (31 * sum + u32::from(byte)) % 1009)
    };
    for job in &mut workload.jobs {
        job.tenant =
            u16::from(digest(job.user.as_deref().filter(|_| is_by_user).unwrap_or(&job.id)) % 10 > 0);
    }
    let sim = SimConfig {
        estimates: EstimateModel::UserLimit { default_s: 86_400.0 },
        ..SimConfig::default()
    };
    let policies = ["fair-share", "fifo-skip"].map(|name| DOOR.open_one(name).unwrap());
    let list = played(workload, &sim, &policies[0]).unwrap();
    policies.map(|policy| {
        let asked = Asked {
            num_replays: 10,
            ..asked(&list, (&sim, &policy), 1, "auto")
        };
        let found = hindcast(&asked, None, false, &Watcher::silent()).unwrap();
        let answer = found.rows.last().unwrap();
        let width_h = answer.width_s / 3600.0;
        println!(
            "{name} by {}: of {} jobs that had to wait {:.0} % held, {width_h:.1} h wide; log loss {:.3}",
            policy.name(),
            found.num_must_wait,
            100.0 * answer.held,
            answer.loss_log
        );
        [answer.held, width_h]
    })
}

/// A synthetic site of 64 GPUs with 30 users and limits of one to five times the run time.
fn synthetic(load: f64, seed: u64) -> [Kept; 2] {
    let generated = generate(&GeneratorConfig::default().with(1600, load), Seed(seed)).unwrap();
    let mut workload = generated.on_cluster(ClusterSpec::uniform(8, 8, 4)).unwrap();
    for (number, job) in workload.jobs.iter_mut().enumerate() {
        job.user = Some(format!("user{}", number % 30));
        job.estimate_s = Some(job.run_time_s * (1 + number * 7 % 5) as f64);
    }
    forecast(&format!("load {load}, seed {seed}"), true, workload)
}

#[test]
fn intervals_of_a_site_that_hides_a_priority_are_wider() {
    let [[known, narrow_h], [hidden, wide_h]] = synthetic(0.9, 2);
    assert!(known > 0.75 && hidden > known - 0.15, "{known} {hidden}");
    assert!(wide_h > 2.0 * narrow_h, "{narrow_h} {wide_h}");
}

#[test]
#[ignore = "minutes: the figures of docs/when.md"]
fn intervals_of_five_sites_that_hide_a_priority_and_of_traces() {
    let lists = [(0.9, 1), (0.9, 2), (0.9, 3), (1.0, 1), (1.0, 2)];
    let found = lists.map(|(load, seed)| synthetic(load, seed));
    let mean = |of: usize| found.iter().map(|kept| kept[of][0]).sum::<f64>() / 5.0;
    assert!(mean(1) > mean(0) - 0.05, "{} {}", mean(0), mean(1));
    for name in ["HPC2N-excerpt-alea", "SDSC-SP2-filtered"] {
        let Some(path) = pleach_tests::data(&format!("traces/swf/{name}.swf.gz")) else {
            return;
        };
        let source = WorkloadSource::of(&path.display().to_string());
        let workload = source.workload(source.only("forecast").unwrap(), Seed(0));
        forecast(name, false, workload.unwrap().0);
    }
}
