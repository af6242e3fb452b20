//! What is wrong in a profile, a few words each.

use super::mix::Lengths;
use super::outcomes::{Ends, EndsByLevel};
use super::profile::{Constraints, Demand, Long, Odds, Plan, Profile, Row, Work};
use super::quantiles::{is_quantiles, is_rising};
use super::site::Machines;
use crate::plans::Model;

/// Collects what is wrong.
#[derive(Default)]
struct Found(Vec<String>);

impl Found {
    fn check(&mut self, is_right: bool, key: &str, allowed: &str) {
        if !is_right {
            self.0.push(format!("{key}: allowed is {allowed}"));
        }
    }

    /// All of them within a range.
    fn range(&mut self, numbers: &[f64], from: f64, to: f64, key: &str) {
        let is_right = numbers.iter().all(|number| (from..=to).contains(number));
        self.check(is_right, key, &format!("{from} to {to}"));
    }
}

/// Everything that is wrong in a profile.
pub(super) fn faults(profile: &Profile) -> Vec<String> {
    let mut found = Found::default();
    let works = profile.works.len();
    found.check((1..=1000).contains(&works), "works", "1 to 1,000");
    of_site(profile, &mut found);
    of_habits(profile, &mut found);
    profile
        .works
        .iter()
        .for_each(|work| of_work(profile, work, &mut found));
    found.0
}

fn of_site(profile: &Profile, found: &mut Found) {
    let fleets = profile.gpus.values().map(|fleet| &fleet.machines);
    let mut machines = fleets.chain([&profile.machines]).flatten();
    let has_gpus = |row: &Machines| row.count > 0 && row.gpus_per_node > 0;
    found.check(machines.all(has_gpus), "machines", "nodes with GPUs");
    found.check(profile.pod_nodes != Some(0), "pod_nodes", "1 or more");
    found.range(profile.store_gb_s.as_slice(), 0.001, 1e6, "store_gb_s");
    let tenants = &profile.tenants.rows;
    let columns = match profile.tenants.jobs_up_to.len() {
        0 => profile.works.len(),
        bounds => bounds + 1,
    };
    let has_columns = tenants.iter().all(|row| row.jobs.len() == columns);
    found.check(tenants.len() <= 1000, "tenants.rows", "at most 1,000");
    found.check(has_columns, "tenants.rows.jobs", "a number for each column");
    for row in tenants {
        found.range(&row.jobs, 0.0, 1e12, "tenants.rows.jobs");
        found.range(&[row.quota, row.weight], 0.0, 1e9, "tenants.rows.quota, weight");
    }
    let owns = tenants.first().is_none_or(|first| first.quota > 0.0);
    found.check(owns, "tenants.rows.quota", "above 0 for the first");
    let known = |plan: &Plan| Model::from_name(&plan.plan).is_ok() && plan.batch != Some(0);
    found.check(
        profile.models.values().all(known),
        "models",
        "plans of models that are known",
    );
    let is_typed = |of: &Constraints| of.share > 0.0 && of.sets.iter().all(|set| !set.types.is_empty());
    let is_typed = profile.constraints.as_ref().is_none_or(is_typed);
    found.check(is_typed, "constraints", "a share above 0, and sets of types");
}

