//! What was decided about a pod, as its annotation keeps it: all that a controller which begins anew has to know.

use serde::{Deserialize, Serialize};

/// Longest text that is read, bytes: what the API server allows for all annotations of an object.
const TEXT_MAX: usize = 256 << 10;

/// Most pods of one gang: more than any list of pods has.
const PODS_MAX: u64 = 1 << 17;

/// The annotation [`crate::names::DECIDED`], JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// When the pod was let go, Unix time, s.
    pub at_s: i64,
    /// Where it goes: a unit of [`crate::node::Unit`].
    pub seat: String,
    /// Where its whole gang goes: units, and pods on each. A release that was cut short is finished with it.
    pub seats: Vec<(String, u32)>,
    /// Name of the policy.
    #[serde(default)]
    pub by: String,
}

impl Decided {
    /// Reads an annotation; none where somebody else wrote it.
    #[must_use]
    pub fn read(text: &str) -> Option<Decided> {
        if text.len() > TEXT_MAX {
            return None;
        }
        let mark: Decided = serde_json::from_str(text).ok()?;
        // Users can write annotations: what is counted from one has a bound.
        (mark.num_pods() <= PODS_MAX).then_some(mark)
    }

    /// Pods that the seats are for.
    #[must_use]
    pub fn num_pods(&self) -> u64 {
        self.seats.iter().map(|(_, num)| u64::from(*num)).sum()
    }

    /// The text of the annotation.
    #[must_use]
    pub fn text(&self) -> String {
        // Strings and numbers always have a JSON text.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_survives_its_text_and_strange_texts_are_none() {
        let mark = Decided {
            at_s: 7,
            seat: "n1".into(),
            seats: vec![("n1".into(), 2), ("n2".into(), 1)],
            by: "tree".into(),
        };
        assert_eq!(Decided::read(&mark.text()), Some(mark));
        let huge = r#"{"at_s":1,"seat":"n","seats":[["n",4000000000]]}"#;
        for text in [
            "",
            "{}",
            "[]",
            "{\"at_s\":\"x\"}",
            huge,
            &" ".repeat(TEXT_MAX + 1),
        ] {
            assert_eq!(Decided::read(text), None);
        }
    }
}
