//! The instances of a comparison: each workload with each seed, under names that tell them apart.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pleach_env::workload::Workload;
use pleach_env::workload::classes::Filled;
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::{EnvConfig, Seed, SimConfig};
use pleach_scheduler::physics::overheads::Overheads;

use crate::error::Error;
use crate::evaluate::day::DAY_S;
use crate::evaluate::workload_source::{Source, WorkloadSource};

/// Most windows that a list may be cut into.
const NUM_WINDOWS_MAX: usize = 10_000;

/// One workload with its seed, on which policies are run.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The jobs and the cluster.
    pub workload: Arc<Workload>,
    /// The seed that it was drawn with; also decides the errors of the estimates.
    pub seed: u64,
}

impl WorkloadSource {
    /// All instances of a comparison: each name with each seed. A file gives one instance, or one for each window; with
    /// estimates, outcomes, failures or restarts that are drawn, each of them with each seed. No two workloads have the same
    /// name. `note` receives what importers mended.
    ///
    /// # Errors
    /// As [`WorkloadSource::workload`].
    pub fn instances(
        &self,
        sim: &SimConfig,
        seeds: &[Seed],
        note: &mut dyn FnMut(String),
    ) -> Result<Vec<Instance>, Error> {
        let mut instances: Vec<Instance> = Vec::new();
        let mut taken = BTreeSet::new();
        let drawn = is_drawn(sim);
        for name in &self.workload {
            if let Source::Generated(_) | Source::Drawn(_) = self.source(name)? {
                let label = own_name(&mut taken, name, name);
                if let Some(assumed) = self.assumed()? {
                    note(format!("{label}: {assumed}"));
                }
                let mut filled = Filled::default();
                for seed in seeds {
                    let (mut workload, _) = self.workload(name, *seed)?;
                    fill(sim, &mut workload, &mut filled);
                    workload.name.clone_from(&label);
                    instances.push(Instance {
                        workload: Arc::new(workload),
                        seed: seed.0,
                    });
                }
                tell(&label, filled, note);
                continue;
            }
            let (mut whole, report) = self.workload(name, Seed(0))?;
            whole.name = own_name(&mut taken, &whole.name, &stem_of(name));
            if let Some(report) = report {
                note(report.to_string());
            }
            let mut filled = Filled::default();
            fill(sim, &mut whole, &mut filled);
            tell(&whole.name, filled, note);
            let windows: Vec<Arc<Workload>> = self.windows(whole)?.into_iter().map(Arc::new).collect();
            for seed in if drawn { seeds } else { &seeds[..1] } {
                instances.extend(windows.iter().map(|workload| Instance {
                    workload: Arc::clone(workload),
                    seed: seed.0,
                }));
            }
        }
        Ok(instances)
    }

    /// Whether more seeds give other runs: some workload is generated, or the simulation draws something.
    ///
    /// # Errors
    /// As [`WorkloadSource::check`].
    pub fn is_drawn(&self, sim: &SimConfig) -> Result<bool, Error> {
        for name in &self.workload {
            if matches!(self.source(name)?, Source::Generated(_) | Source::Drawn(_)) {
                return Ok(true);
            }
        }
        Ok(is_drawn(sim))
    }

    /// Cuts a list into windows of equal length; windows without jobs are left out.
    fn windows(&self, whole: Workload) -> Result<Vec<Workload>, Error> {
        Error::refuse_if(
            self.keep_running && self.window_days.is_none(),
            "keep_running",
            true,
            "windows of a list: a whole list has no jobs before it",
            "Add --window-days, or leave it out.",
        )?;
        let (Some(days), Some(first), Some(last)) = (self.window_days, whole.jobs.first(), whole.jobs.last())
        else {
            return Ok(vec![whole]);
        };
        let (length_s, span_s) = (days * DAY_S, whole.arrival_span_s());
        let (first_s, last_s) = (first.submit.as_secs_f64(), last.submit.as_secs_f64());
        // A window does not hold its end, so a job that comes at the end of the last begins another.
        let num = (span_s / length_s).floor() + 1.0;
        if num > NUM_WINDOWS_MAX as f64 {
            let shortest = (span_s / DAY_S / (NUM_WINDOWS_MAX - 1) as f64 * 1e4).ceil() / 1e4;
            return Err(Error::config(
                "window_days",
                days,
                format!("at most {NUM_WINDOWS_MAX} windows, and these are {num}"),
                format!("Give --window-days {shortest} or more."),
            ));
        }
        let edge_s = |number: usize| first_s + number as f64 * length_s;
        let cut = |number: usize| {
            let (from_s, to_s) = (edge_s(number), edge_s(number + 1));
            let mut window = whole.window(from_s, to_s);
            if self.keep_running && !window.jobs.is_empty() {
                window = whole.window_with_running(from_s, to_s);
            }
            window.name = format!("{}#{number}", whole.name);
            window
        };
        // One more where the division was rounded down: then the last job comes after all these.
        let num = num as usize + usize::from(edge_s(num as usize) <= last_s);
        Ok((0..num)
            .map(cut)
            .filter(|window| !window.jobs.is_empty())
            .collect())
    }
}

