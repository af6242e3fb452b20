//! Small trees that correct a quantile, one after the other: gradient boosting of the pinball loss with leaves of their own quantile.
//!
//! # Source
//! J. H. Friedman, *Greedy function approximation: a gradient boosting machine* (2001), with the loss of quantile regression.

/// Trees, leaves of each, part of a leaf's value that counts, jobs of a leaf at least, cuts of a feature at most. *Ours*, as tried.
const TREES: usize = 40;
const LEAVES: usize = 6;
const RATE: f64 = 0.15;
const LEAF_MIN: usize = 15;
const CUTS: usize = 15;

/// A node: a feature, the cut up to which jobs go to the first of two nodes, and that node; or a value.
#[derive(Clone, Copy, Debug)]
enum Node {
    Cut(usize, f64, usize),
    Leaf(f64),
}

/// Trees whose values add up.
#[derive(Clone, Debug, Default)]
pub struct Boosted {
    base: f64,
    trees: Vec<Vec<Node>>,
}

/// The value below which a part of the values lies, interpolated; 0 of none. Sorts.
pub(crate) fn quantile_of(values: &mut [f64], part: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile(values, part)
}

/// The same of values that are sorted.
#[must_use]
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let place = part.clamp(0.0, 1.0) * last as f64;
    let (low, rest) = (place as usize, place.fract());
    let (from, to) = (sorted[low], sorted[(low + 1).min(last)]);
    // Two infinite ends have no difference.
    if rest == 0.0 || from == to {
        from
    } else {
        from + (to - from) * rest
    }
}

/// A leaf that may be cut: its jobs, and its best cut: what it gains, of which feature, which cut of it.
struct Open {
    node: usize,
    rows: Vec<usize>,
    cut: Option<(f64, usize, usize)>,
}

/// Features cut at even parts of their values, and between which cuts each row lies.
struct Binned {
    cuts: Vec<Vec<f64>>,
    places: Vec<Vec<u8>>,
}

impl Boosted {
    /// Learns the quantile `part` of `targets` from `rows` of features; `has_base` where the trees begin at their quantile, else 0.
    #[must_use]
    pub fn fit(rows: &[&[f64]], targets: &[f64], part: f64, has_base: bool) -> Boosted {
        let base = match has_base {
            true => quantile_of(&mut targets.to_vec(), part),
            false => 0.0,
        };
        let mut found = Boosted {
            base,
            trees: Vec::new(),
        };
        if rows.len() < 2 * LEAF_MIN {
            return found;
        }
        let binned = Binned::of(rows);
        let mut rests: Vec<f64> = targets.iter().map(|target| target - base).collect();
        for _ in 0..TREES {
            let slopes: Vec<f64> = rests
                .iter()
                .map(|rest| if *rest > 0.0 { part } else { part - 1.0 })
                .collect();
            let tree = binned.grow(&slopes, |of| {
                quantile_of(&mut of.iter().map(|row| rests[*row]).collect::<Vec<_>>(), part) * RATE
            });
            for (rest, row) in rests.iter_mut().zip(rows) {
                *rest -= value(&tree, row);
            }
            found.trees.push(tree);
        }
        found
    }

    /// The quantile for some features.
    #[must_use]
    pub fn at(&self, row: &[f64]) -> f64 {
        self.base + self.trees.iter().map(|tree| value(tree, row)).sum::<f64>()
    }
}

fn value(tree: &[Node], row: &[f64]) -> f64 {
    let mut at = 0;
    loop {
        match tree[at] {
            Node::Leaf(value) => return value,
            Node::Cut(feature, cut, first) => at = first + usize::from(row[feature] > cut),
        }
    }
}

impl Binned {
    fn of(rows: &[&[f64]]) -> Binned {
        let cuts = |feature: usize| {
            let mut values: Vec<f64> = rows.iter().map(|row| row[feature]).collect();
            values.sort_unstable_by(f64::total_cmp);
            let last = values.len() - 1;
            let mut cuts: Vec<f64> = (1..=CUTS)
                .map(|number| values[number * last / (CUTS + 1)])
                .collect();
            cuts.dedup();
            cuts.retain(|cut| *cut < values[last]);
            cuts
        };
        let cuts: Vec<Vec<f64>> = (0..rows[0].len()).map(cuts).collect();
        let place = |(feature, cuts): (usize, &Vec<f64>)| {
            let of = |row: &&[f64]| cuts.partition_point(|cut| *cut < row[feature]) as u8;
            rows.iter().map(of).collect()
        };
        Binned {
            places: cuts.iter().enumerate().map(place).collect(),
            cuts,
        }
    }

    /// One tree, the leaf that gains most cut first.
    fn grow(&self, slopes: &[f64], leaf: impl Fn(&[usize]) -> f64) -> Vec<Node> {
        let open = |node: usize, rows: Vec<usize>| Open {
            node,
            cut: self.best_cut(slopes, &rows),
            rows,
        };
        let mut tree = vec![Node::Leaf(0.0)];
        let mut leaves = vec![open(0, (0..slopes.len()).collect())];
        while leaves.len() < LEAVES {
            let gain = |one: &Open| one.cut.map_or(0.0, |cut| cut.0);
            let best =
                (0..leaves.len()).max_by(|one, other| gain(&leaves[*one]).total_cmp(&gain(&leaves[*other])));
            let Some((best, (_, feature, cut))) = best.and_then(|best| Some((best, leaves[best].cut?)))
            else {
                break;
            };
            let Open { node, rows, .. } = leaves.swap_remove(best);
            let places = &self.places[feature];
            let (low, high): (Vec<usize>, Vec<usize>) =
                rows.iter().partition(|row| usize::from(places[**row]) <= cut);
            tree[node] = Node::Cut(feature, self.cuts[feature][cut], tree.len());
            for part in [low, high] {
                tree.push(Node::Leaf(0.0));
                leaves.push(open(tree.len() - 1, part));
            }
        }
        for one in leaves {
            tree[one.node] = Node::Leaf(leaf(&one.rows));
        }
        tree
    }

    /// The cut of a leaf by which the slopes of its two parts differ most.
    fn best_cut(&self, slopes: &[f64], rows: &[usize]) -> Option<(f64, usize, usize)> {
        let (num, whole) = (
            rows.len() as f64,
            rows.iter().map(|row| slopes[*row]).sum::<f64>(),
        );
        let mut best: Option<(f64, usize, usize)> = None;
        for (feature, places) in self.places.iter().enumerate() {
            let mut sums = [(0.0, 0); CUTS + 1];
            for row in rows {
                let bin = &mut sums[usize::from(places[*row])];
                *bin = (bin.0 + slopes[*row], bin.1 + 1);
            }
            let (mut sum, mut count) = (0.0, 0);
            for (cut, bin) in sums.iter().enumerate().take(self.cuts[feature].len()) {
                (sum, count) = (sum + bin.0, count + bin.1);
                if count < LEAF_MIN || rows.len() - count < LEAF_MIN {
                    continue;
                }
                let rest = whole - sum;
                let parts = sum * sum / count as f64 + rest * rest / (rows.len() - count) as f64;
                let gain = parts - whole * whole / num;
                if gain > 1e-9 && best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, feature, cut));
                }
            }
        }
        best
    }
}
