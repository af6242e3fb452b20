//! Goodputs that were searched for once and are kept.

use crate::cluster_spec::ModelClass;
use crate::ids::ClassId;

/// Goodput at the start of training by class, number of GPUs, and whether on several nodes. Jobs that have not run yet share
/// it: a goodput is a search, and a queue may hold thousands of jobs of the same few models. It is filled as it is asked for, and
/// has its memory from the start.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct FirstGoodput {
    /// NaN for what was not asked for yet. `[class][num_gpus][one node, several]`
    classes: Vec<Vec<[f64; 2]>>,
}

impl FirstGoodput {
    /// For jobs that ask for up to `num_gpus`, all of the cluster, and look at twice as many.
    pub(in crate::cluster) fn new(classes: &[ModelClass], num_gpus: u32) -> FirstGoodput {
        let sizes = |class: &ModelClass| {
            let most = class.elastic.map_or(0, |elastic| elastic.gpus_max.min(num_gpus));
            vec![[f64::NAN; 2]; if most > 0 { 2 * most as usize + 1 } else { 0 }]
        };
        FirstGoodput {
            classes: classes.iter().map(sizes).collect(),
        }
    }

    pub(in crate::cluster) fn get(
        &mut self,
        class: ClassId,
        num_gpus: u32,
        is_on_several: bool,
        search: impl FnOnce() -> f64,
    ) -> f64 {
        let Some(kept) = self.classes[class.index()].get_mut(num_gpus as usize) else {
            return search();
        };
        let kept = &mut kept[usize::from(is_on_several)];
        if kept.is_nan() {
            *kept = search();
        }
        *kept
    }
}

/// How an elastic job scales with the noise scale at which it waits: a goodput is a search over batches, too slow for every
/// look at every placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitingPace {
    /// Goodput on half, all and twice of what it asked for, on one node and on several; 0 where it cannot run. `[size][nodes]`
    pub(in crate::cluster) goodput: [[f64; 2]; 3],
    /// Progress per GPU at its most efficient size over its progress at the size that it asked for: the best of the sizes 1, 2,
    /// 4, ... and the one asked for, all at their tightest. 0 for a job that is not elastic.
    pub peak_per_gpu: f64,
}

impl WaitingPace {
    /// Of a job that is not elastic.
    pub(in crate::cluster) const NONE: WaitingPace = WaitingPace {
        goodput: [[0.0; 2]; 3],
        peak_per_gpu: 0.0,
    };

    pub(in crate::cluster) fn sizes(asked: u32) -> [u32; 3] {
        [asked / 2, asked, asked.saturating_mul(2)]
    }

    /// Goodput on so many GPUs, if it is kept. How many nodes more than one does not matter to the synchronisation.
    pub(in crate::cluster) fn of(&self, asked: u32, num_gpus: u32, num_nodes: u32) -> Option<f64> {
        let at = Self::sizes(asked).iter().position(|size| *size == num_gpus)?;
        Some(self.goodput[at][usize::from(num_nodes > 1)])
    }
}
