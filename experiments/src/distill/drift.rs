//! How far what a tree is offered has moved from where it was judged: the index of the daemon's window, on lists that are simulated.

use std::fmt::Write as _;

use pleach_env::SimConfig;
use pleach_scheduler::tree::{DriftWindow, Tree};
use serde::Serialize;

use super::visits::watch;
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::plot::{Axis, Mark, Plot};

/// The index after one step of the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriftStep {
    /// Number of the list, from 0.
    pub list: usize,
    /// Decisions so far, over all lists.
    pub decision: u64,
    /// Index of the last window's candidates against the file's histogram.
    pub psi: f64,
}

/// What is said of the steps that end in one list, or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriftRow {
    /// Name of the list.
    pub list: String,
    /// Decisions in it.
    pub num_decisions: u64,
    /// Steps of a full window that end in it.
    pub num_steps: usize,
    /// Least, middle, 95th percentile and largest index; none without a step.
    pub psi: Option<[f64; 4]>,
    /// Share of the steps above the limit; none without a step.
    pub share_above: Option<f64>,
}

/// Drift over lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriftReport {
    /// Version of this form.
    pub schema: u32,
    /// Hash of the tree.
    pub tree_hash: String,
    /// Decisions of a window.
    pub window: u32,
    /// Index above which a window has drifted.
    pub limit: f64,
    /// List by list, then all of them.
    pub rows: Vec<DriftRow>,
    /// All steps.
    pub steps: Vec<DriftStep>,
}

/// Simulates the lists one after the other, the window going on from list to list.
///
/// # Errors
/// A tree whose file has no visits, a run that fails.
pub fn drift(
    tree: &Tree,
    (instances, sim): (&[Instance], &SimConfig),
    window: u32,
    limit: f64,
) -> Result<DriftReport, Error> {
    let Some(visits) = tree.visits() else {
        return Err(Error::config(
            "file",
            &tree.meta().name,
            "a tree whose file has visits",
            "pleach distill seal FILE --visits --workload ... records them.",
        ));
    };
    let mut own = DriftWindow::new(window, tree.num_leaves());
    let mut num = vec![0_u64; instances.len()];
    let mut steps = Vec::new();
    let mut decision = 0;
    watch(tree, (instances, sim), |list, offered| {
        decision += 1;
        num[list] += 1;
        if own.add(offered)
            && let Some(psi) = own.psi(visits)
        {
            steps.push(DriftStep { list, decision, psi });
        }
    })?;
    let mut rows = Vec::new();
    for (list, instance) in instances.iter().enumerate() {
        let of_list: Vec<f64> = steps
            .iter()
            .filter(|step| step.list == list)
            .map(|step| step.psi)
            .collect();
        rows.push(row(&instance.workload.name, num[list], of_list, limit));
    }
    let all = steps.iter().map(|step| step.psi).collect();
    rows.push(row("all", decision, all, limit));
    Ok(DriftReport {
        schema: 1,
        tree_hash: tree.hash(),
        window,
        limit,
        rows,
        steps,
    })
}

fn row(list: &str, num_decisions: u64, mut psi: Vec<f64>, limit: f64) -> DriftRow {
    psi.sort_unstable_by(f64::total_cmp);
    // The least value that as large a share lies at or below.
    let at = |share: f64| {
        let place = (share * psi.len() as f64).ceil() as usize;
        psi.get(place.saturating_sub(1)).copied()
    };
    let above = psi.iter().filter(|psi| **psi > limit).count();
    DriftRow {
        list: list.to_string(),
        num_decisions,
        num_steps: psi.len(),
        psi: at(0.0)
            .zip(at(0.5))
            .zip(at(0.95).zip(at(1.0)))
            .map(|((least, middle), (high, most))| [least, middle, high, most]),
        share_above: (!psi.is_empty()).then(|| above as f64 / psi.len() as f64),
    }
}

