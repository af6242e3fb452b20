//! Writes the project's own workload file: to a temporary name first, synced, then renamed. The path's ending says
//! whether it is CSV, gzipped CSV or Parquet.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::Resources;
use pleach_tables::{is_gzip_name, is_parquet_name, quoted, replace};

use super::{
    COLUMNS, HELD_COLUMN, OBSERVED_COLUMNS, RESOURCE_COLUMNS, Sidecar, TASK_COLUMNS, WISH_COLUMNS,
    sidecar_path,
};
use crate::Error;
use crate::{JobSpec, Observed, Workload, config, is_printable};

impl Workload {
    /// Writes the jobs to `path` (as Parquet where it ends in `.parquet`, else as CSV, gzipped where it ends in `.gz`)
    /// and the cluster beside it. The same workload gives the same bytes.
    ///
    /// # Errors
    /// A workload that is not valid, tenants or classes that share a name, a path without a file name or of a device, Parquet in
    /// a build without the feature `parquet`, files that cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        self.validate()?;
        let tenants: Vec<_> = self.cluster.tenants.iter().map(|tenant| &tenant.name).collect();
        let classes: Vec<_> = self.classes.iter().map(|class| &class.name).collect();
        for (key, names) in [("cluster.tenants", tenants), ("classes", classes)] {
            refuse_names(key, &names)?;
        }
        Error::refuse_if(
            path.file_name().is_none(),
            "path",
            path.display(),
            "a path that ends in a file name",
            "for example runs/week-1.csv.gz",
        )?;
        // Beside it the cluster is written too.
        Error::refuse_if(
            std::fs::metadata(path).is_ok_and(|found| !found.is_file()),
            "path",
            path.display(),
            "a file: no device, no pipe, no folder",
            "give the name of a file; the cluster goes beside it",
        )?;
        let text = self.sidecar()?;
        let parquet = if is_parquet_name(path) {
            Some(self.jobs_as_parquet(path)?)
        } else {
            None
        };
        replace(&sidecar_path(path), |out| out.write_all(text.as_bytes()))?;
        if let Some(bytes) = parquet {
            return replace(path, |out| out.write_all(&bytes));
        }
        let write = |out: &mut dyn Write| {
            if is_gzip_name(path) {
                let mut gzip = GzEncoder::new(out, Compression::default());
                self.write_jobs(&mut gzip)?;
                gzip.finish()?;
                Ok(())
            } else {
                self.write_jobs(out)
            }
        };
        replace(path, write)
    }

    /// The text of the file that [`Workload::write`] puts beside the jobs: name, model classes and cluster, in TOML.
    ///
    /// # Errors
    /// A description that TOML cannot hold.
    pub fn sidecar(&self) -> Result<String, Error> {
        let sidecar = Sidecar {
            name: Some(self.name.clone()),
            classes: self.classes.clone(),
            trainings: Vec::new(),
            cluster: self.cluster.clone(),
            assumed: None,
        };
        toml::to_string(&sidecar)
            .map_err(|error| config("cluster", error, "a description that TOML can hold", "see spec"))
    }

    /// The jobs as the text of a CSV file, as [`Workload::write`] writes it. Names that a row could not refer to are refused
    /// there.
    #[must_use]
    pub fn jobs_csv(&self) -> Vec<u8> {
        let mut text = Vec::new();
        // Nothing that is written to memory fails.
        let _ = self.write_jobs(&mut text);
        text
    }

    fn write_jobs(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let (has_resources, has_tasks) = (self.has_resources(), self.has_tasks());
        let has_observed = self.has_observed();
        write!(out, "{}", COLUMNS.join(","))?;
        if has_resources {
            write!(out, ",{}", RESOURCE_COLUMNS.join(","))?;
        }
        if has_tasks {
            write!(out, ",{}", TASK_COLUMNS.join(","))?;
        }
        if has_observed {
            write!(out, ",{}", OBSERVED_COLUMNS.join(","))?;
        }
        let wishes = self.wishes();
        for place in &wishes {
            write!(out, ",{}", WISH_COLUMNS[*place])?;
        }
        let has_held = self.has_held();
        if has_held {
            write!(out, ",{HELD_COLUMN}")?;
        }
        writeln!(out)?;
        for job in &self.jobs {
            let estimate = job.estimate_s.map(|value| value.to_string()).unwrap_or_default();
            write!(
                out,
                "{},{},{},{},{estimate},{},{},{},{}",
                quoted(&job.id),
                seconds(job.submit),
                job.num_gpus,
                job.run_time_s,
                quoted(&self.cluster.tenants[usize::from(job.tenant)].name),
                quoted(&self.classes[usize::from(job.class)].name),
                quoted(job.user.as_deref().unwrap_or_default()),
                job.outcome.word(),
            )?;
            if has_resources {
                let asked = &job.resources;
                let (share, gpu_memory_gib) = (asked.gpu_milli, asked.gpu_memory_gib);
                write!(
                    out,
                    ",{share},{gpu_memory_gib},{},{}",
                    asked.cpu_cores, asked.memory_gib
                )?;
            }
            if has_tasks {
                let tasks = job.resources.tasks;
                let (each, on_node) = (tasks.gpus_per_task, tasks.tasks_per_node_max);
                write!(out, ",{each},{on_node},{}", tasks.nodes_max)?;
            }
            if has_observed {
                write_observed(out, job.observed.as_deref())?;
            }
            for place in &wishes {
                let wish = job.observed.as_deref().map_or("", |seen| seen.wishes()[*place]);
                write!(out, ",{}", quoted(wish))?;
            }
            if has_held {
                let held_s = job.observed.as_deref().map(|seen| seen.held_s);
                write!(
                    out,
                    ",{}",
                    held_s.map(|held_s| held_s.to_string()).unwrap_or_default()
                )?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Whether some job asks for anything but whole GPUs; then the file has [`RESOURCE_COLUMNS`].
    pub(super) fn has_resources(&self) -> bool {
        let whole = |job: &JobSpec| Resources {
            tasks: job.resources.tasks,
            ..Resources::WHOLE_GPU
        };
        self.jobs.iter().any(|job| job.resources != whole(job))
    }

    /// Whether it is known of some job how it went; then the file has [`OBSERVED_COLUMNS`].
    pub(super) fn has_observed(&self) -> bool {
        self.jobs.iter().any(|job| job.observed.is_some())
    }

    /// Which of [`WISH_COLUMNS`] the file has: for those some job asks.
    pub(super) fn wishes(&self) -> Vec<usize> {
        let has = |place: &usize| {
            let mut seen = self.jobs.iter().filter_map(|job| job.observed.as_deref());
            seen.any(|observed| !observed.wishes()[*place].is_empty())
        };
        (0..WISH_COLUMNS.len()).filter(has).collect()
    }

    /// Whether some job was submitted before it was eligible; then the file has [`HELD_COLUMN`].
    pub(super) fn has_held(&self) -> bool {
        let mut seen = self.jobs.iter().filter_map(|job| job.observed.as_deref());
        seen.any(|observed| observed.held_s > 0.0)
    }

    /// Whether some gang is cut into tasks; then the file has [`TASK_COLUMNS`].
    pub(super) fn has_tasks(&self) -> bool {
        self.jobs.iter().any(|job| !job.resources.tasks.is_any())
    }
}

/// The fields of [`OBSERVED_COLUMNS`], each with a comma before it.
fn write_observed(out: &mut dyn Write, observed: Option<&Observed>) -> std::io::Result<()> {
    let Some(observed) = observed else {
        return write!(out, "{}", ",".repeat(OBSERVED_COLUMNS.len()));
    };
    write!(
        out,
        ",{},{},{},{},{}",
        seconds(observed.start),
        observed.end.map(seconds).unwrap_or_default(),
        quoted(&observed.nodes),
        quoted(&observed.partition),
        quoted(&observed.qos)
    )
}

/// Refuses names that a row could not refer to.
fn refuse_names(key: &str, names: &[&String]) -> Result<(), Error> {
    let mut known = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        Error::refuse_if(
            name.is_empty() || !is_printable(name) || !known.insert(name.as_str()),
            format_args!("{key}[{index}].name"),
            format_args!("{name:?}"),
            "1 to 256 printable characters, not used before",
            "files refer to tenants and classes by name",
        )?;
    }
    Ok(())
}

/// Seconds with as many decimals as the microseconds need.
fn seconds(time: Time) -> String {
    let (whole, part) = (time.0 / 1_000_000, time.0 % 1_000_000);
    if part == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{part:06}");
    text.trim_end_matches('0').to_owned()
}
