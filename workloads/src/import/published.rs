//! Published lists that are known by their header, each a mapping in the folder `mappings`: what the columns mean, the cluster that the
//! jobs ran on, what the list does not say.
//!
//! A cell of such a list that cannot be used is refused with its place: the list is known, so the cell is wrong. Lists whose rows need
//! more than a mapping says (`by_code`) have a reader of their own and keep their header and cluster here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use pleach_scheduler::cluster_spec::ClusterSpec;
use serde::{Deserialize, Serialize};

use super::cluster_of_list::{NODES_PER_RACK, Nodes, Plan, cluster_of, sized_for};
use super::row::Columns;
use super::site::{Mapping, Role};
use super::{Draft, ImportOptions, RawRow};
use crate::Outcome;
use crate::error::Error;
use crate::table::Table;

/// Where sources cut service times, s.
const CUT_S: f64 = 172_800.0;
const CUT: &str = "run time cut at 48 h by the source and not known otherwise: kept at 172,800 s";

/// What a mapping says of a published list beside its columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Published {
    /// Whether its rows have a reader of their own.
    pub by_code: bool,
    /// How ids start, where another list has the same header.
    pub ids_start: String,
    /// Preset of links of its site.
    pub site_fabric: Option<String>,
    /// How all jobs ended, where no column says it.
    pub outcome: Outcome,
    /// GPUs for each of those that the column counts.
    pub gpus_each: u32,
    /// Whether jobs without GPUs are left out; else they are refused.
    pub leave_out_without_gpus: bool,
    /// What stands for a tenant or user that is not named.
    pub hidden: Vec<String>,
    /// Columns of run times that the source cut at 48 h, and the column that says where with a 1; empty: all that are as long.
    pub cut: BTreeMap<String, String>,
    /// What the list does not say.
    pub notes: Vec<String>,
    /// Tenants of a known size, GPUs.
    pub tenants: Vec<(String, u32)>,
    /// GPU hours of jobs by class, from and to, where no column says how long they ran: the middle is taken.
    pub gpu_hours: BTreeMap<String, (f64, f64)>,
    /// Where its jobs ran.
    pub cluster: Fleet,
    /// The same where virtual clusters are walls.
    pub walled: Option<Fleet>,
}

impl Default for Published {
    fn default() -> Published {
        Published {
            by_code: false,
            ids_start: String::new(),
            site_fabric: None,
            outcome: Outcome::Unknown,
            gpus_each: 1,
            leave_out_without_gpus: false,
            hidden: Vec::new(),
            cut: BTreeMap::new(),
            notes: Vec::new(),
            tenants: Vec::new(),
            gpu_hours: BTreeMap::new(),
            cluster: Fleet::default(),
            walled: None,
        }
    }
}

/// The cluster of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fleet {
    /// Whether its size was not published: so many of its nodes as the jobs need.
    pub sized: bool,
    /// Where it comes from.
    pub note: String,
    /// Names of GPU types, and their memory, GiB.
    pub gpu_types: Vec<(String, f64)>,
    /// Its nodes.
    pub nodes: Vec<FleetNodes>,
}

/// Equal nodes of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetNodes {
    /// How many.
    pub count: u32,
    /// GPUs in each.
    pub gpus_per_node: u32,
    /// Their type.
    pub gpu_type: String,
    /// Cores of each; 0 = not published.
    #[serde(default)]
    pub cpu_cores: f64,
    /// Memory of each, GiB; 0 = not published.
    #[serde(default)]
    pub memory_gib: f64,
    /// Nodes of a rack.
    #[serde(default = "rack")]
    pub nodes_per_rack: u32,
}

fn rack() -> u32 {
    NODES_PER_RACK
}

impl Fleet {
    fn nodes(&self) -> Vec<Nodes<'_>> {
        let nodes = self.nodes.iter().map(|nodes| Nodes {
            count: nodes.count,
            gpus_per_node: nodes.gpus_per_node,
            gpu_type: &nodes.gpu_type,
            cpu_cores: nodes.cpu_cores,
            memory_gib: nodes.memory_gib,
            nodes_per_rack: nodes.nodes_per_rack,
        });
        nodes.collect()
    }

    fn gpu_types(&self) -> Vec<(&str, f64)> {
        self.gpu_types.iter().map(|(name, memory_gib)| (name.as_str(), *memory_gib)).collect()
    }

    /// The cluster.
    pub(super) fn cluster(&self) -> ClusterSpec {
        cluster_of(&self.gpu_types(), &self.nodes())
    }
}

