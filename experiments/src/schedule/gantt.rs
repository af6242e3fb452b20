//! A record drawn: a row for each node, a lane for each of its GPUs, a bar for each segment, two policies side by side on one clock.
//!
//! Drawn are the first workload and seed of the record and its first two policies there, as far as [`LANES_MAX`] and [`BARS_MAX`]
//! reach; the page says what it leaves out. Hovering over a bar tells of its job.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pleach_env::schedule::{Gpus, Record, Run, Segment};
use pleach_env::workload::{JobSpec, Workload};

use super::instance_of;
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::metric::show_seconds;
use crate::plot::axis::Axis;
use crate::plot::frame::{Frame, colour};
use crate::plot::text::escape;
use crate::report::page::{page as whole_page, preformatted, section};

/// Most GPUs that are drawn of a schedule. *Ours*: a screen has no more lines.
pub const LANES_MAX: usize = 256;
/// Most bars that are drawn of a schedule. *Ours*: a page of some megabytes.
pub const BARS_MAX: usize = 8_000;
/// Most policies beside each other.
const RUNS_MAX: usize = 2;
/// Colours of jobs.
const NUM_COLOURS: usize = 6;
/// Height of a lane, pixels.
const LANE: f64 = 7.0;

/// The page of a record.
///
/// # Errors
/// A run of a workload or seed that is not there.
pub fn page(record: &Record, instances: &[Instance], command_line: &str) -> Result<String, Error> {
    let title = "Schedules";
    let mut body = format!("<h1>{title}</h1>\n");
    let Some(first) = record.runs.first() else {
        body.push_str("<p>The record has no segments.</p>\n");
        return Ok(whole_page(title, &body));
    };
    let runs = side_by_side(record, first);
    let workload = &instances[instance_of(first, instances)?].workload;
    let _ = writeln!(
        body,
        "<p class=\"note\">Pleach {} · {} · seed {} · {} of the {} schedules of the record. A row is a node, a lane a GPU, a \
         bar a time in which a job held it at one rate, pale where it made no progress (starts, restarts). The mark at the left \
         of a row has the colour of its GPU type; colours of bars tell neighbouring jobs apart. Hover for the job.</p>",
        env!("CARGO_PKG_VERSION"),
        escape(&workload.name),
        first.seed,
        runs.len(),
        record.runs.len(),
    );
    let charts = charts(&runs, workload);
    section(
        &mut body,
        "Who ran where and when",
        Some(format!("<div class=\"pair\">\n{charts}</div>\n")),
    );
    section(&mut body, "GPU types", Some(types(workload)));
    section(&mut body, "How this was made", Some(preformatted(command_line)));
    Ok(whole_page(title, &body))
}

/// The first two policies of a record on its first workload and seed, for a page with other things; none of an empty record.
///
/// # Errors
/// A run of a workload or seed that is not there.
pub fn strips(record: &Record, instances: &[Instance]) -> Result<Option<String>, Error> {
    let Some(first) = record.runs.first() else {
        return Ok(None);
    };
    let workload = &instances[instance_of(first, instances)?].workload;
    let charts = charts(&side_by_side(record, first), workload);
    let note = format!(
        "<p class=\"note\">{}, seed {}. A row is a node, a lane a GPU, a bar a time in which a job held it, pale where it made no \
         progress. Hover for the job.</p>\n",
        escape(&workload.name),
        first.seed
    );
    Ok(Some(charts + &note))
}

fn side_by_side<'a>(record: &'a Record, first: &Run) -> Vec<&'a Run> {
    let alike = |run: &&Run| run.workload == first.workload && run.seed == first.seed;
    record.runs.iter().filter(alike).take(RUNS_MAX).collect()
}

/// Each run under its name, all on one clock.
fn charts(runs: &[&Run], workload: &Workload) -> String {
    let segments = runs.iter().flat_map(|run| &run.segments);
    let until_s = segments.fold(0.0, |most: f64, segment| most.max(segment.to_s));
    let mut charts = String::new();
    for run in runs {
        let (svg, left_out) = chart(run, workload, until_s);
        let _ = writeln!(
            charts,
            "<div><h3>{}</h3>\n<div class=\"wide least\">{svg}</div><p class=\"note\">{left_out}</p></div>",
            escape(&run.policy)
        );
    }
    charts
}

