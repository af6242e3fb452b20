use std::sync::Arc;

use pleach_env::schedule::Segment;
use pleach_env::workload::{GeneratorConfig, generate};
use pleach_env::{Seed, SimConfig, simulate};
use pleach_tests::{assert_well_formed, browser_dom};

use super::*;
use crate::schedule::run_of;

fn recorded(policies: &[&str], num_jobs: usize) -> (Record, Vec<Instance>) {
    let workload = generate(&GeneratorConfig::default().with(num_jobs, 9.0), Seed(1)).unwrap();
    let sim = SimConfig {
        record_segments: true,
        ..SimConfig::default()
    };
    let runs = policies.iter().map(|name| {
        let mut policy = pleach_scheduler::heuristics::by_name(name).unwrap();
        let segments = simulate(&workload, &sim, &mut policy).unwrap().segments;
        run_of(&format!("{name}</script><b>"), &workload, 1, segments)
    });
    let record = Record {
        settings: String::new(),
        runs: runs.collect(),
    };
    (
        record,
        vec![Instance {
            workload: Arc::new(workload),
            seed: 1,
        }],
    )
}

fn page(record: &Record, instances: &[Instance], command_line: &str) -> String {
    report(record, instances, command_line).unwrap().html()
}

/// The text of an element of a class or an id.
fn text_of(dom: &str, mark: &str) -> Vec<String> {
    let parts = dom.split(mark).skip(1);
    let inner = |part: &str| {
        let text = &part[part.find('>').unwrap() + 1..];
        let text: String = text.chars().take(2000).collect();
        text
    };
    parts.map(inner).collect()
}

#[test]
fn the_page_is_well_formed_escapes_names_and_refers_to_nothing_outside() {
    let (record, instances) = recorded(&["fifo", "sjf", "srtf"], 60);
    let html = page(&record, &instances, "pleach watch a.csv");
    assert_well_formed(&html);
    assert_eq!(html.matches("<script").count(), 2, "its data and its own");
    assert!(!html.contains("<b>"), "names stay words");
    for outside in [
        "http:", "https:", "src=", "href=", "url(", "@import", "<link", "<iframe", "<img", "import(",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("default-src 'none'") && html.contains("3 of the 3 schedules"));
    assert_eq!(html.matches("class=\"side\"").count(), 2);
    assert_eq!(html, page(&record, &instances, "pleach watch a.csv"));
}

#[test]
fn what_is_no_record_of_this_list_is_refused_with_the_reason() {
    let said = report(&Record::default(), &[], "").unwrap_err().to_string();
    assert!(said.contains("jobs ran"), "{said}");
    let (mut record, instances) = recorded(&["fifo"], 20);
    record.runs[0].jobs[3] = "nobody".into();
    let said = report(&record, &instances, "").unwrap_err().to_string();
    assert!(said.contains("job nobody"), "{said}");
    let (mut record, instances) = recorded(&["fifo"], 20);
    record.runs[0].nodes[0] = "9999".into();
    let said = report(&record, &instances, "").unwrap_err().to_string();
    assert!(said.contains("node 9999"), "{said}");
}

/// The figures that the page shows are those of the record, counted here in another way.
#[test]
fn in_a_browser_the_moment_and_the_job_are_those_of_the_record() {
    let (mut record, instances) = recorded(&["fifo", "sjf"], 400);
    for (run, name) in record.runs.iter_mut().zip(["fifo", "sjf"]) {
        run.policy = name.into();
    }
    let workload = &instances[0].workload;
    // A moment at which a job waits under the first policy.
    let run = &record.runs[0];
    let first_start = |job: usize| {
        let of = run.segments.iter().filter(|segment| segment.job as usize == job);
        of.map(|segment| segment.from_s).fold(f64::INFINITY, f64::min)
    };
    let (job, start_s) = (0..workload.jobs.len())
        .map(|job| (job, first_start(job)))
        .max_by(|a, b| {
            let wait = |(job, start_s): &(usize, f64)| start_s - workload.jobs[*job].submit.as_secs_f64();
            wait(a).total_cmp(&wait(b))
        })
        .unwrap();
    let t = (workload.jobs[job].submit.as_secs_f64() + start_s) / 2.0;
    let html = page(&record, &instances, "");
    let folder = tempfile::tempdir().unwrap();
    let address = format!("t={t}&job={}", workload.jobs[job].id);
    let Some(dom) = browser_dom(folder.path(), &html, &address) else {
        return;
    };
    let now = text_of(&dom, "class=\"now\"");
    for (side, run) in record.runs.iter().enumerate() {
        let runs_now: Vec<&Segment> = run
            .segments
            .iter()
            .filter(|segment| segment.from_s <= t && t < segment.to_s)
            .collect();
        let busy: u64 = runs_now.iter().map(|segment| segment.num_gpus()).sum();
        let has_left = |job: usize| {
            let of = run
                .segments
                .iter()
                .filter(|segment| segment.job as usize == job && segment.to_s <= t);
            of.into_iter().any(|segment| segment.ended.is_final())
        };
        let num_left = (0..workload.jobs.len()).filter(|job| has_left(*job)).count();
        let waits = |job: &usize| {
            workload.jobs[*job].submit.as_secs_f64() <= t
                && !has_left(*job)
                && runs_now.iter().all(|segment| segment.job as usize != *job)
        };
        let num_waiting = (0..workload.jobs.len()).filter(waits).count();
        let words = format!(
            "{busy} of {} GPUs busy, {num_waiting} jobs wait, {num_left} have left",
            gpus_of(workload)
        );
        assert!(now[side].starts_with(&words), "{words}: {}", &now[side][..120]);
    }
    let words = &text_of(&dom, "id=\"words\"")[0];
    assert!(
        words.contains(&format!("Job {}:", workload.jobs[job].id)),
        "{words}"
    );
    assert!(
        words.contains("It waits since") && words.contains("<strong>sjf: </strong>"),
        "{words}"
    );
}

