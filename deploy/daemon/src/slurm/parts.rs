//! Parts of heterogeneous jobs (`sbatch ... : ...`), which start together and by Slurm's own scheduler alone.
//!
//! The script holds none of them. One that is held for the daemon all the same, by an older script or by hand, has to be given
//! back: the daemon decides about none, so nobody else ever would.

use super::table::{MARK_FIELD, NODES_FIELD, NUM_JOB_FIELDS, REASON_FIELD, SQUEUE, fields, is_null};
use crate::slurm::mark::{Mark, is_held_by_user, shuns, wish};

/// Names of parts that are held for the daemon, as `LEADER+PART`, from what `squeue` was asked for. Lines that cannot be read are
/// none; who reads the jobs refuses them.
pub(super) fn held(jobs: &str) -> Vec<Named> {
    let part = |(row, line): (usize, &str)| {
        let (id, _) = line.split_once('|').filter(|(id, _)| id.contains('+'))?;
        let fields = fields::<NUM_JOB_FIELDS>(SQUEUE, row + 1, line).ok()?;
        let (state, priority, mark) = (fields[1], fields[2], fields[MARK_FIELD]);
        let is_ours = matches!(Mark::read(mark), Mark::Held { .. } | Mark::Decided { .. });
        let is_held = state == "PENDING" && priority == "0" && is_ours;
        (is_held && is_name(id)).then(|| Named {
            name: id.to_owned(),
            wish: Some(String::new()),
            shuns: None,
        })
    };
    jobs.lines().enumerate().filter_map(part).collect()
}

/// The name of an array whose tasks wait together, without their numbers: `4` of `4_[1-9%2]`.
pub(crate) fn whole(name: &str) -> &str {
    name.split_once("_[").map_or(name, |(array, _)| array)
}

/// The array of a task: `4` of `4_7`.
pub(super) fn whole_of(name: &str) -> Option<&str> {
    name.split_once('_').map(|(array, _)| array)
}

/// A job that is given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The nodes that its user named, as a list; none: no others stand in their place.
    pub wish: Option<String>,
    /// Those that he shuns, where the daemon shuns others for it.
    pub shuns: Option<String>,
}

/// A job that a daemon has marked as its own, and whether its user holds it.
fn of_daemon(name: &str, named: &str, mark: &str, reason: &str) -> Option<(bool, Named)> {
    let name = whole(name);
    let is_ours = is_name(name) && !matches!(Mark::read(mark), Mark::None | Mark::Off);
    let [named, wish] = [named, wish(mark, named)].map(|text| if is_null(text) { "" } else { text });
    let job = Named {
        name: name.to_owned(),
        wish: (wish != named).then(|| wish.to_owned()),
        shuns: shuns(mark).map(str::to_owned),
    };
    is_ours.then_some((is_held_by_user(mark, reason), job))
}

/// What a daemon that held jobs has left behind where none are held: jobs that wait, held for it or with nodes that it named,
/// whatever they are. Whom his user holds stays so.
pub(super) fn left_over(jobs: &str) -> Vec<Named> {
    let job = |(row, line): (usize, &str)| {
        let fields = fields::<NUM_JOB_FIELDS>(SQUEUE, row + 1, line).ok()?;
        let (name, state, priority, named) = (fields[0], fields[1], fields[2], fields[NODES_FIELD]);
        let (is_users, job) = of_daemon(name, named, fields[MARK_FIELD], fields[REASON_FIELD])?;
        let is_pinned = !is_null(named) && job.wish.is_some() || job.shuns.is_some();
        (state == "PENDING" && !is_users && (priority == "0" || is_pinned)).then_some(job)
    };
    jobs.lines().enumerate().filter_map(job).collect()
}

/// The jobs that a daemon has marked as its own, from lines of name, nodes by name, mark and reason: those that their users hold, and
/// the others.
pub(super) fn ours(jobs: &str) -> (Vec<Named>, Vec<Named>) {
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

/// Whether a text is the name of a job, of a task or of a part, and of nothing else that `scontrol` understands.
pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || c == '_' || c == '+';
    text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, state: &str, priority: u32, mark: &str) -> String {
        format!(
            "{id}|{state}|{priority}|gres:gpu:1|N/A|N/A|N/A|1|1|||{mark}|JobHeldAdmin|10:00|1795000000|N/A|0|OK|0|(null)|(null)|\
             (null)|(null)|main|u1|(null)|\n"
        )
    }

    #[test]
    fn parts_that_wait_for_nobody_are_found_and_no_others() {
        let text = [
            line("7", "PENDING", 0, "pleach:held"),
            line("8+0", "PENDING", 0, "pleach:held tries=0 until=0"),
            line("8+1", "PENDING", 0, "pleach:decided at=5 tries=0"),
            line("9+0", "PENDING", 12, "pleach:held"),
            line("9+1", "PENDING", 0, "(null)"),
            line("10+0", "RUNNING", 0, "pleach:held"),
            line("11+0; reboot", "PENDING", 0, "pleach:held"),
        ];
        let names = |jobs: Vec<Named>| jobs.into_iter().map(|job| job.name).collect::<Vec<_>>();
        assert_eq!(names(held(&text.concat())), ["8+0", "8+1"]);
        assert_eq!(names(left_over(&text.concat())), ["7", "8+0", "8+1"]);
        let users =
            line("12", "PENDING", 0, "pleach:decided;at=5;tries=0").replace("JobHeldAdmin", "JobHeldUser");
        let pinned =
            line("13", "PENDING", 9, "pleach:decided;at=5;tries=0;req=g2").replace("|1|1|||", "|1|1||g1|");
        let apart = line("14", "PENDING", 9, "pleach:apart;exc=g3");
        let found = left_over(&(users + &pinned + &apart));
        assert_eq!(names(found.clone()), ["13", "14"]);
        assert_eq!(
            (found[0].wish.as_deref(), found[1].shuns.as_deref()),
            (Some("g2"), Some("g3"))
        );
        assert!(held("12+0|PENDING|0|").is_empty() && held("slurm_load_jobs error").is_empty());
    }
}
