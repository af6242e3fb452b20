//! Rows of a table, by a mapping: what `sacct -P` prints, or any export with a header.

use std::path::Path;

use pleach_tables::clock::{self, TimeFormat};

use super::Mapping;
use super::role::Role;
use super::row::{Facts, RAGGED, Reader};
use super::taken::Taken;
use crate::Error;
use crate::table::{Table, shorten};
use pleach_site::slurm::is_nothing;

const NAME_CUT: &str = "a line break in its name: its lines are put together";

/// Reads the rows of a table; what is none goes to `taken` with its reason.
pub(super) fn read(
    path: &Path,
    mapping: &Mapping,
    reader: &mut Reader<'_>,
    taken: &mut Taken,
) -> Result<(), Error> {
    let mut table = Table::open_loosely(path, mapping.between())?;
    let column = |role: Role| mapping.columns.get(&role).and_then(|name| table.column(name));
    for (role, name) in &mapping.columns {
        if table.column(name).is_none() {
            let header = shorten(&table.header().join(","));
            let message = format!(
                "the mapping says {} = `{}`, and the header has {header}; name one of these columns there",
                role.word(),
                shorten(name)
            );
            return Err(table.error(name, message));
        }
    }
    let roles = Role::names().iter().map(|(role, _)| (*role, column(*role)));
    let columns: Vec<(Role, Option<usize>)> = roles.collect();
    let place = |wanted: Role| {
        columns
            .iter()
            .find(|(role, _)| *role == wanted)
            .and_then(|(_, column)| *column)
    };
    let (format, zone) = (
        TimeFormat::of(&mapping.time_format),
        clock::zone(&mapping.time_zone),
    );
    let (format, zone) = (format.unwrap_or(TimeFormat::Iso), zone.unwrap_or(clock::UTC));
    while table.next_row()? {
        taken.count_row()?;
        if !table.is_whole() {
            taken.leave_out(RAGGED);
            continue;
        }
        let text = |role: Role| table.text(place(role));
        let read = |text: &str| {
            // Numbers are read in whatever format: `SLURM_TIME_FORMAT=%s` prints some columns so.
            let number = || TimeFormat::Number(1).read(text, &zone).filter(|time| *time > 1e8);
            format.read(text, &zone).or_else(number)
        };
        let time = |role: Role| {
            let text = Some(text(role)).filter(|text| !is_nothing(text));
            text.and_then(read)
                .filter(|time| *time != 0.0 || !mapping.slurm_ids)
        };
        let unread = |role: Role| {
            let text = text(role);
            if is_nothing(text) || text == "0" || read(text).is_some() {
                ""
            } else {
                text
            }
        };
        let facts = Facts {
            id: text(Role::JobId),
            submit_s: time(Role::Submit),
            eligible_s: time(Role::Eligible),
            start_s: time(Role::Start),
            end_s: time(Role::End),
            unread: [Role::Submit, Role::Start, Role::End].map(unread),
            tells_starts: place(Role::Start).is_some(),
            run_time: text(Role::RunTime),
            time_limit: text(Role::TimeLimit),
            gpus: text(Role::Gpus),
            gpus_asked: text(Role::GpusAsked),
            num_nodes: text(Role::NumNodes),
            gpu_type: text(Role::GpuType),
            nodes: text(Role::Nodes),
            tenant: text(Role::Tenant),
            user: text(Role::User),
            class: text(Role::Class),
            state: text(Role::State),
            partition: text(Role::Partition),
            qos: text(Role::Qos),
            constraint: text(Role::Constraint),
            licences: text(Role::Licences),
        };
        match reader.row(table.line(), &facts) {
            Ok(mut row) => {
                if table.is_mended() {
                    row.mended.push(NAME_CUT);
                }
                taken.rows.push(row);
            }
            Err(reason) => taken.leave_out(reason),
        }
    }
    Ok(())
}
