//! Observations as arrays with shapes, for code outside the step path.

use ndarray::ArrayView2;
use pleach_scheduler::observation::ObservationRef;

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
///         let schema = FeatureSchema::current();
///         let wait = schema.joined_index("wait_ratio").map_or(0, |number| schema.place(number));
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
    let width = observation.width.max(1);
    let shape = (observation.candidates.len() / width, width);
    ArrayView2::from_shape(shape, observation.candidates).unwrap_or_else(|_| ArrayView2::from(&[[0.0; 0]; 0]))
}
