//! What `pleach run` says of sites whose lists a batch system apart from the simulator has driven.

use std::path::Path;

use pleach_env::Seed;
use pleach_env::workload::{JobSpec, Observed, Workload};
use pleach_experiments::SchedulingConfig;
use pleach_experiments::decide::{Decided, Decision, SearchPart, Site, SiteConfig, decide};
use pleach_experiments::progress::Watcher;
use pleach_scheduler::cluster_spec::{ClusterSpec, TenantSpec};
use pleach_scheduler::portable_math::{exp, ln};
use pleach_scheduler::{ModelClass, Time};
use rand::{Rng, RngExt as _};

#[path = "../../env/examples/synthetic_site/easy.rs"]
mod easy;

use easy::Asked;

const NODES: usize = 8;
const GPUS: u32 = 8;
const HOUR_S: f64 = 3600.0;

fn unit(rng: &mut impl Rng) -> f64 {
    rng.random_range(0.0..1.0)
}

/// GPUs of a job, one in ten each: mostly of a node, and mostly of several.
const NARROW: [u32; 10] = [1, 1, 1, 1, 2, 2, 4, 4, 8, 16];
const WIDE: [u32; 10] = [1, 1, 2, 4, 8, 16, 16, 32, 32, 64];

/// Jobs of three accounts, whose usual run times are of 20 min, 1 h and 4 h; Poisson arrivals that make the offered load.
fn drawn(num_jobs: usize, load: f64, sizes: [u32; 10]) -> Vec<(Asked, u16)> {
    let mut rng = Seed(14).stream("synthetic site of a test", 0);
    let limits_s = [0.5, 1.0, 2.0, 4.0, 8.0, 24.0, 72.0, 288.0].map(|hours| hours * HOUR_S);
    let mut jobs: Vec<(Asked, u16)> = (0..num_jobs)
        .map(|_| {
            let account = rng.random_range(0..3_u16);
            let usual_s = [1200.0, HOUR_S, 4.0 * HOUR_S][usize::from(account)];
            // Four draws of a flat distribution: near enough to a normal one, with a deviation of 2.3 in the logarithm.
            let spread: f64 = (0..4).map(|_| unit(&mut rng) - 0.5).sum::<f64>() * 4.0;
            let run_s = (usual_s * exp(spread)).clamp(60.0, 72.0 * HOUR_S).round();
            let num_gpus = sizes[rng.random_range(0..sizes.len())];
            let asked_s = run_s * (1.1 + 2.9 * unit(&mut rng));
            let limit_s = limits_s.into_iter().find(|limit| *limit >= asked_s);
            let asked = Asked {
                submit_s: -ln(1.0 - unit(&mut rng)),
                num_gpus,
                run_s,
                limit_s: limit_s.unwrap_or(limits_s[7]),
                pools: std::iter::once(0..NODES).collect(),
            };
            (asked, account)
        })
        .collect();
    let work: f64 = jobs
        .iter()
        .map(|(job, _)| f64::from(job.num_gpus) * job.run_s)
        .sum();
    let span_s = work / (load * NODES as f64 * f64::from(GPUS));
    let gaps: f64 = jobs.iter().map(|(job, _)| job.submit_s).sum();
    let mut at_s = 0.0;
    for (job, _) in &mut jobs {
        at_s += job.submit_s * span_s / gaps;
        job.submit_s = at_s.floor();
    }
    jobs
}

/// The list of such a site as it went.
fn list(num_jobs: usize, load: f64, sizes: [u32; 10]) -> Workload {
    let drawn = drawn(num_jobs, load, sizes);
    let asked: Vec<Asked> = drawn.iter().map(|(job, _)| job.clone()).collect();
    let ran = easy::play(&asked, NODES, GPUS, 30.0);
    let at = Time::from_secs_f64;
    let jobs = drawn
        .iter()
        .zip(ran)
        .enumerate()
        .map(|(number, ((job, account), ran))| {
            let mut spec = JobSpec::new(format!("{number}"), at(job.submit_s), job.num_gpus, job.run_s);
            spec.estimate_s = Some(job.limit_s);
            spec.tenant = *account;
            spec.observed = Some(Box::new(Observed {
                start: at(ran.start_s),
                end: Some(at(ran.start_s + job.run_s)),
                ..Observed::default()
            }));
            spec
        });
    let tenant = |name: &str, quota_gpus| TenantSpec {
        name: name.into(),
        quota_gpus,
    };
    Workload {
        name: "site".into(),
        cluster: ClusterSpec {
            tenants: vec![tenant("short", 22), tenant("usual", 21), tenant("long", 21)],
            ..ClusterSpec::uniform(NODES as u32, GPUS, NODES as u32)
        },
        classes: vec![ModelClass::default()],
        jobs: jobs.collect(),
    }
}

