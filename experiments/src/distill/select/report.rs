//! What a search for a selector did: sizes and single heuristics on lists on which nothing was chosen.

use pleach_scheduler::selector::Selector;
use serde::Serialize;

use crate::distill::parts::{PartRow, in_words, markdown};
use crate::evaluate::stats::Ratio;

/// One of each size, before the report.
pub(super) struct Judged {
    pub(super) selector: Selector,
    /// On the lists of the race and of the choice.
    pub(super) objectives: [f64; 2],
    /// On the lists of the acceptance.
    pub(super) over_smaller: Option<Ratio>,
}

/// A selector of one size.
#[derive(Clone, Debug, Serialize)]
pub struct SizeRow {
    /// Leaves.
    pub leaves: usize,
    /// The heuristics that it names.
    pub rules: Vec<String>,
    /// Objective on the lists of the race, which found it.
    pub objective_of_race: f64,
    /// Objective on the lists of the choice.
    pub objective_of_choice: f64,
    /// On the lists of the acceptance: average JCT over that of the largest smaller selector that was accepted. None of the first.
    pub over_smaller: Option<Ratio>,
    /// Average JCT over that of the best heuristic of each part, geometric mean over the parts.
    pub jct: f64,
    /// The same part by part.
    pub parts: Vec<PartRow>,
}

/// A heuristic alone.
#[derive(Clone, Debug, Serialize)]
pub struct SingleRow {
    /// Its name.
    pub rule: String,
    /// As [`SizeRow::jct`].
    pub jct: f64,
    /// Whether the search was given it.
    pub is_offered: bool,
    /// As [`SizeRow::parts`].
    pub parts: Vec<PartRow>,
    /// The chosen selector's average JCT over its, part by part.
    pub selector_over_it: Vec<Option<Ratio>>,
    /// The same over all lists.
    pub selector_over_it_on_all: Option<Ratio>,
}

/// What a search for a selector did.
#[derive(Clone, Debug, Serialize)]
pub struct SelectReport {
    /// The rules that it was given.
    pub rules: Vec<String>,
    /// Most leaves.
    pub leaves_max: usize,
    /// Lists that were simulated in the race.
    pub simulations: u64,
    /// Lists of each part of acceptance and report; half as many of those twice and four times as long in the report.
    pub lists: usize,
    /// The rule that is best alone on the lists of the choice: what a larger selector has to beat.
    pub best_rule: String,
    /// One of each size, smallest first; the first has one leaf.
    pub sizes: Vec<SizeRow>,
    /// Place of the accepted one.
    pub chosen: usize,
    /// Every heuristic alone, the best over the parts of the report first.
    pub singles: Vec<SingleRow>,
}

impl SelectReport {
    /// Whether a selector of more than one leaf was accepted.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.chosen > 0
    }

    /// What was decided, in words.
    #[must_use]
    pub fn verdict(&self) -> String {
        let Some(found) = self.sizes.get(self.chosen).filter(|_| self.is_accepted()) else {
            return format!(
                "refused: no selector beats {} alone by more than luck; the result is that one rule",
                self.best_rule
            );
        };
        let over = found.over_smaller.as_ref().map_or_else(String::new, in_words);
        let smaller = self.sizes[..self.chosen]
            .iter()
            .rposition(|row| row.leaves < found.leaves);
        let before = match smaller {
            Some(0) | None => format!("{} alone", self.best_rule),
            Some(_) => "the accepted one with fewer leaves".to_string(),
        };
        format!(
            "accepted: {} leaves; {over} of the average JCT of {before}, on lists that it never met",
            found.leaves
        )
    }

    /// The table in Markdown: sizes, the best rule that was known before, the best in hindsight; then the differences in words.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut rows: Vec<(String, Vec<PartRow>)> = Vec::new();
        for (place, row) in self.sizes.iter().enumerate() {
            let mark = if place == self.chosen { " (chosen)" } else { "" };
            let name = match row.leaves {
                1 => format!("1 leaf: {}{mark}", row.rules.join(", ")),
                leaves => format!("{leaves} leaves{mark}"),
            };
            rows.push((name, row.parts.clone()));
        }
        if let Some(best) = self.singles.first() {
            rows.push((
                format!("{}, the best single one in hindsight", best.rule),
                best.parts.clone(),
            ));
        }
        let parts = rows.first().map_or(&[][..], |(_, parts)| parts).to_vec();
        let mut text = markdown(&parts, &rows);
        for row in &self.sizes[1..] {
            let over = row.over_smaller.as_ref().map_or_else(String::new, in_words);
            text.push_str(&format!(
                "\nAcceptance of {} leaves: {over} of the accepted one before it.\n",
                row.leaves
            ));
        }
        let shown = |row: &&SingleRow| {
            row.rule == self.best_rule || self.singles.first().is_some_and(|best| best.rule == row.rule)
        };
        for row in self.singles.iter().filter(shown) {
            let ahead = row
                .selector_over_it
                .iter()
                .zip(&row.parts)
                .filter_map(|(ratio, part)| Some(format!("{} {}", part.part, in_words(ratio.as_ref()?))));
            let ahead: Vec<String> = ahead.collect();
            let all = row
                .selector_over_it_on_all
                .as_ref()
                .map_or_else(String::new, in_words);
            text.push_str(&format!(
                "\nThe chosen one over {}: {}; all lists {all}.\n",
                row.rule,
                ahead.join(", ")
            ));
        }
        text.push_str(&format!("\n{}\n", self.verdict()));
        text
    }
}
