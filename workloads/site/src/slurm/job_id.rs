//! Ids as `sacct` prints them: `1234`, a task of an array `1234_7`, tasks that never began `1234_[8-20%4]`, a component of a
//! heterogeneous job `1234+1`, a step of any of them `1234_7.batch`.

/// What an id says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId<'a> {
    /// The job, or the task of an array: `1234`, `1234_7`. Components of a heterogeneous job share it.
    pub job: &'a str,
    /// Which component of a heterogeneous job it is.
    pub component: Option<u32>,
    /// Whether the row is of a step, whose job has a row of its own.
    pub is_step: bool,
    /// Whether the row stands for tasks of an array that have not begun.
    pub is_rest_of_array: bool,
}

/// Reads an id; none where the text is none of Slurm's.
#[must_use]
pub fn job_id(text: &str) -> Option<JobId<'_>> {
    let (id, is_step) = match text.split_once('.') {
        Some((id, _)) => (id, true),
        None => (text, false),
    };
    let (id, component) = match id.split_once('+') {
        Some((id, number)) => (id, Some(number.parse().ok()?)),
        None => (id, None),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (number, task) = match id.split_once('_') {
        Some((number, task)) => (number, Some(task)),
        None => (id, None),
    };
    let is_rest_of_array = task.is_some_and(|task| task.starts_with('['));
    if !is_number(number) || task.is_some_and(|task| !is_rest_of_array && !is_number(task)) {
        return None;
    }
    Some(JobId {
        job: id,
        component,
        is_step,
        is_rest_of_array,
    })
}

/// The name of an array whose tasks wait together, without their numbers: `4` of `4_[1-9%2]`; of others the name itself.
#[must_use]
pub fn whole(name: &str) -> &str {
    name.split_once("_[").map_or(name, |(array, _)| array)
}

/// The array of a task: `4` of `4_7`.
#[must_use]
pub fn array_of(name: &str) -> Option<&str> {
    name.split_once('_').map(|(array, _)| array)
}

/// Whether a text is the name of a job, of a task or of a component, and of nothing else that `scontrol` understands.
#[must_use]
pub fn is_name(name: &str) -> bool {
    job_id(name).is_some_and(|id| !id.is_step && !id.is_rest_of_array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_tasks_components_and_steps_are_told_apart() {
        let of = |text| job_id(text).map(|id| (id.job, id.component, id.is_step, id.is_rest_of_array));
        assert_eq!(of("1234"), Some(("1234", None, false, false)));
        assert_eq!(of("1234_7"), Some(("1234_7", None, false, false)));
        assert_eq!(of("1234_[8-20%4]"), Some(("1234_[8-20%4]", None, false, true)));
        assert_eq!(of("1234+1"), Some(("1234", Some(1), false, false)));
        assert_eq!(of("1234+1.0"), Some(("1234", Some(1), true, false)));
        assert_eq!(of("1234_7.batch"), Some(("1234_7", None, true, false)));
        for text in ["", "job-7", "12a", "1234+", "1234_", "_7", ".batch", "1234_x"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_those_of_jobs_tasks_and_components_alone() {
        assert!(["4", "4_7", "4+1"].into_iter().all(is_name));
        assert!(
            !["", "4.batch", "4_[1-9]", "11+0; reboot", "all"]
                .into_iter()
                .any(is_name)
        );
        assert_eq!(
            (whole("4_[1-9%2]"), whole("4_7"), array_of("4_7"), array_of("4")),
            ("4", "4_7", Some("4"), None)
        );
    }
}
