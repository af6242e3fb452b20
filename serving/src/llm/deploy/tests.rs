//! The tree and its columns in Go say the same bits as ours: on rows at every threshold, on drawn facts and on those of a simulation.
//! What runs here needs Go and nothing else; the adapters are compiled against the pickers in `serving/tests/gateways`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, TreeMeta};
use pleach_workloads::Seed;
use rand::RngExt as _;

use super::*;
use crate::llm::columns;
use crate::llm::generate::RequestGenerator;
use crate::llm::router::least;
use crate::llm::{Decision, Facts, Fleet, Flow, Lately, Router, ScorerRouter, Sent, simulate};

const MAIN: &str = include_str!("tests/main.go");
/// Decisions of each source.
const NUM_DECISIONS: usize = 200;

fn meta(key_weights: Vec<KeyWeight>) -> TreeMeta {
    TreeMeta {
        name: "deployed".into(),
        tie_key: TieKey::Index,
        key_weights,
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: BTreeMap::new(),
    }
}

fn leaf(id: u32, score: f32) -> Node {
    Node::Leaf {
        id,
        score,
        samples: 0,
        weight: 0.0,
    }
}

/// A tree that splits by every column, at a value in the middle of what loads make of it, and orders by four of them.
fn tree_of_all_columns() -> Tree {
    let middles = [
        0.5, 0.5, 3.0, 0.4, 20.0, 0.3, 4.0, 0.2, 1.0, 0.6, 0.4, 1.5, 0.4, 0.05, 0.3, 0.4, 1.0, 0.6, 3.0, 0.4,
        0.3, 0.4, 0.5, 1.0,
    ];
    let mut nodes = Vec::new();
    for (number, middle) in middles.into_iter().enumerate() {
        let place = 2 * number as u32;
        // Rows that send are no refusals, and go on.
        let (left, right) = if number == 1 { (2, 1) } else { (1, 2) };
        nodes.push(Node::Split {
            feature: number as u16,
            threshold: SCHEMA.features[number].encode(middle),
            left: place + left,
            right: place + right,
        });
        nodes.push(leaf(number as u32, [3.0, -1.5, 1e-7, 3.0][number % 4]));
    }
    nodes.push(leaf(99, 0.1));
    let weights = [(2, -0.7), (5, -1.25), (8, 1.0), (11, -0.3)];
    let keys = weights.map(|(feature, weight)| KeyWeight { feature, weight });
    Tree::over(&SCHEMA, meta(keys.to_vec()), &nodes).unwrap()
}

/// All that a router receives for a decision.
#[derive(Clone, Debug)]
struct Recorded {
    prompt_tokens: u32,
    home: Option<(usize, u32)>,
    facts: Vec<Facts>,
    sent: Vec<Sent>,
    lately: Vec<Lately>,
    flow: Flow,
    num_routed: u64,
    facts_age_s: f64,
}

impl Recorded {
    fn decision<'a>(&'a self, fleet: &'a Fleet) -> Decision<'a> {
        Decision {
            prompt_tokens: self.prompt_tokens,
            home: self.home,
            facts: &self.facts,
            sent: &self.sent,
            lately: &self.lately,
            flow: self.flow,
            num_routed: self.num_routed,
            facts_age_s: self.facts_age_s,
            fleet,
        }
    }

    /// A line for the program in Go: whole numbers, and the bits of the others.
    fn line(&self, fleet: &Fleet) -> String {
        let bits = |values: &[f64]| -> String {
            let words = values.iter().map(|value| format!(" {:016x}", value.to_bits()));
            words.collect()
        };
        let Flow {
            fast_tokens_per_s: fast,
            slow_tokens_per_s: slow,
            ..
        } = self.flow;
        let of_request = bits(&[self.facts_age_s, fast, slow, fleet.num_gateways as f64]);
        let mut line = format!("{} {}{of_request}", self.prompt_tokens, self.num_routed);
        for replica in 0..self.facts.len() {
            let (facts, sent) = (&self.facts[replica], &self.sent[replica]);
            let held = self.home.filter(|(home, _)| *home == replica);
            let whole = [
                facts.waiting_requests,
                facts.waiting_tokens,
                facts.running_requests,
                facts.context_tokens,
                fleet.pace.kv_tokens,
                sent.requests,
                sent.tokens,
                sent.last,
                held.map_or(0, |(_, tokens)| tokens.into()),
            ];
            let lately = &self.lately[replica];
            line.extend(whole.map(|number| format!(" {number}")));
            line.push_str(&bits(&[
                lately.prompt_share,
                lately.ended_per_s,
                lately.drains_per_s,
                sent.queue_tokens,
                sent.queue_age_s,
            ]));
        }
        line + "\n"
    }
}

