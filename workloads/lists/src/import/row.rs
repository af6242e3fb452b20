//! The facts that nearly every list has, read by one routine: id, submission, gang, run time, estimate, tenant, user.
//!
//! Refused: times and run times that are no finite numbers or out of range, gangs that are no whole number, names that
//! are not printable. Mended and counted: run times below a second.

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::Resources;

use super::draft::{Draft, RawRow};
use crate::Error;
use crate::table::Table;
use crate::{Outcome, RUN_TIME_S_MAX, RUN_TIME_S_MIN, SUBMIT_S_MAX};

/// Shortest run time of a published list, s; shorter ones are raised to it.
const RUN_TIME_S_FLOOR: f64 = 1.0;
const NOT_SAID: &str =
    "run time not in the list: the middle of the application's published size category over its GPUs";
pub(super) const RAISED: &str = "run time below 1 s: raised to 1 s";

/// Where the facts of a job stand in a table; absent columns are `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    /// Name of the job; the row's number from 0 where absent.
    pub id: Option<usize>,
    pub submit: Option<usize>,
    pub num_gpus: Option<usize>,
    pub run_time: Option<usize>,
    /// GPU seconds of the job, where the list says no run time.
    pub gpu_s: Option<f64>,
    pub estimate: Option<usize>,
    pub tenant: Option<usize>,
    pub user: Option<usize>,
    /// Length of the list's unit of time, s.
    pub unit_s: f64,
}

impl Columns {
    /// Columns by name, in the order id, submission, gang, run time; times in seconds, nothing else known.
    pub(super) fn named(table: &Table, [id, submit, num_gpus, run_time]: [&str; 4]) -> Columns {
        Columns {
            id: table.column(id),
            submit: table.column(submit),
            num_gpus: table.column(num_gpus),
            run_time: table.column(run_time),
            gpu_s: None,
            estimate: None,
            tenant: None,
            user: None,
            unit_s: 1.0,
        }
    }

    /// The job of the present row, of the first class and on whole GPUs.
    pub(super) fn read(&self, table: &Table, draft: &mut Draft) -> Result<RawRow, Error> {
        let submit = self.submit(table)?;
        let num_gpus = table.count(self.num_gpus, "remove jobs without GPUs")?;
        if num_gpus == 0 {
            return Err(table.refuse(self.num_gpus, "1 or more", "remove jobs without GPUs"));
        }
        let run_time_s = match self.gpu_s {
            Some(gpu_s) => {
                draft.mend(NOT_SAID);
                gpu_s / f64::from(num_gpus)
            }
            None => self.run_time_s(table, draft)?,
        };
        let unit_s = self.unit_s;
        let fix = "give the time limit or leave it empty";
        let (least, most) = (RUN_TIME_S_MIN / unit_s, RUN_TIME_S_MAX / unit_s);
        let estimate_s = table.optional(self.estimate, least, most, fix)?;
        let tenant = table.optional_name(self.tenant)?;
        Ok(RawRow {
            line: table.line(),
            id: self.id(table, draft)?,
            submit,
            num_gpus,
            run_time_s,
            estimate_s: estimate_s.map(|estimate| estimate * unit_s),
            tenant: tenant.and_then(|name| draft.tenant(&name)),
            class: 0,
            user: table.optional_name(self.user)?,
            outcome: Outcome::Unknown,
            resources: Resources::WHOLE_GPU,
            observed: None,
        })
    }

    fn id(&self, table: &Table, draft: &Draft) -> Result<String, Error> {
        match self.id {
            Some(_) => Ok(table.name(self.id)?),
            None => Ok(draft.account.rows_read.saturating_sub(1).to_string()),
        }
    }

    fn submit(&self, table: &Table) -> Result<Time, Error> {
        let most = SUBMIT_S_MAX / self.unit_s;
        let submit = table.number(self.submit, -most, most, unit_fix(self.unit_s))?;
        Ok(Time::from_secs_f64(submit * self.unit_s))
    }

    fn run_time_s(&self, table: &Table, draft: &mut Draft) -> Result<f64, Error> {
        let most = RUN_TIME_S_MAX / self.unit_s;
        let run_time = table.number(self.run_time, 0.0, most, unit_fix(self.unit_s))?;
        Ok(raised(run_time * self.unit_s, draft))
    }
}

/// A run time of at least a second; raising one is counted.
pub(super) fn raised(run_time_s: f64, draft: &mut Draft) -> f64 {
    if run_time_s < RUN_TIME_S_FLOOR {
        draft.mend(RAISED);
        return RUN_TIME_S_FLOOR;
    }
    run_time_s
}

fn unit_fix(unit_s: f64) -> &'static str {
    if unit_s == 1.0 {
        "give seconds"
    } else if unit_s < 1.0 {
        "give milliseconds"
    } else {
        "give minutes"
    }
}
