//! How an elastic job runs on other numbers of GPUs than it asks for: by its goodput, or by a table of sizes.

use super::goodput::Elastic;
use super::sizes::Sizes;
use crate::problem::Problem;

/// What gives an elastic job its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Data parallel, with a batch that it may choose (Pollux).
    Goodput(Elastic),
    /// By size, as a model with a plan for each.
    Sizes(Sizes),
}

impl Pace {
    /// Gradient noise scale after this part of the training; a table has none, and 1 stands for it.
    #[must_use]
    pub fn noise(&self, progress: f64) -> f64 {
        match self {
            Pace::Goodput(elastic) => elastic.noise(progress),
            Pace::Sizes(_) => 1.0,
        }
    }

    /// Progress on so many GPUs of so many nodes, over that on other numbers; 0 where it cannot run. A table does not see the
    /// nodes: its job pays for them as rigid ones do.
    #[must_use]
    pub fn goodput(&self, num_gpus: u32, num_nodes: u32, noise: f64) -> f64 {
        match self {
            Pace::Goodput(elastic) => {
                let choice = elastic.best(num_gpus, num_nodes, noise);
                choice.map_or(0.0, |choice| choice.goodput)
            }
            Pace::Sizes(sizes) => sizes.rate(num_gpus),
        }
    }

    /// Whether it may be asked for on so many GPUs.
    #[must_use]
    pub(crate) fn can_run_on(&self, num_gpus: u32) -> bool {
        match self {
            Pace::Goodput(elastic) => elastic.can_run_on(num_gpus),
            Pace::Sizes(sizes) => sizes.has(num_gpus),
        }
    }

    /// Most GPUs that are of use.
    #[must_use]
    pub fn gpus_max(&self) -> u32 {
        match self {
            Pace::Goodput(elastic) => (elastic.max_batch / elastic.min_local_batch).max(1),
            Pace::Sizes(sizes) => sizes.largest(),
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// The first one out of range.
    pub fn validate(&self) -> Result<(), Problem> {
        match self {
            Pace::Goodput(elastic) => elastic.validate(),
            // Checked when it is made.
            Pace::Sizes(_) => Ok(()),
        }
    }
}

impl From<Elastic> for Pace {
    fn from(elastic: Elastic) -> Pace {
        Pace::Goodput(elastic)
    }
}

impl From<Sizes> for Pace {
    fn from(sizes: Sizes) -> Pace {
        Pace::Sizes(sizes)
    }
}
