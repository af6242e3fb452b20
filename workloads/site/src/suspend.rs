//! What holds the pods of a job until it is their turn: the object that makes them, where that can be suspended, else a gate of each.
//!
//! A Job that is suspended has no pods, so that none of them counts in a quota, and its deadline does not run. Objects that another
//! program suspends are left to it, and so are Jobs that their user suspends.

use crate::names;

/// An object that makes pods and has a field `suspend`.
#[derive(Clone, Copy)]
pub struct Maker<'a> {
    /// Whether it has a label, or an annotation of the same name.
    pub has: &'a dyn Fn(&str) -> bool,
    /// Kind of the object that controls it; none where no object does.
    pub controller: Option<&'a str>,
    /// The program that makes its pods (`spec.managedBy`); none: the Job controller.
    pub managed_by: Option<&'a str>,
    /// What `suspend` says.
    pub is_suspended: bool,
}

/// How an object is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Not suspended: it may be.
    Open,
    /// Suspended by us.
    Ours,
    /// By others, or not by `suspend`: its pods have gates.
    Theirs,
}

impl Maker<'_> {
    /// How it is held.
    ///
    /// # Source
    /// Kueue suspends what has its label; a CronJob leaves `suspend` of its Jobs alone, which JobSets and operators do not.
    #[must_use]
    pub fn held(&self) -> Held {
        let is_free = self.controller.is_none_or(|kind| kind == "CronJob")
            && self.managed_by.is_none_or(|name| name == names::JOB_CONTROLLER)
            && !(self.has)(names::KUEUE_QUEUE);
        match ((self.has)(names::SUSPENDED), self.is_suspended) {
            (true, true) => Held::Ours,
            (_, false) if is_free => Held::Open,
            _ => Held::Theirs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_one_else_suspends_is_ours() {
        let held = |words: &[&str], controller, managed_by, is_suspended| {
            let maker = Maker {
                has: &|name| words.contains(&name),
                controller,
                managed_by,
                is_suspended,
            };
            maker.held()
        };
        assert_eq!(held(&[], None, None, false), Held::Open);
        assert_eq!(held(&[], Some("CronJob"), None, false), Held::Open);
        assert_eq!(
            held(&[], None, Some("kubernetes.io/job-controller"), false),
            Held::Open
        );
        assert_eq!(held(&[names::SUSPENDED], None, None, true), Held::Ours);
        assert_eq!(held(&[], None, None, true), Held::Theirs, "its user's");
        assert_eq!(
            held(&[names::SUSPENDED], None, None, false),
            Held::Open,
            "it was let go by hand"
        );
        assert_eq!(held(&[names::KUEUE_QUEUE], None, None, false), Held::Theirs);
        assert_eq!(held(&[], Some("JobSet"), None, false), Held::Theirs);
        assert_eq!(
            held(&[], None, Some("kueue.x-k8s.io/multikueue"), false),
            Held::Theirs
        );
    }
}