fn of_habits(profile: &Profile, found: &mut Found) {
    let (arrivals, runs) = (&profile.arrivals, &profile.runs);
    found.range(&[arrivals.sigma], 0.0, 10.0, "arrivals.sigma");
    found.range(&[arrivals.correlation], 0.0, 0.999, "arrivals.correlation");
    found.range(&arrivals.hours, 0.001, 100.0, "arrivals.hours");
    found.range(&arrivals.weekdays, 0.001, 100.0, "arrivals.weekdays");
    found.range(&[runs.users as f64], 0.0, 1e6, "runs.users");
    found.range(&[runs.user_exponent], 0.0, 100.0, "runs.user_exponent");
    found.range(
        &[runs.run_time_correlation],
        0.0,
        0.999,
        "runs.run_time_correlation",
    );
    found.check(runs.length_max != Some(0), "runs.length_max", "1 or more");
    for (share, gap_s) in &runs.gaps_s {
        found.range(&[*share], 0.0, 1.0, "runs.gaps_s share");
        found.range(&[*gap_s], 0.0, 1e9, "runs.gaps_s");
    }
    if let Some(spot) = &profile.spot {
        found.range(&[spot.share, spot.long], 0.0, 0.999, "spot");
    }
    if let Some(Odds { failed, cancelled }) = &profile.odds {
        found.range(&[failed.0, failed.1, cancelled.0, cancelled.1], 0.0, 1e6, "odds");
    }
    let has_odds = profile.even_from.is_none() || profile.odds.is_some();
    found.check(
        has_odds,
        "even_from",
        "a number of jobs where odds say how jobs end",
    );
    let long = profile.long.as_ref().is_none_or(is_long);
    found.check(long, "long", "rising levels, as many as rising seconds");
    let ends = profile
        .ends_by_run_time
        .as_ref()
        .is_none_or(EndsByLevel::is_right);
    found.check(ends, "ends_by_run_time", "shares above 0, rising levels");
}

fn is_long(long: &Long) -> bool {
    let num = long.levels.len();
    let is_short = |row: &Row<Vec<f64>>| row.of.len() + num == long.seconds.len() && is_rising(&row.of);
    let has_short = !long.short.is_empty() && long.short.iter().all(is_short);
    is_quantiles(&long.seconds) && is_rising(&long.levels) && has_short
}

fn of_work(profile: &Profile, work: &Work, found: &mut Found) {
    let key = |name: &str| format!("works.{}.{name}", work.name);
    let demand = |row: &Demand| {
        let numbers = [row.jobs, row.cpu_cores, row.memory_gib];
        let is_long = (0.0..=1.0).contains(&(row.long * work.long_times.max(1.0)));
        let is_asked = (1..=1 << 20).contains(&row.gpus) && (1..=1000).contains(&row.gpu_milli);
        is_asked && is_long && numbers.iter().all(|number| (0.0..=1e12).contains(number))
    };
    let mix = !work.mix.is_empty() && work.mix.iter().all(demand);
    found.check(mix, &key("mix"), "GPUs, jobs, and shares of at most 1");
    let is_one = work.run_times.is_empty() == profile.long.is_some();
    found.check(is_one, &key("run_times"), "run times, or long ones");
    let curves = work.run_times.iter().all(|row| row.of.is_right());
    let allowed = "rising levels from 0 to 1, as many as rising seconds";
    found.check(curves && is_by_gang(&work.run_times), &key("run_times"), allowed);
    let leans = profile.ends_by_run_time.is_some();
    let end = |row: &Row<Ends>| match row.of {
        Ends::Shares { killed, failed } => killed >= 0.0 && failed >= 0.0 && killed + failed <= 1.0,
        Ends::Leaning(shares) => shares.iter().all(|share| *share >= 0.0) && leans,
    };
    let ends = work.ends.iter().all(end) && is_by_gang(&work.ends);
    found.check(ends, &key("ends"), "shares of at most 1");
    let lengths = |row: &Row<Lengths>| row.of.is_right();
    let runs = work.runs.iter().all(lengths) && is_by_gang(&work.runs);
    found.check(runs, &key("runs"), "a mean above 1, or rising shares");
    let mut cores = work.cpu_cores.iter().flat_map(|row| &row.of);
    let cores = cores.all(|(cores, share)| *cores >= 0.0 && *share > 0.0);
    found.check(
        cores && is_by_gang(&work.cpu_cores),
        &key("cpu_cores"),
        "cores, and shares above 0",
    );
    let models = work.models.iter().all(|row| !row.of.is_empty()) && is_by_gang(&work.models);
    found.check(models, &key("models"), "names");
}

/// Whether the gangs of rows rise.
fn is_by_gang<T>(rows: &[Row<T>]) -> bool {
    rows.windows(2).all(|pair| pair[0].up_to < pair[1].up_to)
}