/// Routes well enough, and keeps what it receives for every fortieth request.
struct Recorder(Vec<Recorded>);

impl Router for Recorder {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        if decision.num_routed % 40 == 39 {
            self.0.push(Recorded {
                prompt_tokens: decision.prompt_tokens,
                home: decision.home,
                facts: decision.facts.to_vec(),
                sent: decision.sent.to_vec(),
                lately: decision.lately.to_vec(),
                flow: decision.flow,
                num_routed: decision.num_routed,
                facts_age_s: decision.facts_age_s,
            });
        }
        Ok(Some(least(decision, |replica| decision.ttft_s(replica, true))))
    }
}

fn fleet(num_replicas: usize) -> Fleet {
    Fleet {
        pace: Pace::of("llama-3-8b", "H100").unwrap(),
        num_replicas,
        num_gateways: 2,
        scrape_s: 1.0,
        targets: Targets::default(),
        may_refuse: true,
    }
}

fn simulated(fleet: &Fleet) -> Vec<Recorded> {
    let generator = RequestGenerator {
        num_requests: 40 * NUM_DECISIONS as u32 + 40,
        rate_per_s: 110.0,
        turns: 3.0,
        ..RequestGenerator::default()
    };
    let list = generator.draw(Seed(5)).unwrap();
    let mut recorder = Recorder(Vec::new());
    simulate(&list, fleet, &mut recorder).unwrap();
    recorder.0
}

/// Facts of every size, 0 among them.
fn drawn(fleet: &Fleet) -> Vec<Recorded> {
    let mut rng = Seed(5).stream("facts", 0);
    let decisions = (0..NUM_DECISIONS).map(|_| {
        let mut below = |most: u64| {
            let most = (1 + most) >> rng.random_range(0..20_u32).min(most.ilog2());
            rng.random_range(0..=most)
        };
        let num = fleet.num_replicas;
        let num_routed = below(1_000_000);
        let prompt_tokens = 1 + below(100_000) as u32;
        let facts_age_s = below(4_000_000_000) as f64 / 1e6;
        let facts = (0..num).map(|_| Facts {
            waiting_requests: below(3_000),
            waiting_tokens: below(3_000_000),
            running_requests: below(3_000),
            context_tokens: below(fleet.pace.kv_tokens),
            ..Facts::default()
        });
        let facts = facts.collect();
        let sent = (0..num).map(|_| Sent {
            requests: below(3_000),
            tokens: below(3_000_000),
            last: below(1_000_000).min(num_routed),
            queue_tokens: below(3_000_000_000) as f64 / 1e3,
            queue_age_s: (below(4_000_000_000) as f64 / 1e6).min(facts_age_s),
        });
        let sent = sent.collect();
        let lately = (0..num).map(|_| Lately {
            prompt_share: below(1_000_000) as f64 / 1e6,
            ended_per_s: below(100_000_000) as f64 / 1e6,
            drains_per_s: below(100_000_000_000) as f64 / 1e6,
        });
        let lately: Vec<Lately> = lately.collect();
        let shares = lately.iter().map(|lately| lately.prompt_share);
        let flow = Flow {
            fast_tokens_per_s: below(100_000_000_000) as f64 / 1e6,
            slow_tokens_per_s: below(100_000_000_000) as f64 / 1e6,
            prompt_share: shares.sum::<f64>() / num as f64,
        };
        let (home, held) = (below(num as u64 - 1) as usize, below(100_000));
        Recorded {
            prompt_tokens,
            home: Some((home, held.min(prompt_tokens.into()) as u32)),
            facts,
            sent,
            lately,
            flow,
            num_routed,
            facts_age_s,
        }
    });
    decisions.collect()
}

/// Runs the tree and its columns alone, in Go; none where there is no Go, which is noted.
fn run_go(folder: &Path, tree: &Tree, deployment: &Deployment, input: &str) -> Option<String> {
    let go = pleach_tests::program(&["go"])?;
    let source = source(
        tree,
        "import (\n\t\"math\"\n\t\"math/bits\"\n\t\"sort\"\n)\n",
        "",
        deployment,
    )
    .unwrap();
    fs::create_dir(folder.join("pleach")).unwrap();
    fs::write(folder.join("pleach/tree.go"), source).unwrap();
    fs::write(folder.join("main.go"), MAIN).unwrap();
    fs::write(folder.join("go.mod"), "module deployed\n\ngo 1.19\n").unwrap();
    fs::write(folder.join("input.txt"), input).unwrap();
    let found = Command::new(go)
        .args(["run", "."])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        found.status.success(),
        "{}",
        String::from_utf8_lossy(&found.stderr)
    );
    Some(String::from_utf8(found.stdout).unwrap())
}

