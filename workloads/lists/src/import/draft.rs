//! What a format's reader hands over: rows on the list's own clock, the names in them, and the cluster that they belong to.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_tables::Account;

use crate::Error;
use crate::table::Table;
use crate::{JobSpec, Observed, Outcome};

/// Most classes that a list may name. *Assumed*: the largest list here names some dozens.
const NUM_CLASSES_MAX: usize = 10_000;

/// How the GPUs are divided among tenants.
pub(crate) enum Tenancy {
    /// The cluster's tenants are those of the list, matched by name.
    ByName,
    /// The cluster is shared out among the tenants that the list names; the weights are GPUs where known.
    Shared(Vec<(String, u32)>),
    /// The list names no tenants.
    Single,
}

/// A row as read, on the list's own clock.
pub(crate) struct RawRow {
    pub line: u64,
    pub id: String,
    pub submit: Time,
    pub num_gpus: u32,
    pub run_time_s: f64,
    pub estimate_s: Option<f64>,
    /// Index into [`Draft::tenants`].
    pub tenant: Option<u32>,
    pub class: u16,
    pub user: Option<String>,
    pub outcome: Outcome,
    pub resources: Resources,
    pub observed: Option<Box<Observed>>,
}

impl RawRow {
    /// As a job of a tenant of the cluster, on a clock that starts at `origin`.
    pub(super) fn into_job(self, tenant: u16, origin: Time) -> JobSpec {
        JobSpec {
            id: self.id,
            submit: self.submit - origin,
            num_gpus: self.num_gpus,
            run_time_s: self.run_time_s,
            estimate_s: self.estimate_s,
            tenant,
            class: self.class,
            user: self.user,
            outcome: self.outcome,
            resources: self.resources,
            observed: self.observed.map(|observed| Box::new(observed.since(origin))),
        }
    }
}

/// The cluster that a list belongs to.
pub(crate) struct Site {
    pub cluster: ClusterSpec,
    pub classes: Vec<ModelClass>,
    pub tenancy: Tenancy,
    pub notes: Vec<String>,
}

/// Settles the cluster once the rows are selected, from them and the names of their classes.
pub(crate) type SiteOf = Box<dyn Fn(&[RawRow], &[String]) -> Site>;

/// Rules that mended a row: its line and the rule.
pub(super) type Mended = Vec<(u64, &'static str)>;

/// What a format's reader hands over.
pub(crate) struct Draft {
    pub name: String,
    pub rows: Vec<RawRow>,
    /// Tenant names in order of appearance.
    pub tenants: Vec<String>,
    tenant_index: BTreeMap<String, u32>,
    /// Class names in order of appearance.
    pub(super) classes: Vec<String>,
    class_index: BTreeMap<String, u16>,
    /// Rows read, and those that the reader left out.
    pub account: Account,
    /// Rules that mended a row: position in [`Draft::rows`] and the rule.
    pub(super) mended: Vec<(usize, &'static str)>,
    /// The cluster, from the rows that are left (sizes are estimated from them where none is published).
    pub site: SiteOf,
    /// When the list's own clock says 0, s since 1970 in UTC; none where its times are no dates.
    pub clock_0_unix_s: Option<f64>,
    /// This project's own file: what does not fit is an error, and time 0 is time 0.
    pub strict: bool,
}

impl Draft {
    pub(crate) fn new(path: &Path, site: SiteOf) -> Draft {
        Draft {
            name: name_of(path),
            rows: Vec::new(),
            tenants: Vec::new(),
            tenant_index: BTreeMap::new(),
            classes: Vec::new(),
            class_index: BTreeMap::new(),
            account: Account::default(),
            mended: Vec::new(),
            site,
            clock_0_unix_s: None,
            strict: false,
        }
    }

    /// Index of a tenant's name; none for an empty one.
    pub(crate) fn tenant(&mut self, name: &str) -> Option<u32> {
        if name.is_empty() {
            return None;
        }
        if let Some(index) = self.tenant_index.get(name) {
            return Some(*index);
        }
        let index = self.tenants.len() as u32;
        self.tenants.push(name.to_owned());
        self.tenant_index.insert(name.to_owned(), index);
        Some(index)
    }

    /// Index of the class that the present row of `table` names.
    pub(crate) fn class(&mut self, table: &Table, column: Option<usize>) -> Result<u16, Error> {
        let name = table.name(column)?;
        let fix = "is the right column read as the kind of job?";
        self.class_of(&name)
            .ok_or_else(|| table.refuse(column, "at most 10,000 different names", fix))
    }

    /// Index of a class's name; none where there are too many.
    pub(crate) fn class_of(&mut self, name: &str) -> Option<u16> {
        if let Some(index) = self.class_index.get(name) {
            return Some(*index);
        }
        if self.classes.len() == NUM_CLASSES_MAX {
            return None;
        }
        let index = self.classes.len() as u16;
        self.classes.push(name.to_owned());
        self.class_index.insert(name.to_owned(), index);
        Some(index)
    }

    /// Notes that the row which is read now, and pushed next, is mended. It counts if the row becomes a job.
    pub(crate) fn mend(&mut self, rule: &'static str) {
        self.mended.push((self.rows.len(), rule));
    }

    /// Puts the rows into this order: places of the present ones.
    pub(super) fn reorder(&mut self, order: &[usize]) {
        let mut rows: Vec<Option<RawRow>> = std::mem::take(&mut self.rows).into_iter().map(Some).collect();
        let mut new_place = vec![0; rows.len()];
        for (place, before) in order.iter().enumerate() {
            new_place[*before] = place;
            self.rows.extend(rows[*before].take());
        }
        for (place, _) in &mut self.mended {
            *place = new_place.get(*place).copied().unwrap_or(*place);
        }
    }

    /// Counts a row that is left out.
    pub(crate) fn exclude(&mut self, rule: &str) {
        self.account.leave_out(rule, 1);
        while self
            .mended
            .last()
            .is_some_and(|(position, _)| *position == self.rows.len())
        {
            self.mended.pop();
        }
    }
}

/// Endings that are no part of a workload's name.
const EXTENSIONS: [&str; 6] = ["csv", "json", "parquet", "swf", "trace", "tsv"];

/// The file's name without `.gz` and its extension.
pub(crate) fn name_of(path: &Path) -> String {
    let name = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = name
        .rsplit_once('.')
        .filter(|(_, ending)| EXTENSIONS.contains(ending))
        .map_or(name, |(stem, _)| stem);
    name.to_owned()
}
