//! Trees that scale: rules by hand from which they are searched for, and the same tree with another reserve.

use pleach_distill::search::Branch;
use pleach_scheduler::tree::{Node, Tree};
use pleach_serving::llm::AUTOSCALING;

use crate::error::Error;
use crate::worlds::race::{by_hand, column, nodes, split};

/// Columns that say how much of what replicas serve is taken: the larger the reserve the lower their thresholds.
const SHARES: [&str; 5] = [
    "load_share",
    "peak_share",
    "usual_share",
    "forecast_share",
    "open_share",
];

/// The same tree with another reserve, a factor.
pub(super) fn with_reserve(tree: &Tree, factor: f64) -> Result<Tree, Error> {
    let is_share = |number: u16| SHARES.contains(&AUTOSCALING.features[usize::from(number)].name);
    let roots = column(&AUTOSCALING, "spare_roots", 0.0).0;
    let mut nodes: Vec<Node> = tree.nodes().to_vec();
    for node in &mut nodes {
        if let Node::Split {
            feature, threshold, ..
        } = node
        {
            if is_share(*feature) {
                *threshold = (f64::from(*threshold) / factor) as f32;
            } else if *feature == roots {
                *threshold = (f64::from(*threshold) * factor) as f32;
            }
        }
    }
    Tree::over(&AUTOSCALING, tree.meta().clone(), &nodes).map_err(|error| Error::Failed(error.to_string()))
}

/// Ranks of leaves: what does not serve the load, the most that can be done then, what serves it.
const SHORT: u32 = 0;
const MOST: u32 = 2;
const ENOUGH: u32 = 4;

/// Time after a grant in which a start takes no replica back, s. *Assumed.*
const HOLDS_S: [f32; 2] = [0.0, 600.0];

/// Rules by hand, as trees: the fewest replicas that serve a load with a reserve; fewer only where the highest load of the last
/// minutes allows, some only a while after the last grant; with and without regard to whole gangs and to what is idle.
pub(super) fn starts(targets: [f64; 2], without: &[u16]) -> Result<Vec<Tree>, Error> {
    let is_allowed = |name: &str| !without.contains(&column(&AUTOSCALING, name, 0.0).0);
    let mut trees = Vec::new();
    for share in ["load_share", "forecast_share"] {
        for factor in [0.94, 1.0, 1.08_f32] {
            for gangs in [false, true] {
                for hold_s in HOLDS_S {
                    let mut read = vec![share, "peak_share"];
                    read.extend(["gained_gpus", "idle_gpus"].iter().filter(|_| gangs));
                    read.extend(Some("since_more_s").filter(|_| hold_s > 0.0));
                    if !read.iter().all(|name| is_allowed(name)) {
                        continue;
                    }
                    let bound = factor * targets[usize::from(gangs)] as f32;
                    let words = if gangs { " in gangs" } else { "" };
                    let name = format!("{share} {bound:.2}{words}, held {hold_s} s");
                    let (root, weights) = start((share, bound), gangs, hold_s);
                    trees.push(by_hand(&AUTOSCALING, &name, weights, &nodes(&root))?);
                }
            }
        }
    }
    Ok(trees)
}

/// The tree of a start, and the weights of its key.
fn start((share, bound): (&str, f32), gangs: bool, hold_s: f32) -> (Branch, &'static [(&'static str, f32)]) {
    let when =
        |name: &str, raw: f32, up_to: Branch, beyond: Branch| split(&AUTOSCALING, name, raw, up_to, beyond);
    let (short, most, enough) = (Branch::Leaf(SHORT), Branch::Leaf(MOST), Branch::Leaf(ENOUGH));
    let more = when("coming", 3.5, short.clone(), most);
    let more = when(share, bound, enough.clone(), more);
    let mut fewer = when("peak_share", bound, enough, short.clone());
    if hold_s > 0.0 {
        fewer = when("since_more_s", hold_s, short.clone(), fewer);
    }
    if gangs {
        let fewer = when("gained_gpus", 0.5, short, fewer);
        let weights = &[("replicas", 0.5), ("idle_gpus", 1.0)];
        return (when("is_fewer", 0.5, more, fewer), weights);
    }
    let fewer = when("leaving", 1.5, fewer, short);
    (when("is_fewer", 0.5, more, fewer), &[("replicas", 1.0)])
}
