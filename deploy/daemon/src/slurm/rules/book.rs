//! Rules and sums of a site, gathered from its jobs one after the other.

use std::collections::BTreeMap;

use crate::snapshot::{Allowance, Rule, Site, Terms};

/// Rules and sums while they are gathered, each once.
#[derive(Debug, Default)]
pub(crate) struct Book {
    site: Site,
    rules: BTreeMap<(String, String), u32>,
    allowances: BTreeMap<String, u32>,
    terms: Terms,
}

impl Book {
    /// Nodes are closed to the present job.
    pub(super) fn closes(&mut self, closed: &str, why: String) {
        if closed.is_empty() {
            return;
        }
        let rules = &mut self.site.rules;
        let row = *self
            .rules
            .entry((closed.to_owned(), why))
            .or_insert_with_key(|(closed, why)| {
                rules.push(Rule {
                    closed: closed.clone(),
                    why: why.clone(),
                });
                rules.len() as u32 - 1
            });
        self.terms.rules.push(row);
    }

    /// The present job takes some of a sum.
    pub(super) fn takes(&mut self, what: &str, left: u64, takes: u64) {
        if takes == 0 {
            return;
        }
        let allowances = &mut self.site.allowances;
        let row = *self.allowances.entry(what.to_owned()).or_insert_with_key(|what| {
            allowances.push(Allowance {
                what: what.clone(),
                left,
            });
            allowances.len() as u32 - 1
        });
        self.terms.takes.push((row, takes));
    }

    /// The terms of the present job, which is done with.
    pub(super) fn terms(&mut self) -> Terms {
        let mut terms = std::mem::take(&mut self.terms);
        terms.rules.sort_unstable();
        terms.rules.dedup();
        // A job that names a licence twice takes both.
        terms.takes.sort_unstable();
        terms.takes.dedup_by(|(row, takes), (before, sum)| {
            let is_same = row == before;
            *sum = sum.saturating_add(if is_same { *takes } else { 0 });
            is_same
        });
        terms
    }

    pub(super) fn site(self) -> Site {
        self.site
    }
}
