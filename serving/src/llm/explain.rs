//! Why a request went where it went: all rows of one decision under a tree, in the tree's order.

use pleach_scheduler::Problem;
use pleach_scheduler::key_weight::weighted_sum;
use pleach_scheduler::tree::Tree;
use serde::Serialize;

use crate::llm::columns::{ROW_WIDTH, SCHEMA, write};
use crate::llm::router::{Decision, Router, ScorerRouter};

/// A row of the decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowTold {
    /// The replica; none for refusing.
    pub replica: Option<usize>,
    /// 1 is the best.
    pub tier: usize,
    /// Of the first row the conditions on its way, of another why it comes after the first.
    pub why: Vec<String>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestTold {
    /// Number of the request in its list, from 0.
    pub request: usize,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// Age of what the gateway knew, s.
    pub facts_age_s: f64,
    /// Tiers of the tree.
    pub num_tiers: usize,
    /// In the tree's order, the chosen one first.
    pub rows: Vec<RowTold>,
}

/// Routes by a tree, and tells of one request why.
pub struct Explaining {
    tree: Tree,
    router: ScorerRouter,
    request: usize,
    num_seen: usize,
    told: Option<RequestTold>,
}

/// A joined row with what orders it.
struct Placed {
    replica: Option<usize>,
    joined: Vec<f32>,
    tier: usize,
    key: f64,
    turn: u64,
}

impl Explaining {
    /// Of the request of a number in its list.
    ///
    /// # Errors
    /// A tree of other columns.
    pub fn new(tree: &Tree, request: usize) -> Result<Explaining, Problem> {
        Ok(Explaining {
            router: ScorerRouter::of_tree(tree)?,
            tree: tree.clone(),
            request,
            num_seen: 0,
            told: None,
        })
    }

    /// What was told; none where there was no such request.
    #[must_use]
    pub fn into_told(self) -> Option<RequestTold> {
        self.told
    }

    fn tell(&self, decision: &Decision<'_>) -> RequestTold {
        let tiers = self.tree.tiers();
        let mut rows = self.placed(decision, &tiers);
        rows.sort_by(|one, other| {
            let of_tree = one.tier.cmp(&other.tier).then(one.key.total_cmp(&other.key));
            // Refusing comes last among equals.
            let of_turns = one.turn.cmp(&other.turn);
            of_tree.then(of_turns)
        });
        let first = &rows[0];
        let told = |row: &Placed| RowTold {
            replica: row.replica,
            tier: row.tier,
            why: if std::ptr::eq(row, first) {
                self.conditions(&row.joined)
            } else {
                vec![self.why_after(first, row)]
            },
        };
        RequestTold {
            request: self.request,
            prompt_tokens: decision.prompt_tokens,
            facts_age_s: decision.facts_age_s,
            num_tiers: tiers.len(),
            rows: rows.iter().map(told).collect(),
        }
    }

    fn placed(&self, decision: &Decision<'_>, tiers: &[f32]) -> Vec<Placed> {
        let (mut rows, mut context) = (Vec::new(), Vec::new());
        write(decision, &mut rows, &mut context);
        let num_replicas = decision.facts.len();
        let placed = rows.chunks_exact(ROW_WIDTH).enumerate().map(|(choice, row)| {
            let joined = SCHEMA.joined_row(row, &context);
            let score = self.tree.score_at(self.tree.walk(&joined));
            Placed {
                replica: (choice < num_replicas).then_some(choice),
                tier: 1 + tiers.iter().filter(|tier| **tier > score).count(),
                key: weighted_sum(&self.tree.meta().key_weights, &joined),
                turn: decision.sent.get(choice).map_or(u64::MAX, |sent| sent.last),
                joined,
            }
        });
        placed.collect()
    }

    fn conditions(&self, joined: &[f32]) -> Vec<String> {
        let (_, path) = self.tree.path(joined);
        let path = path.iter();
        path.map(|step| format!("{} (it is {})", step.condition, step.value))
            .collect()
    }

    fn why_after(&self, first: &Placed, row: &Placed) -> String {
        let parting = self.tree.parting(&first.joined, &row.joined);
        match parting.filter(|_| first.tier != row.tier) {
            Some(parting) => format!(
                "its {} is {}, that of the first {}: not {}",
                parting.feature, parting.other_value, parting.value, parting.condition
            ),
            None if first.key < row.key => {
                format!("its key is {:.4}, that of the first {:.4}", row.key, first.key)
            }
            None if row.replica.is_none() => "nothing else parts them, and refusing comes last".into(),
            None if first.turn < row.turn => "the first was sent to longer ago".into(),
            None => "nothing else parts them, and the first has the lower number".into(),
        }
    }
}

impl Router for Explaining {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        if self.num_seen == self.request {
            self.told = Some(self.tell(decision));
        }
        self.num_seen += 1;
        self.router.route(decision)
    }
}

impl RequestTold {
    /// In words, a row a line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let who = |row: &RowTold| match row.replica {
            Some(replica) => format!("replica {replica}"),
            None => "refusing".into(),
        };
        let mut text = format!(
            "request {}: a prompt of {} tokens, facts {:.2} s old\n",
            self.request, self.prompt_tokens, self.facts_age_s
        );
        for (place, row) in self.rows.iter().enumerate() {
            let does = if place == 0 { "first: " } else { "" };
            let why = row.why.join("; ");
            text += &format!(
                "{does}{}, tier {} of {}: {why}\n",
                who(row),
                row.tier,
                self.num_tiers
            );
        }
        text
    }
}