/// Whether a simulation draws anything, so that another seed gives another run of the same list.
pub(crate) fn is_drawn(sim: &SimConfig) -> bool {
    matches!(sim.estimates, EstimateModel::LogNormal { .. })
        || sim.outcomes.is_some()
        || sim.capacity.node_mtbf_s.is_some()
        || sim.capacity.site.is_some()
        || sim.beliefs.is_some()
        || sim.capabilities.overheads == Some(Overheads::TaccEmpirical)
}

/// Where published classes stand in, gives them to a list, and counts its jobs.
fn fill(sim: &SimConfig, workload: &mut Workload, all: &mut Filled) {
    if sim.class_facts {
        let is_by_class = sim.capabilities.overheads == Some(Overheads::ByClass);
        let filled = workload.fill_class_facts(is_by_class);
        all.num_known += filled.num_known;
        all.num_assumed += filled.num_assumed;
        all.num_unknown += filled.num_unknown;
    }
}

/// Says for how many jobs of lists of a name published classes stand.
fn tell(name: &str, filled: Filled, note: &mut dyn FnMut(String)) {
    if filled == Filled::default() {
        return;
    }
    let num_jobs = filled.num_known + filled.num_assumed + filled.num_unknown;
    let alone = match filled.num_unknown {
        0 => "",
        _ => ", whose memory is not known: they share no GPU",
    };
    note(format!(
        "{name}: of {num_jobs} jobs {} name a published model, for {} one stands by the size of the gang, {} are unknown{alone}",
        filled.num_known, filled.num_assumed, filled.num_unknown
    ));
}

/// The first of the workload's name, its file's, and that with a number which is not taken yet; it is taken from then on.
fn own_name(taken: &mut BTreeSet<String>, name: &str, stem: &str) -> String {
    let own = if taken.contains(name) { stem } else { name };
    let mut own = own.to_string();
    let mut number = 2;
    while taken.contains(&own) {
        own = format!("{stem}-{number}");
        number += 1;
    }
    taken.insert(own.clone());
    own
}

/// A file's name without folder, `.gz` and extension.
fn stem_of(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_string()
}

/// `num` seeds that follow from one, in a stream of their own: training, validation and test never share one.
#[must_use]
pub fn seeds(root: u64, stream: &str, num: usize) -> Vec<Seed> {
    (0..num as u64)
        .map(|index| Seed(root).child(stream, index))
        .collect()
}

