//! The tables of a simulated run: which jobs wait how long and why, how gangs spread, how the cluster fills.

use super::cells::{
    TENANTS_MAX, and_more, class_label, count, header, percent, quantile_cells, quantile_header, seconds,
};
use crate::evaluate::metric::{show_plain, show_seconds};
use crate::evaluate::table::Table;
use crate::workload_report::simulated::{Causes, Delay, Simulated};
use crate::workload_report::spread::share;

pub(super) fn waits(run: &Simulated) -> Table {
    let rows = run
        .delay_by_bucket
        .iter()
        .filter(|delay| delay.wait_s.count > 0)
        .map(|delay| {
            let mut row = vec![
                delay.name.clone(),
                count(delay.wait_s.count),
                percent(delay.waited),
            ];
            row.extend(quantile_cells(&delay.wait_s));
            row.extend([seconds(delay.wait_s.max), seconds(delay.wait_s.mean)]);
            row
        });
    let mut notes = vec![format!(
        "makespan {}, utilisation {} %, avg JCT {}, slowdown {}, {} preemptions",
        show_seconds(run.makespan_s),
        percent(Some(run.utilisation)),
        show_seconds(run.avg_jct_s),
        show_plain(run.avg_slowdown),
        run.preemptions
    )];
    if run.num_left_out > 0 {
        notes.push(format!(
            "simulated: the first {} jobs; {} were left out (--sim-jobs)",
            count(run.num_jobs),
            count(run.num_left_out)
        ));
    }
    Table {
        header: quantile_header("gang (GPUs)", &["jobs", "waited %"], &["max", "mean"]),
        rows: rows.collect(),
        notes,
    }
}

/// Parts of the waiting time by cause, as cells.
fn cause_cells(delay: &Delay) -> Vec<String> {
    let of = |part: fn(&Causes) -> f64| percent(delay.causes.as_ref().map(part));
    vec![
        of(|causes| causes.fair_share),
        of(|causes| causes.capacity),
        of(|causes| causes.fragmentation),
        of(|causes| causes.held_back),
    ]
}

pub(super) fn causes(run: &Simulated) -> Table {
    let rows = run
        .delay_by_bucket
        .iter()
        .filter(|delay| delay.wait_s.count > 0)
        .map(|delay| {
            let mut row = vec![delay.name.clone()];
            row.extend(cause_cells(delay));
            row.push(percent(delay.causes.map(|causes| causes.philly_fragmentation)));
            row.extend(delay.num_jobs_by_cause.map(count));
            row
        });
    let mut words = header(&[
        "gang (GPUs)",
        "fair sh. %",
        "capac. %",
        "fragm. %",
        "held %",
        "Philly's %",
    ]);
    words.extend(header(&["jobs: fair sh.", "capac.", "fragm.", "held"]));
    Table {
        header: words,
        rows: rows.collect(),
        notes: vec![
            "% of the waiting time while: tenant would exceed its quota; too few GPUs free; free but not tightly; free and kept by \
             the policy"
                .into(),
            "Philly's %: its fragmentation, all but fair share (ATC'19, table 2); jobs: by the cause that kept them longest".into(),
        ],
    }
}

pub(super) fn waiting_tenants(run: &Simulated) -> Table {
    let row = |delay: &Delay| {
        let mut row = vec![
            delay.name.clone(),
            count(delay.wait_s.count),
            percent(delay.waited),
            seconds(delay.wait_s.mean),
            seconds(delay.wait_s.at(50)),
            seconds(delay.wait_s.at(90)),
            seconds(delay.wait_s.at(99)),
        ];
        row.extend(cause_cells(delay));
        row
    };
    Table {
        header: header(&[
            "tenant",
            "jobs",
            "waited %",
            "mean",
            "p50",
            "p90",
            "p99",
            "fair share %",
            "capacity %",
            "fragment. %",
            "held back %",
        ]),
        rows: run.delay_by_tenant.iter().take(TENANTS_MAX).map(row).collect(),
        notes: and_more(run.delay_by_tenant.len(), "tenants"),
    }
}

pub(super) fn spread(run: &Simulated) -> Table {
    let rows = run.spread.iter().map(|row| {
        vec![
            class_label(row.num_gpus_max),
            class_label(row.num_nodes_max),
            count(row.num_runs as usize),
            percent(row.gpu_time),
            percent(row.relative_rate),
        ]
    });
    Table {
        header: header(&[
            "gang (GPUs)",
            "nodes",
            "runs",
            "GPU-time of the class %",
            "speed % of full",
        ]),
        rows: rows.collect(),
        notes: vec![format!(
            "{} % of the held GPU-time is lost to less than full speed: locality, neighbours, restarts",
            percent(run.rate_loss)
        )],
    }
}

/// In steps of a tenth; the figures are in steps of a twentieth.
pub(super) fn occupancy(run: &Simulated) -> Table {
    let mut steps: Vec<(u32, f64, f64)> = Vec::new();
    for row in &run.occupancy {
        let tenth = (10.0 * row.from + 1e-9) as u32;
        let time = row.time.unwrap_or(0.0);
        let empty = time * row.empty_nodes.unwrap_or(0.0);
        match steps.last_mut() {
            Some(last) if last.0 == tenth => (last.1, last.2) = (last.1 + time, last.2 + empty),
            _ => steps.push((tenth, time, empty)),
        }
    }
    let rows = steps.into_iter().map(|(tenth, time, empty)| {
        vec![
            match tenth {
                10 => "all".to_string(),
                tenth => format!("{}-{}", 10 * tenth, 10 * tenth + 10),
            },
            percent(Some(time)),
            percent(share(empty, time)),
        ]
    });
    Table {
        header: header(&["GPUs held %", "of the time %", "empty nodes %"]),
        rows: rows.collect(),
        notes: vec!["empty nodes: nodes without any job, mean over that time".into()],
    }
}