/// Nodes with the number of the first lane of each and their GPU type, as far as they are drawn.
fn rows(workload: &Workload) -> (Vec<(usize, u32, usize)>, usize) {
    let (mut rows, mut num_lanes) = (Vec::new(), 0);
    let mut num_nodes = 0;
    for group in &workload.cluster.node_groups {
        let kinds = &workload.cluster.gpu_types;
        let kind = kinds.iter().position(|kind| kind.name == group.gpu_type);
        num_nodes += group.count as usize;
        for _ in 0..group.count {
            if num_lanes + group.gpus_per_node as usize > LANES_MAX {
                break;
            }
            rows.push((num_lanes, group.gpus_per_node, kind.unwrap_or(0)));
            num_lanes += group.gpus_per_node as usize;
        }
        if rows.len() < num_nodes {
            break;
        }
    }
    (rows, num_lanes)
}

/// A schedule as SVG, and what of it is not drawn.
fn chart(run: &Run, workload: &Workload, until_s: f64) -> (String, String) {
    let (rows, num_lanes) = rows(workload);
    let every = rows.len().div_ceil(32).max(1);
    let middle =
        |(first, num, _): &(usize, u32, usize)| num_lanes as f64 - *first as f64 - f64::from(*num) / 2.0;
    let ticks = rows.iter().enumerate().step_by(every);
    let ticks = ticks.map(|(node, row)| (middle(row), node.to_string())).collect();
    let y = Axis::fixed("node", 0.0, num_lanes as f64, ticks);
    let mut frame = Frame::new(
        Axis::time("time", until_s),
        y,
        (num_lanes as f64 * LANE).clamp(60.0, 1600.0) + 56.0,
    );
    for (first, num, kind) in &rows {
        let (top, height) = band(&frame, num_lanes, *first, *num);
        let mark = format!(
            "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"4\" height=\"{height:.1}\" fill=\"{}\"/>\n",
            frame.left - 6.0,
            colour(*kind)
        );
        frame.add(&mark);
    }
    let specs: BTreeMap<&str, &JobSpec> = workload.jobs.iter().map(|job| (job.id.as_str(), job)).collect();
    let numbers: Vec<Option<usize>> = run.nodes.iter().map(|name| name.parse().ok()).collect();
    let (mut num_bars, mut num_left_out) = (0, 0_usize);
    for segment in &run.segments {
        let bands = bands(segment, &numbers, &rows);
        if bands.is_empty() || num_bars + bands.len() > BARS_MAX {
            num_left_out += 1;
            continue;
        }
        num_bars += bands.len();
        let words = told(
            run,
            segment,
            specs.get(run.jobs[segment.job as usize].as_str()).copied(),
            workload,
        );
        draw(&mut frame, segment, &bands, num_lanes, &words);
    }
    let (total, num_nodes) = (run.segments.len(), run.nodes.len());
    let left_out = match num_left_out {
        0 if rows.len() >= num_nodes => format!("All {total} segments."),
        _ => format!(
            "{num_left_out} of {total} segments are not drawn: the page has the first {} of {num_nodes} nodes and at most \
             {BARS_MAX} bars.",
            rows.len()
        ),
    };
    let description = format!(
        "Gantt chart of {}: {} nodes over {}",
        run.policy,
        rows.len(),
        show_seconds(until_s)
    );
    (frame.render(&description), left_out)
}

/// Lanes in a row that a segment holds: (first, number).
fn bands(segment: &Segment, numbers: &[Option<usize>], rows: &[(usize, u32, usize)]) -> Vec<(usize, u32)> {
    let mut bands = Vec::new();
    for slice in &segment.slices {
        for node in slice.node..slice.node + slice.num_nodes {
            let row = numbers[node as usize].and_then(|number| rows.get(number));
            let Some((first, num, _)) = row else { continue };
            let mut mask = match slice.gpus {
                Gpus::Which(mask) => mask,
                Gpus::Num(num) => u64::MAX >> (64 - num.clamp(1, 64)),
            };
            while mask != 0 {
                let start = mask.trailing_zeros();
                let len = (!(mask >> start)).trailing_zeros().min(64 - start);
                if start + len <= *num {
                    bands.push((first + start as usize, len));
                }
                mask = if start + len >= 64 {
                    0
                } else {
                    mask >> (start + len) << (start + len)
                };
            }
        }
    }
    bands
}

/// Top and height of lanes, pixels.
fn band(frame: &Frame, num_lanes: usize, first: usize, num: u32) -> (f64, f64) {
    let top = frame.py((num_lanes - first) as f64);
    let bottom = frame.py(num_lanes as f64 - first as f64 - f64::from(num));
    (top, bottom - top)
}