fn decided(folder: &Path, list: &Workload, simulations: u64, preemption: bool) -> (Decided, String) {
    let path = folder.join("jobs.csv");
    list.write(&path).unwrap();
    let config = SiteConfig {
        jobs: path,
        search: SearchPart {
            simulations,
            accept_lists: 2,
            ..SearchPart::default()
        },
        scheduling: SchedulingConfig {
            preemption,
            ..SchedulingConfig::default()
        },
        ..SiteConfig::default()
    };
    let (folder, watcher) = (folder.join("run"), Watcher::silent());
    let site = Site::new(&config, &folder, &watcher);
    let mut said = String::new();
    let found = decide(&site, &mut |line| {
        said += line;
        said.push('\n');
        Ok(())
    });
    (found.unwrap(), said)
}

#[test]
fn a_full_site_gets_a_policy_that_passes_the_tests_of_the_verdict_and_an_idle_one_has_nothing_to_win() {
    let folder = tempfile::tempdir().unwrap();
    let (found, said) = decided(folder.path(), &list(2400, 1.0, NARROW), 0, false);
    println!("{said}\n{}", found.verdict.line());
    // What goes on passes on the second part and has the least mean completion time of those that do, `gpu-time-reserve` among
    // them.
    let policy = found.judged.rows[1].policy.as_str();
    let (own, reserve, site) = (
        found.compared.row(policy).unwrap(),
        found.compared.row("gpu-time-reserve").unwrap(),
        found.compared.row("easy").unwrap(),
    );
    assert!(own.avg_jct_s <= reserve.avg_jct_s, "{said}");
    for row in [own, reserve] {
        assert!(
            row.avg_jct_s < 0.7 * site.avg_jct_s && row.p99_jct_s <= site.p99_jct_s,
            "{said}"
        );
    }
    // On the judged part its gain holds; whether it is deployed is for its tail there to say, and the verdict says which it was.
    let judged = found.judged.row(policy).unwrap();
    let before = found.judged.row("easy").unwrap();
    assert!(judged.avg_jct_s < 0.7 * before.avg_jct_s, "{said}");
    let is_tail_longer = judged.p99_jct_s > before.p99_jct_s * 1.02;
    let expected = if is_tail_longer {
        Decision::DoNotDeploy
    } else {
        Decision::Deploy
    };
    assert_eq!(found.verdict.decision, expected, "{said}");
    // The one with the least mean completion time of all was not fair, or has a longer tail.
    for name in ["GavelMultiRealistic-v0", "las-deal", "index"] {
        assert!(found.compared.row(name).is_some(), "{name}: {said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (found, said) = decided(folder.path(), &list(800, 0.3, NARROW), 0, false);
    assert_eq!(found.verdict.decision, Decision::NothingToWin, "{said}");
}

#[test]
fn where_gangs_are_wide_and_jobs_may_be_stopped_a_formula_of_the_sites_own_is_ahead_of_all_candidates() {
    let folder = tempfile::tempdir().unwrap();
    let (found, said) = decided(folder.path(), &list(2400, 1.0, WIDE), 960, true);
    println!("{said}\n{}", found.verdict.line());
    assert!(
        said.contains("5  and for a formula\n   pleach index --from "),
        "{said}"
    );
    assert!(said.contains("where is chosen and may go on"), "{said}");
    // The days that judge are none of those on which it was searched and chosen. Its rival is the strongest of 25 candidates.
    let rows = &found.judged.rows;
    let names: Vec<&str> = rows.iter().map(|row| row.policy.as_str()).collect();
    assert_eq!(names, ["easy", "formula", "srtf"], "{said}");
    assert!(
        rows[1].avg_jct_s < rows[2].avg_jct_s && rows[1].p99_jct_s < rows[2].p99_jct_s,
        "{said}"
    );
    let own = std::fs::read_to_string(folder.path().join("run/formula.json")).unwrap();
    assert!(own.contains("10 generations of 12"), "{own}");
    std::fs::create_dir(folder.path().join("narrow")).unwrap();
    let (_, narrow) = decided(&folder.path().join("narrow"), &list(300, 0.05, NARROW), 1, false);
    let expression = "5  and for a formula\n   pleach distill --search --form formula --workload ";
    assert!(narrow.contains(expression), "{narrow}");
}

#[test]
fn where_nothing_goes_on_no_command_names_nothing_to_play() {
    let folder = tempfile::tempdir().unwrap();
    let mut list = list(300, 0.05, NARROW);
    for job in &mut list.jobs {
        job.num_gpus = 1;
        job.observed.as_mut().unwrap().start = job.submit;
    }
    let (found, said) = decided(folder.path(), &list, 0, false);
    assert_eq!(found.judged.rows.len(), 1, "{said}");
    let page = std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    for text in [&said, &page] {
        assert!(
            !text.contains("--under --") && !text.contains("--under  "),
            "{text}"
        );
    }
    assert!(said.contains("nothing goes on beside easy"), "{said}");
}