fn bits(row: &[f32]) -> String {
    let words = row.iter().map(|value| format!("{:08x}", value.to_bits()));
    words.collect::<Vec<_>>().join(" ")
}

/// Joined rows, replicas first, with refusing last.
fn joined_rows(decision: &Decision<'_>) -> Vec<Vec<f32>> {
    let (mut rows, mut context) = (Vec::new(), Vec::new());
    columns::write(decision, &mut rows, &mut context);
    let rows = rows.chunks(columns::ROW_WIDTH);
    rows.map(|row| {
        let (mut row, mut context) = (row.iter(), context.iter());
        let features = SCHEMA.features.iter();
        let values = features.map(|feature| match feature.group {
            pleach_scheduler::features::Group::Row => row.next(),
            pleach_scheduler::features::Group::Context => context.next(),
        });
        values.map(|value| *value.unwrap()).collect()
    })
    .collect()
}

fn deployment(fleet: &Fleet) -> Deployment {
    Deployment {
        pace: fleet.pace,
        pace_of: "llama-3-8b on one H100".into(),
        targets: fleet.targets,
        may_refuse: true,
    }
}

#[test]
fn columns_scores_keys_and_choices_in_go_are_ours_to_the_bit() {
    let (tree, fleet) = (tree_of_all_columns(), fleet(6));
    let mut decisions = drawn(&fleet);
    let of_simulation = simulated(&fleet);
    assert_eq!(of_simulation.len(), NUM_DECISIONS);
    decisions.extend(of_simulation);
    let golden = tree.golden_rows(1_200);
    let mut input = String::new();
    let mut expected: Vec<String> = Vec::new();
    let say = |row: &[f32]| {
        let Node::Leaf { score, .. } = tree.nodes()[tree.walk(row)] else {
            panic!("a walk ended in a split");
        };
        let key = pleach_scheduler::key_weight::weighted_sum(&tree.meta().key_weights, row);
        format!("{} {:08x} {:016x}", bits(row), score.to_bits(), key.to_bits())
    };
    for row in &golden {
        input.push_str(&format!("row {}\n", bits(row)));
        expected.push(say(row));
    }
    let mut router = ScorerRouter::of_tree(&tree).unwrap();
    let mut refused = 0;
    for recorded in &decisions {
        let decision = recorded.decision(&fleet);
        input.push_str(&format!("decision {}", recorded.line(&fleet)));
        expected.extend(joined_rows(&decision).iter().map(|row| say(row)));
        let chosen = router.route(&decision).unwrap();
        refused += usize::from(chosen.is_none());
        expected.push(chosen.map_or("refused".into(), |replica| format!("chosen {replica}")));
    }
    assert!((10..300).contains(&refused), "{refused} refused");
    let folder = tempfile::tempdir().unwrap();
    let Some(found) = run_go(folder.path(), &tree, &deployment(&fleet), &input) else {
        return;
    };
    for (number, (found, expected)) in found.lines().zip(&expected).enumerate() {
        assert_eq!(found, expected, "line {number}");
    }
    assert_eq!(found.lines().count(), expected.len());
}

#[test]
fn each_picker_has_a_file_that_is_laid_out_by_gofmt_and_other_trees_are_refused() {
    let (tree, deployment) = (tree_of_all_columns(), deployment(&fleet(2)));
    let folder = tempfile::tempdir().unwrap();
    for picker in EndpointPicker::ALL {
        let text = plugin(&tree, picker, &deployment).unwrap();
        assert!(!text.contains("{{"), "{}: a marker is left", picker.name());
        fs::write(folder.path().join(picker.file_name()), text).unwrap();
    }
    if let Some(gofmt) = pleach_tests::program(&["gofmt"]) {
        let found = Command::new(gofmt).arg("-d").arg(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(
            found.status.success() && said.is_empty(),
            "{said}{}",
            String::from_utf8_lossy(&found.stderr)
        );
    }
    let of_jobs = Tree::new(meta(Vec::new()), &[leaf(0, 1.0)]).unwrap();
    let error = plugin(&of_jobs, EndpointPicker::Gie, &deployment).unwrap_err();
    assert!(error.to_string().contains("routing"), "{error}");
}