fn draw(frame: &mut Frame, segment: &Segment, bands: &[(usize, u32)], num_lanes: usize, words: &str) {
    let (left, right) = (frame.px(segment.from_s), frame.px(segment.to_s));
    let opacity = if segment.rate == 0.0 { 0.3 } else { 0.9 };
    // Shares lie beside each other in the lane as far as that tells them apart: a share is as high as its part.
    let part = f64::from(segment.gpu_milli) / 1000.0;
    let mut bars = format!(
        "<g fill=\"{}\" fill-opacity=\"{opacity}\"><title>{words}</title>",
        colour(segment.job as usize % NUM_COLOURS)
    );
    for (first, num) in bands {
        let (top, height) = band(frame, num_lanes, *first, *num);
        let _ = write!(
            bars,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\"/>",
            top + 0.4,
            (right - left).max(0.2),
            ((height - 0.8) * part).max(0.4)
        );
    }
    bars.push_str("</g>\n");
    frame.add(&bars);
}

/// What hovering tells.
fn told(run: &Run, segment: &Segment, job: Option<&JobSpec>, workload: &Workload) -> String {
    let mut words = format!(
        "job {}, attempt {}\n{} GPUs{} on {}\n{} to {} s, rate {}, {}",
        run.jobs[segment.job as usize],
        segment.attempt,
        segment.num_gpus(),
        match segment.gpu_milli {
            1000 => String::new(),
            milli => format!(" ({milli} thousandths each)"),
        },
        run.nodes_text(segment),
        segment.from_s,
        segment.to_s,
        segment.rate,
        segment.ended.word(),
    );
    if let Some(job) = job {
        let _ = write!(
            words,
            "\nasked for {} GPUs at {} s, work {} s\ntenant {}, class {}",
            job.num_gpus,
            job.submit.as_secs_f64(),
            job.run_time_s,
            workload.cluster.tenants[usize::from(job.tenant)].name,
            workload.classes[usize::from(job.class)].name,
        );
    }
    let cut: String = words.chars().take(600).collect();
    escape(&cut)
}

fn types(workload: &Workload) -> String {
    let mut list = String::from("<ul class=\"legend\">\n");
    for (kind, of) in workload.cluster.gpu_types.iter().enumerate() {
        let _ = writeln!(
            list,
            "<li><svg class=\"box\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect width=\"12\" height=\"12\" fill=\"{}\"/></svg>{}</li>",
            colour(kind),
            escape(&of.name)
        );
    }
    list + "</ul>\n"
}

#[cfg(test)]
mod tests {
    use pleach_env::workload::{GeneratorConfig, generate};
    use pleach_env::{Seed, SimConfig, simulate};
    use pleach_tests::assert_well_formed;

    use super::*;
    use crate::schedule::run_of;

    fn drawn(policies: &[&str], num_jobs: usize) -> (Record, Vec<Instance>) {
        let workload = generate(&GeneratorConfig::default().with(num_jobs, 0.9), Seed(1)).unwrap();
        let sim = SimConfig {
            record_segments: true,
            ..SimConfig::default()
        };
        let runs = policies.iter().map(|name| {
            let mut policy = pleach_scheduler::heuristics::by_name(name).unwrap();
            let segments = simulate(&workload, &sim, &mut policy).unwrap().segments;
            run_of(&format!("{name}<&>"), &workload, 1, segments)
        });
        let record = Record {
            settings: String::new(),
            runs: runs.collect(),
        };
        (record, vec![Instance { workload, seed: 1 }])
    }

    #[test]
    fn a_page_draws_every_segment_of_two_policies_and_escapes_names() {
        let (record, instances) = drawn(&["fifo", "sjf", "srtf"], 60);
        let html = page(&record, &instances, "pleach verify a.csv").unwrap();
        assert_well_formed(&html);
        for outside in ["http:", "https:", "src=", "href=", "url(", "<script", "<img"] {
            assert!(!html.contains(outside), "{outside}");
        }
        let num_segments: usize = record.runs[..2].iter().map(|run| run.segments.len()).sum();
        assert_eq!(html.matches("<g fill=").count(), num_segments);
        assert!(html.contains("sjf&lt;&amp;&gt;") && !html.contains("srtf&lt;"));
        assert!(html.contains("2 of the 3 schedules") && html.contains("asked for"));
    }

    #[test]
    fn a_large_record_is_drawn_in_part_and_the_page_says_so() {
        let (record, instances) = drawn(&["fifo"], 6000);
        let html = page(&record, &instances, "").unwrap();
        assert!(html.matches("<rect").count() <= BARS_MAX + 2 * LANES_MAX);
        assert!(html.contains("segments are not drawn"), "{}", html.len());
    }

    #[test]
    fn a_record_of_nothing_is_a_page() {
        assert_well_formed(&page(&Record::default(), &[], "").unwrap());
    }
}