/// The workloads of an environment for these seeds.
///
/// # Errors
/// Where a workload cannot be drawn.
pub fn episodes(env: &EnvConfig, seeds: &[Seed]) -> Result<Vec<Instance>, Error> {
    let source = pleach_env::Source::open(env)?;
    let instance = |seed: &Seed| {
        Ok(Instance {
            workload: Arc::new(source.workload(env, *seed)?),
            seed: seed.0,
        })
    };
    seeds.iter().map(instance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_scheduler::Time;

    /// A list of one-GPU jobs of 60 s that come at these times, s, on eight GPUs.
    fn list_of(submit_s: &[f64]) -> Workload {
        let (mut workload, _) = WorkloadSource {
            num_jobs: Some(submit_s.len() as u32),
            ..WorkloadSource::default()
        }
        .workload("philly-like", Seed(1))
        .unwrap();
        for (job, at_s) in workload.jobs.iter_mut().zip(submit_s) {
            job.submit = Time::from_secs_f64(*at_s);
        }
        workload
    }

    #[test]
    fn windows_hold_every_job_also_where_the_last_comes_at_the_end_of_one() {
        let days = |window_days: f64| WorkloadSource {
            window_days: Some(window_days),
            ..WorkloadSource::default()
        };
        let windows = days(1.0).windows(list_of(&[0.0, 86_400.0])).unwrap();
        let jobs: Vec<usize> = windows.iter().map(|window| window.jobs.len()).collect();
        assert_eq!(jobs, [1, 1]);
        assert_eq!(windows[1].jobs[0].submit, Time::ZERO);
        // No length of a window loses a job to rounding.
        for window_days in [0.1, 0.3, 0.7, 1.0 / 3.0, 5.0] {
            let times: Vec<f64> = (0..40)
                .map(|number| 17.3 + f64::from(number) * window_days * 86_400.0)
                .collect();
            let windows = days(window_days).windows(list_of(&times)).unwrap();
            let num: usize = windows.iter().map(|window| window.jobs.len()).sum();
            assert_eq!(num, 40, "{window_days}");
        }
        let refused = days(0.001).windows(list_of(&[0.0, 8_640_000.0])).unwrap_err();
        assert!(
            refused.to_string().contains("these are 100001") && refused.to_string().contains("0.0101"),
            "{refused}"
        );
        let fewest = days(0.0101).windows(list_of(&[0.0, 8_640_000.0])).unwrap();
        assert_eq!(fewest.len(), 2);
    }

    #[test]
    fn windows_may_begin_with_what_still_runs_and_a_whole_list_may_not() {
        let mut list = list_of(&[0.0, 50_000.0, 90_000.0]);
        list.jobs[1].run_time_s = 86_400.0;
        let source = |window_days| WorkloadSource {
            window_days,
            keep_running: true,
            ..WorkloadSource::default()
        };
        let windows = source(Some(1.0)).windows(list.clone()).unwrap();
        // At the end of the first day 50,000 s of the second job are left.
        let second: Vec<f64> = windows[1]
            .jobs
            .iter()
            .map(|job| job.submit.as_secs_f64())
            .collect();
        assert_eq!(
            (windows[0].jobs.len(), second.as_slice()),
            (2, &[0.0, 3600.0][..])
        );
        assert!((windows[1].jobs[0].run_time_s - 50_000.0).abs() < 1e-6);
        let refused = source(None).windows(list).unwrap_err().to_string();
        assert!(refused.contains("keep_running"), "{refused}");
    }

    #[test]
    fn published_classes_stand_in_as_in_the_environment_and_are_counted() {
        let sim = SimConfig::default().realistic(false);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ours.csv");
        list_of(&[0.0, 60.0]).write(&path).unwrap();
        for (name, num_jobs) in [
            ("Pleach/PhillyGangRealistic-v2".to_string(), 10),
            (path.to_str().unwrap().to_string(), 2),
        ] {
            let args = WorkloadSource {
                workload: vec![name.clone()],
                num_jobs: Some(5),
                ..WorkloadSource::default()
            };
            let mut notes = Vec::new();
            let found = args.instances(&sim, &[Seed(1), Seed(2)], &mut |note| notes.push(note));
            let found = found.unwrap();
            // What errs in the world is drawn anew with each seed, also for a list of one's own.
            assert_eq!(found.len(), 2, "{name}");
            let said = format!("of {num_jobs} jobs 0 name a published model, for {num_jobs} one stands");
            let told = notes.iter().filter(|note: &&String| note.contains(&said));
            assert_eq!(told.count(), 1, "{notes:?}");
            for instance in &found {
                assert!(
                    instance
                        .workload
                        .classes
                        .iter()
                        .any(|class| class.state_gib > 0.0)
                );
            }
        }
        // By an id as by the generator behind it: the links of Philly.
        let id = WorkloadSource {
            workload: vec!["Pleach/PhillyGangRealistic-v2".into()],
            ..WorkloadSource::default()
        };
        let found = id.instances(&sim, &[Seed(1)], &mut |_| {}).unwrap();
        let philly = pleach_scheduler::physics::links::Fabric::from_name("philly").unwrap();
        assert_eq!(found[0].workload.cluster.fabric, Some(philly));
    }

    #[test]
    fn workloads_of_one_name_are_told_apart_and_one_that_is_listed_twice_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        // Both lists are called as in their sidecars.
        for name in ["a.csv", "b.csv"] {
            list_of(&[0.0, 60.0]).write(Path::new(&path(name))).unwrap();
        }
        let names = [path("a.csv"), "philly-like".to_string(), path("b.csv")];
        let args = WorkloadSource {
            workload: names.to_vec(),
            num_jobs: Some(2),
            ..WorkloadSource::default()
        };
        args.check().unwrap();
        let instances = args
            .instances(&SimConfig::default(), &[Seed(1), Seed(2)], &mut |_| {})
            .unwrap();
        let names: Vec<&str> = instances
            .iter()
            .map(|instance| instance.workload.name.as_str())
            .collect();
        assert_eq!(names, ["philly-like", "philly-like-2", "philly-like-2", "b"]);
        for twice in [
            vec![path("a.csv"), path("./a.csv")],
            vec!["philly-like".to_string(); 2],
        ] {
            let args = WorkloadSource {
                workload: twice,
                ..WorkloadSource::default()
            };
            let refused = args.check().unwrap_err();
            assert!(refused.to_string().contains("listed twice"), "{refused}");
            assert_eq!(refused.exit_code(), 2);
        }
    }
}