fn gpus_of(workload: &Workload) -> u32 {
    let groups = workload.cluster.node_groups.iter();
    groups.map(|group| group.count * group.gpus_per_node).sum()
}

/// A thousand jobs on 512 GPUs: a picture takes a part of the 16 ms that a screen has for one.
#[test]
fn in_a_browser_a_thousand_jobs_on_512_gpus_are_drawn_within_a_frame() {
    let mut workload = generate(&GeneratorConfig::default().with(1000, 0.9), Seed(2)).unwrap();
    let cluster = &mut workload.cluster;
    cluster.node_groups.truncate(1);
    (cluster.node_groups[0].count, cluster.node_groups[0].gpus_per_node) = (64, 8);
    let num_tenants = cluster.tenants.len() as u32;
    cluster
        .tenants
        .iter_mut()
        .for_each(|tenant| tenant.quota_gpus = 512 / num_tenants);
    for job in &mut workload.jobs {
        job.num_gpus = job.num_gpus.min(512);
    }
    assert_eq!(gpus_of(&workload), 512);
    let sim = SimConfig {
        record_segments: true,
        ..SimConfig::default()
    };
    let runs = ["fifo", "sjf"].map(|name| {
        let mut policy = pleach_scheduler::heuristics::by_name(name).unwrap();
        run_of(
            name,
            &workload,
            2,
            simulate(&workload, &sim, &mut policy).unwrap().segments,
        )
    });
    let record = Record {
        settings: String::new(),
        runs: runs.to_vec(),
    };
    let html = page(
        &record,
        &[Instance {
            workload: Arc::new(workload),
            seed: 2,
        }],
        "",
    );
    assert!(html.len() < 4 << 20, "{}", html.len());
    let folder = tempfile::tempdir().unwrap();
    let Some(dom) = browser_dom(folder.path(), &html, "t=100000") else {
        return;
    };
    let frame_ms = dom
        .split("data-frame-ms=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap();
    println!("a picture takes {frame_ms} ms");
    assert!(frame_ms.parse::<f64>().unwrap() < 16.0, "{frame_ms}");
}

/// A daemon's log does not tell which GPUs of a node a job has: jobs side by side are drawn side by side.
#[test]
fn jobs_whose_gpus_nobody_knows_do_not_cover_each_other() {
    let (mut record, _) = recorded(&["fifo"], 60);
    let run = &mut record.runs[0];
    let mut num = 0;
    for slice in run.segments.iter_mut().flat_map(|segment| &mut segment.slices) {
        if let Gpus::Which(mask) = slice.gpus {
            slice.gpus = Gpus::Num(mask.count_ones());
            num += 1;
        }
    }
    assert!(num >= 60, "{num}");
    let lanes = lanes(run);
    for (a, one) in run.segments.iter().enumerate() {
        for (b, other) in run.segments.iter().enumerate().skip(a + 1) {
            let meet = one.from_s < other.to_s && other.from_s < one.to_s;
            for (node, mask) in lanes[a].iter().filter(|_| meet) {
                let others = lanes[b].iter().filter(|(place, _)| place == node);
                assert!(
                    others.fold(0, |all, (_, mask)| all | mask) & mask == 0,
                    "{one:?} {other:?}"
                );
            }
        }
        let wanted = one.num_gpus();
        assert_eq!(
            lanes[a]
                .iter()
                .map(|(_, mask)| u64::from(mask.count_ones()))
                .sum::<u64>(),
            wanted
        );
    }
}
