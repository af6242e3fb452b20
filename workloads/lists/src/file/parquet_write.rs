//! Writes the jobs as Parquet: the columns of the CSV, typed.

use std::path::Path;

use pleach_tables::{Column, Values, to_parquet};

use super::{COLUMNS, HELD_COLUMN, OBSERVED_COLUMNS, RESOURCE_COLUMNS, TASK_COLUMNS, WISH_COLUMNS};
use crate::Error;
use crate::{JobSpec, Workload};

impl Workload {
    /// The jobs as the bytes of a Parquet file. The same workload gives the same bytes.
    pub(super) fn jobs_as_parquet(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let tenant = |job: &JobSpec| self.cluster.tenants[usize::from(job.tenant)].name.as_str();
        let class = |job: &JobSpec| self.classes[usize::from(job.class)].name.as_str();
        let values: [Values<'_, JobSpec>; 9] = [
            Values::Text(Box::new(|job| job.id.as_str().into())),
            Values::Number(Box::new(|job| job.submit.as_secs_f64())),
            Values::Count(Box::new(|job| job.num_gpus)),
            Values::Number(Box::new(|job| job.run_time_s)),
            Values::OptionalNumber(Box::new(|job| job.estimate_s)),
            Values::Text(Box::new(move |job| tenant(job).into())),
            Values::Text(Box::new(move |job| class(job).into())),
            Values::OptionalText(Box::new(|job| job.user.as_deref())),
            Values::Text(Box::new(|job| job.outcome.word().into())),
        ];
        let resources: [Values<'_, JobSpec>; 4] = [
            Values::Count(Box::new(|job| u32::from(job.resources.gpu_milli))),
            Values::Number(Box::new(|job| job.resources.gpu_memory_gib)),
            Values::Number(Box::new(|job| job.resources.cpu_cores)),
            Values::Number(Box::new(|job| job.resources.memory_gib)),
        ];
        let tasks: [Values<'_, JobSpec>; 3] = [
            Values::Count(Box::new(|job| u32::from(job.resources.tasks.gpus_per_task))),
            Values::Count(Box::new(|job| u32::from(job.resources.tasks.tasks_per_node_max))),
            Values::Count(Box::new(|job| u32::from(job.resources.tasks.nodes_max))),
        ];
        let observed: [Values<'_, JobSpec>; 5] = [
            Values::OptionalNumber(Box::new(|job| {
                job.observed.as_deref().map(|seen| seen.start.as_secs_f64())
            })),
            Values::OptionalNumber(Box::new(|job| {
                job.observed.as_deref()?.end.map(|end| end.as_secs_f64())
            })),
            Values::OptionalText(Box::new(|job| {
                job.observed.as_deref().map(|seen| seen.nodes.as_str())
            })),
            Values::OptionalText(Box::new(|job| {
                job.observed.as_deref().map(|seen| seen.partition.as_str())
            })),
            Values::OptionalText(Box::new(|job| {
                job.observed.as_deref().map(|seen| seen.qos.as_str())
            })),
        ];
        let column = |(name, values)| Column { name, values };
        let mut columns: Vec<Column<'_, JobSpec>> = COLUMNS.into_iter().zip(values).map(column).collect();
        if self.has_resources() {
            columns.extend(RESOURCE_COLUMNS.into_iter().zip(resources).map(column));
        }
        if self.has_tasks() {
            columns.extend(TASK_COLUMNS.into_iter().zip(tasks).map(column));
        }
        if self.has_observed() {
            columns.extend(OBSERVED_COLUMNS.into_iter().zip(observed).map(column));
        }
        for place in self.wishes() {
            let wish = Values::OptionalText(Box::new(move |job: &JobSpec| {
                Some(job.observed.as_deref()?.wishes()[place])
            }));
            columns.push(column((WISH_COLUMNS[place], wish)));
        }
        if self.has_held() {
            let held =
                Values::OptionalNumber(Box::new(|job: &JobSpec| Some(job.observed.as_deref()?.held_s)));
            columns.push(column((HELD_COLUMN, held)));
        }
        to_parquet(path, "jobs", &self.jobs, &columns)
    }
}
