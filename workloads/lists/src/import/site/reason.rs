//! Why a row of a site's accounting is no job.

/// Why a row is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    /// In words.
    pub rule: &'static str,
    /// The cell that cannot be read; empty where it is not about one.
    pub cell: String,
}

impl Reason {
    pub(super) fn cell(rule: &'static str, cell: &str) -> Reason {
        Reason {
            rule,
            cell: cell.trim().to_owned(),
        }
    }
}

impl From<&'static str> for Reason {
    fn from(rule: &'static str) -> Reason {
        Reason {
            rule,
            cell: String::new(),
        }
    }
}
