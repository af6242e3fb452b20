//! Observations as arrays with shapes, for whoever looks at them outside the step path.

use ndarray::ArrayView2;
use pleach_scheduler::observation::{NUM_CANDIDATE_FEATURES, ObservationRef};

/// The candidates of an observation, without a copy. `[num_candidates, num_features]`; no rows where the policy did not ask for
/// features.
///
/// ```
/// use pleach_env::candidate_rows;
/// use pleach_scheduler::{DecisionPoint, FeatureSchema, Policy, PolicyError};
///
/// /// The jobs that waited longest, for what they are, go first.
/// struct LongestWait;
///
/// impl Policy for LongestWait {
///     fn name(&self) -> &str {
///         "longest-wait"
///     }
///
///     fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
///         let wait = FeatureSchema::current().joined_index("wait_ratio").unwrap_or(0);
///         for (score, row) in scores.iter_mut().zip(candidate_rows(&point.observation).rows()) {
///             *score = row[wait];
///         }
///         Ok(())
///     }
/// }
/// # use pleach_env::{GeneratorConfig, Seed, SimConfig, generate, simulate};
/// # let workload = generate(&GeneratorConfig::default().with(50, 0.8), Seed(1))?;
/// let outcome = simulate(&workload, &SimConfig::default(), &mut LongestWait)?;
/// assert!(outcome.metrics.avg_jct_s > 0.0);
/// # Ok::<(), pleach_env::Error>(())
/// ```
#[must_use]
pub fn candidate_rows<'a>(observation: &ObservationRef<'a>) -> ArrayView2<'a, f32> {
    let (rows, _) = observation.candidates.as_chunks::<NUM_CANDIDATE_FEATURES>();
    ArrayView2::from(rows)
}
