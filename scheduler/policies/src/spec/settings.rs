//! Several policies: settings of those that plan, and names that differ.

use pleach_scheduler::Problem;
use serde_json::Value;

use super::{Kind, PolicySpec};

impl PolicySpec {
    /// Gives a planner settings of its own, by its name in tables: `settings` has one table for each.
    ///
    /// # Errors
    /// A table for a name that is no planner among them, or settings that a planner refuses.
    pub fn configure(all: &mut [PolicySpec], settings: &Value) -> Result<(), Problem> {
        let tables = settings.as_object().into_iter().flatten();
        for (name, table) in tables {
            let planner = all
                .iter_mut()
                .find(|policy| policy.name == *name && matches!(policy.kind, Kind::Planner(..)));
            let Some(policy) = planner else {
                return Err(Problem::new(
                    "policy-config",
                    name,
                    "a table for each planner that --policy names",
                    "Give it to --policy, or take its table out.",
                ));
            };
            if let Kind::Planner(entry, own) = &mut policy.kind {
                (entry.make)(table)?;
                *own = table.clone();
            }
        }
        Ok(())
    }

    /// Adds it to others, under its name or, where that is taken, with the first free number from 2 at its end.
    pub fn join(mut self, all: &mut Vec<PolicySpec>) {
        let name = self.name.clone();
        let mut number = 2;
        while all.iter().any(|other| other.name == self.name) {
            self.name = format!("{name}-{number}");
            number += 1;
        }
        all.push(self);
    }
}