impl Published {
    /// What is wrong, a sentence each.
    pub(super) fn faults(&self) -> Vec<String> {
        let fleets = [Some(&self.cluster), self.walled.as_ref()].into_iter().flatten();
        let mut faults = Vec::new();
        for fleet in fleets.filter(|_| !self.by_code) {
            let is_right = match fleet.sized {
                true => fleet.nodes.len() == 1 && fleet.gpu_types.len() == 1,
                false => fleet.cluster().validate().is_ok(),
            };
            let has_gpus = fleet.nodes.iter().all(|nodes| nodes.gpus_per_node > 0);
            if !is_right || !has_gpus {
                faults.push("published.cluster: allowed are GPU types and nodes that have them; one of each where it is sized".into());
            }
        }
        if self.gpus_each == 0 || self.gpu_hours.values().any(|(from, to)| !(*from > 0.0 && *to >= *from && *to <= 1e6)) {
            faults.push("published.gpus_each, gpu_hours: allowed are numbers above 0".into());
        }
        faults
    }

    /// Where its jobs run, for the options.
    pub(super) fn plan(&self, options: &ImportOptions, has_tenants: bool) -> Plan {
        let fleet = match &self.walled {
            Some(walled) if options.virtual_clusters => walled.clone(),
            _ => self.cluster.clone(),
        };
        let mut plan = match fleet.sized {
            true => Plan::sized(Box::new(move |rows| sized_for(rows, fleet.gpu_types()[0], fleet.nodes()[0]))),
            false => Plan::of(fleet.cluster(), &fleet.note),
        };
        plan.tenants = has_tenants.then(|| self.tenants.clone());
        plan.notes.clone_from(&self.notes);
        plan
    }
}

/// The mappings of this crate by name; the most special header first.
pub(super) static LISTS: LazyLock<Vec<(&'static str, Mapping)>> = LazyLock::new(|| {
    let texts: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/mappings.rs"));
    let read = |(name, text): &(&'static str, &str)| match Mapping::of_text(name, text) {
        Ok(mapping) => (*name, mapping),
        Err(fault) => panic!("{fault}"),
    };
    texts.iter().map(read).collect()
});

/// The mapping of a list of this crate.
pub(super) fn mapping_of(name: &str) -> Option<&'static Mapping> {
    LISTS.iter().find(|(known, _)| *known == name).map(|(_, mapping)| mapping)
}

/// What is published of a list that has a reader of its own, and an open table of it.
pub(super) fn open(name: &str, path: &Path) -> Result<(Table, &'static Published), Error> {
    static NONE: LazyLock<Published> = LazyLock::new(Published::default);
    let mapping = mapping_of(name);
    let names: Vec<&str> = mapping.and_then(|of| of.headers.first()).into_iter().flatten().map(String::as_str).collect();
    let published = mapping.and_then(|mapping| mapping.published.as_ref());
    Ok((Table::open(path, &names)?, published.unwrap_or(&NONE)))
}

/// The list with such a header, and the second line of the file where it is known. Of several headers the longest counts.
pub(super) fn of_header(names: &[String], second: Option<&str>) -> Option<&'static str> {
    let has = |wanted: &Vec<String>| wanted.iter().all(|name| names.iter().any(|found| found.trim() == name));
    let known = LISTS.iter().flat_map(|(name, mapping)| {
        let start = mapping.published.as_ref().map_or("", |published| published.ids_start.as_str());
        mapping.headers.iter().map(move |header| (header, start, *name))
    });
    let fits = known.filter(|(header, start, _)| {
        has(header) && (start.is_empty() || second.is_some_and(|row| row.starts_with(start)))
    });
    let best = fits.max_by_key(|(header, start, _)| (header.len(), !start.is_empty()));
    best.map(|(_, _, name)| name)
}

/// Reads a list by its mapping.
pub(super) fn read(path: &Path, mapping: &Mapping, published: &Published, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &[])?;
    let is_there = |header: &&Vec<String>| header.iter().all(|name| table.column(name).is_some());
    if mapping.headers.iter().find(is_there).is_none() {
        let names = mapping.headers.first().into_iter().flatten();
        table = Table::open(path, &names.map(String::as_str).collect::<Vec<_>>())?;
    }
    let has = |role: Role| mapping.columns.contains_key(&role);
    let mut draft = Draft::new(path, published.plan(options, has(Role::Tenant)).site(options));
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
        column.filter(|_| !self.published.hidden.iter().any(|word| word == self.table.text(column)))
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
            return Err(table.refuse(columns.id, &allowed, "is this another list?").into());
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
            return Err(self.table.refuse(class, &names.join(", "), fix).into());
        };
        Ok(Some(3600.0 * (from * to).sqrt()))
    }

    fn outcome(&self) -> Result<Outcome, Error> {
        if !self.mapping.columns.contains_key(&Role::State) {
            return Ok(self.published.outcome);
        }
        let state = self.column(Role::State);
        if let Some(fate) = self.mapping.states.get(self.table.text(state)) {
            return Ok(fate.outcome());
        }
        let words = self.mapping.states.keys().filter(|word| !word.is_empty());
        let mut words: Vec<&str> = words.map(String::as_str).collect();
        words.extend(self.mapping.states.contains_key("").then_some("nothing"));
        Err(self.table.refuse(state, &words.join(", "), "map other words to these").into())
    }
}

#[cfg(test)]
#[path = "published_tests.rs"]
mod tests;
