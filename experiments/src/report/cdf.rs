//! Which part of the jobs finished within a given time: one line for each policy, logarithmic in time.

use crate::evaluate::results::Results;
use crate::plot::distribution::{Curve, JOBS_LOW_S, plot, points};
use crate::report::looks;

/// The plot and its legend; none where no run kept its JCTs.
#[must_use]
pub fn render(results: &Results) -> Option<String> {
    let looks = looks(results);
    let labels: Vec<String> = looks.iter().map(|(_, name)| results.label(name)).collect();
    let curves = looks.iter().zip(&labels).map(|((series, name), label)| Curve {
        series: *series,
        name: label,
        points: curve(results, name),
    });
    plot(
        "job completion time (log scale)",
        "jobs finished within this time",
        "Distribution of job completion times, one line for each policy",
        JOBS_LOW_S,
        curves.collect(),
    )
}

/// (JCT in seconds, part of the jobs) over all runs of `policy`, as at most [`CDF_POINTS_MAX`] quantiles.
fn curve(results: &Results, policy: &str) -> Vec<(f64, f64)> {
    let runs = results.runs().iter().filter(|run| run.policy == policy);
    let mut jct_s: Vec<f64> = runs.flat_map(|run| run.jct_s.iter().copied()).collect();
    jct_s.sort_by(f64::total_cmp);
    points(&jct_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::results::tests::run;
    use crate::plot::distribution::CDF_POINTS_MAX;
    use pleach_tests::assert_well_formed;

    #[test]
    fn a_long_run_is_thinned_and_keeps_its_ends() {
        let mut long = run("fifo", "w", 0, 100.0);
        long.jct_s = (1..=100_000).map(f64::from).collect();
        let results = Results::new("evaluate", vec![long], None).unwrap();
        let points = curve(&results, "fifo");
        assert_eq!(points.len(), CDF_POINTS_MAX);
        assert_eq!((points[0], points[399]), ((1.0, 0.0), (100_000.0, 1.0)));
        assert_well_formed(&render(&results).unwrap());
    }

    #[test]
    fn runs_without_jcts_give_no_plot_and_one_job_gives_one() {
        let mut none = run("fifo", "w", 0, 100.0);
        none.jct_s.clear();
        assert!(render(&Results::new("evaluate", vec![none.clone()], None).unwrap()).is_none());
        none.jct_s.push(0.0);
        assert_well_formed(&render(&Results::new("evaluate", vec![none], None).unwrap()).unwrap());
    }
}
