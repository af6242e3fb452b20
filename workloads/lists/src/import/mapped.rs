//! Rows of a published list, by its mapping. A cell that cannot be used is refused with its place: the list is known, so the cell is
//! wrong. Lists whose rows need more than a mapping says have a reader of their own.

use std::path::Path;

use super::published::Published;
use super::row::Columns;
use super::site::{Mapping, Role};
use super::{Draft, ImportOptions, RawRow};
use crate::Error;
use crate::Outcome;
use crate::table::Table;

/// Where sources cut service times, s.
const CUT_S: f64 = 172_800.0;
const CUT: &str = "run time cut at 48 h by the source and not known otherwise: kept at 172,800 s";

/// Reads a list by its mapping.
pub(super) fn read(
    path: &Path,
    mapping: &Mapping,
    published: &Published,
    options: &ImportOptions,
) -> Result<Draft, Error> {
    let mut table = Table::open(path, &[])?;
    let is_there = |header: &&Vec<String>| header.iter().all(|name| table.column(name).is_some());
    if mapping.headers.iter().find(is_there).is_none() {
        let names = mapping.headers.first().into_iter().flatten();
        table = Table::open(path, &names.map(String::as_str).collect::<Vec<_>>())?;
    }
    let has = |role: Role| mapping.columns.contains_key(&role);
    let plan = published.plan(options.virtual_clusters, has(Role::Tenant));
    let mut draft = Draft::new(path, plan.site(&options.cluster));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let row = Row {
            table: &table,
            mapping,
            published,
        };
        if let Some(row) = row.read(&mut draft)? {
            draft.rows.push(row);
        }
    }
    Ok(draft)
}

/// The present row of a table.
struct Row<'a> {
    table: &'a Table,
    mapping: &'a Mapping,
    published: &'a Published,
}

impl Row<'_> {
    /// The column of a role: of several the first that says something here.
    fn column(&self, role: Role) -> Option<usize> {
        let names = self.mapping.columns.get(&role)?;
        let mut last = None;
        for column in names.split('|').filter_map(|name| self.table.column(name)) {
            last = Some(column);
            if !self.table.text(last).is_empty() {
                break;
            }
        }
        last
    }

    /// Likewise, without what stands for nothing.
    fn named(&self, role: Role) -> Option<usize> {
        let column = self.column(role);
        column.filter(|_| {
            !self
                .published
                .hidden
                .iter()
                .any(|word| word == self.table.text(column))
        })
    }

    fn read(&self, draft: &mut Draft) -> Result<Option<RawRow>, Error> {
        let (table, published) = (self.table, self.published);
        let (class, run_time) = (self.column(Role::Class), self.column(Role::RunTime));
        let columns = Columns {
            id: self.column(Role::JobId),
            submit: self.column(Role::Submit),
            num_gpus: self.column(Role::Gpus),
            run_time,
            gpu_s: self.gpu_s(class)?,
            estimate: self.column(Role::TimeLimit),
            tenant: self.named(Role::Tenant),
            user: self.named(Role::User),
            unit_s: self.mapping.unit_s(),
        };
        if published.leave_out_without_gpus && table.text(columns.num_gpus) == "0" {
            draft.exclude("asks for no GPU");
            return Ok(None);
        }
        let mut row = columns.read(table, draft)?;
        if !row.id.starts_with(&published.ids_start) {
            let allowed = format!("an id that starts with `{}`", published.ids_start);
            return Err(table.refuse(columns.id, &allowed, "is this another list?"));
        }
        if let Some(flag) = run_time.and_then(|column| published.cut.get(table.header()[column].trim())) {
            let is_cut = match flag.is_empty() {
                true => row.run_time_s >= CUT_S,
                false => table.text(table.column(flag)) == "1",
            };
            if is_cut {
                draft.mend(CUT);
            }
        }
        row.num_gpus = row.num_gpus.saturating_mul(published.gpus_each);
        row.outcome = self.outcome()?;
        if class.is_some() {
            row.class = draft.class(table, class)?;
        }
        Ok(Some(row))
    }

    /// GPU seconds of a job by its class, where the list says no run times.
    fn gpu_s(&self, class: Option<usize>) -> Result<Option<f64>, Error> {
        let hours = &self.published.gpu_hours;
        if hours.is_empty() {
            return Ok(None);
        }
        let Some((from, to)) = hours.get(self.table.text(class)) else {
            let names: Vec<&str> = hours.keys().map(String::as_str).collect();
            let fix = "no size category is published for others, and the list has no run times";
            return Err(self.table.refuse(class, &names.join(", "), fix));
        };
        Ok(Some(3600.0 * (from * to).sqrt()))
    }

    fn outcome(&self) -> Result<Outcome, Error> {
        if !self.mapping.columns.contains_key(&Role::State) {
            return Ok(self.published.outcome);
        }
        let state = self.column(Role::State);
        if let Some(fate) = self.mapping.states.get(self.table.text(state)) {
            return Ok((*fate).into());
        }
        let words = self.mapping.states.keys().filter(|word| !word.is_empty());
        let mut words: Vec<&str> = words.map(String::as_str).collect();
        words.extend(self.mapping.states.contains_key("").then_some("nothing"));
        Err(self
            .table
            .refuse(state, &words.join(", "), "map other words to these"))
    }
}