impl DriftReport {
    /// A table, as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "| list | decisions | steps | least | middle | 95 % | largest | above {} |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
            self.limit
        );
        for row in &self.rows {
            let [least, middle, high, most] = row.psi.map_or_else(
                || std::array::from_fn(|_| "-".to_string()),
                |psi| psi.map(|psi| format!("{psi:.3}")),
            );
            let above = row
                .share_above
                .map_or_else(|| "-".into(), |share| format!("{:.1} %", 100.0 * share));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {least} | {middle} | {high} | {most} | {above} |",
                row.list, row.num_decisions, row.num_steps
            );
        }
        let _ = write!(
            text,
            "\nStability index of the last {} decisions against the file's visits, a step every {}.\n",
            self.window,
            self.window / 20
        );
        text
    }

    /// The index over decisions, with the limit; none where no window was full.
    #[must_use]
    pub fn plot(&self) -> Option<Plot> {
        let points = self.steps.iter().map(|step| (step.decision as f64, step.psi));
        Plot::new(
            "The stability index of what the tree is offered, over decisions",
            Axis::of("decisions"),
            Axis::of("stability index"),
        )
        .with([
            Mark::line("stability index", points),
            Mark::level("limit", self.limit),
        ])
        .if_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distill::visits::record;
    use crate::door::PolicySpec;
    use crate::evaluate::evaluation::EvaluationConfig;
    use crate::evaluate::workload_source::WorkloadSource;
    use crate::worlds::jobs::JobsWorld;
    use pleach_tests::assert_well_formed;

    fn lists(name: &str, load: f64, seed: u64) -> (Vec<Instance>, SimConfig) {
        let config = EvaluationConfig {
            workload: WorkloadSource {
                num_jobs: Some(400),
                load: Some(load),
                ..WorkloadSource::of(name)
            },
            seeds: 3,
            seed,
            ..EvaluationConfig::default()
        };
        let evaluation = JobsWorld::of(&config, vec![PolicySpec::heuristic("fifo").unwrap()]).unwrap();
        let instances = evaluation.instances(&mut |_| ()).unwrap();
        (instances, evaluation.sim)
    }

    #[test]
    fn the_lists_of_the_record_are_near_and_other_ones_are_far() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/trees/PhillyGang-v1-tree.json"
        );
        let sealed = Tree::load(path.as_ref()).unwrap();
        // As it was before it was sealed: no visits.
        let tree = Tree::new(sealed.meta().clone(), sealed.nodes()).unwrap();
        let (own, sim) = lists("Pleach/PhillyGang-v1", 1.0, 0);
        let refused = drift(&tree, (&own, &sim), 500, 1.0).unwrap_err().to_string();
        assert!(refused.contains("distill seal FILE --visits"), "{refused}");
        let visits = record(&tree, &own, &sim, 0).unwrap();
        assert_eq!(visits.recorded_on["num_jobs"], 1200);
        assert_eq!(record(&tree, &own, &sim, 0).unwrap(), visits);
        let num_decisions = visits.num_decisions;
        let tree = tree.with_visits(visits).unwrap();
        // One window as long as all of the lists that were recorded: the same shares.
        let whole = (num_decisions / 20 * 20) as u32;
        let same = drift(&tree, (&own, &sim), whole, 1.0).unwrap();
        let all = same.rows.last().unwrap();
        assert!(all.num_steps >= 1 && all.psi.unwrap()[0] < 0.001, "{all:?}");
        assert_eq!((all.num_decisions, all.share_above), (num_decisions, Some(0.0)));
        let (calm, sim) = lists("Pleach/PhillyGang-v1", 0.2, 5);
        let other = drift(&tree, (&calm, &sim), 500, 1.0).unwrap();
        let all = other.rows.last().unwrap();
        assert!(all.psi.unwrap()[1] > 0.1, "{all:?}");
        let text = other.markdown();
        assert!(
            text.contains("| all | ") && text.contains("a step every 25."),
            "{text}"
        );
        assert_well_formed(&crate::plot::markup(&other.plot().unwrap()).into_string());
        // A window that is never full says so.
        let none = drift(&tree, (&calm, &sim), 1_000_000, 1.0).unwrap();
        assert!(none.plot().is_none() && none.markdown().contains("| 0 | - | - | - | - | - |"));
    }
}
