//! What daemons of before have left behind that held jobs: jobs that are held for them, nodes that they named or shunned in the
//! place of their users'. It is given back, in the first rounds and by `hand-back`.

use std::collections::BTreeSet;

use pleach_site::slurm::{is_name, whole};

use super::feed::{Feed, Line, about, is_gone};
use super::table::{
    MARK_FIELD, NODES_FIELD, NUM_JOB_FIELDS, REASON_FIELD, SQUEUE, fields, is_null, more_fields,
};
use crate::error::Error;
use crate::slurm::command::Commands;
use crate::slurm::mark::{Mark, is_held_by_user, shuns, wish};

/// Jobs that are given back in one round, and with one batch of lines. *Ours*: a tenth of a second.
const PART: usize = 50;

/// A job that is given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The nodes that its user named, as a list; none: no others stand in their place.
    pub wish: Option<String>,
    /// Those that its user shuns, where a daemon made it shun others.
    pub shuns: Option<String>,
}

/// A job that a daemon has marked as its own, and whether its user holds it.
fn of_daemon(name: &str, named: &str, mark: &str, reason: &str) -> Option<(bool, Named)> {
    let name = whole(name);
    let is_ours = is_name(name) && Mark::read(mark) == Mark::Held;
    let [named, wish] = [named, wish(mark, named)].map(|text| if is_null(text) { "" } else { text });
    let job = Named {
        name: name.to_owned(),
        wish: (wish != named).then(|| wish.to_owned()),
        shuns: shuns(mark).map(str::to_owned),
    };
    is_ours.then_some((is_held_by_user(mark, reason), job))
}

/// Jobs of a look that wait and are held for a daemon or have nodes that it named. What its user holds stays so.
pub(super) fn left_over(jobs: &str) -> Vec<Named> {
    if !jobs.contains("pleach:") {
        return Vec::new();
    }
    let job = |(row, line): (usize, &str)| {
        let (_, line) = more_fields(row + 1, line).ok()?;
        let fields = fields::<NUM_JOB_FIELDS>(SQUEUE, row + 1, line).ok()?;
        let (name, state, priority, named) = (fields[0], fields[1], fields[2], fields[NODES_FIELD]);
        let (is_users, job) = of_daemon(name, named, fields[MARK_FIELD], fields[REASON_FIELD])?;
        let is_pinned = !is_null(named) && job.wish.is_some() || job.shuns.is_some();
        (state == "PENDING" && !is_users && (priority == "0" || is_pinned)).then_some(job)
    };
    let marked = |(_, line): &(usize, &str)| line.contains("pleach:");
    let jobs = jobs.lines().enumerate().filter(marked).filter_map(job);
    jobs.take(PART).collect()
}

/// The jobs that a daemon has marked as its own, from lines of name, nodes by name, mark and reason: those that their users hold, and
/// the others.
fn ours(jobs: &str) -> (Vec<Named>, Vec<Named>) {
    let job = |line: &str| {
        let fields: Vec<&str> = line.splitn(4, '|').collect();
        let [name, named, mark, reason] = fields[..] else {
            return None;
        };
        of_daemon(name, named, mark, reason)
    };
    let (of_users, others): (Vec<_>, Vec<_>) =
        jobs.lines().filter_map(job).partition(|(is_users, _)| *is_users);
    let named = |jobs: Vec<(bool, Named)>| jobs.into_iter().map(|(_, named)| named).collect();
    (named(of_users), named(others))
}

/// Gives jobs back to Slurm's own scheduler in their order, with the nodes that their users named; what was refused.
///
/// A node that cannot be lifted is no reason to keep a job waiting; its mark stays then, and it is given back again. Jobs are
/// released before their marks go: a daemon that ends between the two leaves a job that runs, with a stale mark that the next round
/// reads.
pub(super) fn give_back(
    (feed, commands): (&mut Feed, &Commands),
    jobs: &[Named],
    is_released: bool,
) -> Vec<String> {
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let wished = jobs
        .iter()
        .filter_map(|job| Line::wished(&job.name, job.wish.as_deref()?));
    let shunned = jobs
        .iter()
        .filter_map(|job| Line::shunned(&job.name, job.shuns.as_deref()?));
    let lines = wished.chain(shunned).collect();
    let release = Line::release_all(&names).filter(|_| is_released);
    let mut refused: Vec<String> = Vec::new();
    for lines in [lines, Vec::from_iter(release)] {
        match feed.carry_out(commands, &lines) {
            Ok(said) => refused.extend(said.into_iter().filter(|text| !is_gone(text))),
            Err(error) => return vec![error.to_string()],
        }
        commands.pulse.beat();
    }
    let stay: BTreeSet<&str> = refused.iter().filter_map(|text| about(text)).collect();
    let rest: Vec<&str> = names.into_iter().filter(|name| !stay.contains(name)).collect();
    // A mark that stays is read in the next round.
    let _ = feed.carry_out(commands, &Vec::from_iter(Line::unmark(&rest)));
    commands.pulse.beat();
    refused
}

/// Gives every job that is held for a daemon back, in the order of arrival: how many, and what was refused. What its user holds stays
/// held, without mark and nodes of a daemon's. Needs no policy and no state.
///
/// # Errors
/// A queue that cannot be read.
pub fn hand_back(commands: &Commands) -> Result<(u64, Vec<String>), Error> {
    let args = ["-h", "-a", "-t", "PENDING", "-S", "V,i", "-O"];
    let fields = "JobArrayID:|,ReqNodes:|,admin_comment:|,Reason:|";
    let text = commands.run(SQUEUE, &[&args, &[fields][..]].concat())?;
    let (of_users, jobs) = ours(&text);
    let (mut feed, mut refused) = (Feed::default(), Vec::new());
    for (jobs, is_released) in [(&of_users, false), (&jobs, true)] {
        for part in jobs.chunks(PART) {
            refused.extend(give_back((&mut feed, commands), part, is_released));
        }
    }
    let num = (of_users.len() + jobs.len()).saturating_sub(refused.len());
    Ok((num as u64, refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, state: &str, priority: u32, mark: &str) -> String {
        format!(
            "cpu=1|normal|N/A|N/A|{id}|{state}|{priority}|gres:gpu:1|N/A|N/A|N/A|1|1|||{mark}|JobHeldAdmin|10:00|1795000000|N/A|0|OK|0|\
             (null)|(null)|(null)|(null)|main|u1|(null)|\n"
        )
    }

    #[test]
    fn what_a_daemon_held_or_named_is_found_and_no_other_job() {
        let text = [
            line("7", "PENDING", 0, "pleach:held"),
            line("8+0", "PENDING", 0, "pleach:held tries=0 until=0"),
            line("9+0", "PENDING", 12, "pleach:held"),
            line("9+1", "PENDING", 0, "(null)"),
            line("10+0", "RUNNING", 0, "pleach:held"),
            line("11+0; reboot", "PENDING", 0, "pleach:held"),
            line("12", "PENDING", 0, "pleach:decided;at=5;tries=0").replace("JobHeldAdmin", "JobHeldUser"),
            line("13", "PENDING", 9, "pleach:decided;at=5;tries=0;req=g2").replace("|1|1|||", "|1|1||g1|"),
            line("14", "PENDING", 9, "pleach:apart;exc=g3"),
        ];
        let found = left_over(&text.concat());
        let names: Vec<&str> = found.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["7", "8+0", "13", "14"]);
        assert_eq!(
            (found[2].wish.as_deref(), found[3].shuns.as_deref()),
            (Some("g2"), Some("g3"))
        );
        assert!(left_over("slurm_load_jobs error").is_empty());
    }
}
