//! What is believed of models before they run: mean latencies of their layers, for each pattern of sparsity.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::exp;
use pleach_workloads::Seed;
use pleach_workloads::normal::standard_normal;

/// Most layers of a model.
pub(crate) const LAYERS_MAX: usize = 1_000;
/// Longest mean latency of a layer, µs.
const LAYER_US_MAX: f64 = 1e9;

/// Profiles that are drawn, by name and version. The models are those of DySta (MICRO'23); its measured latencies are not public,
/// so layer counts and means are *assumed*, such that its rates are loads of 0.3 to 1.5.
pub const PROFILES: [&str; 2] = ["attention-1", "cnn-1"];

/// A model and its drawn form: name, layers, isolated mean (ms).
type Drawn = (&'static str, usize, f64);

/// On Sanger. One pattern: attention is pruned as the sample runs.
const ATTENTION: [Drawn; 3] = [("bert", 12, 15.0), ("gpt-2", 12, 25.0), ("bart", 24, 45.0)];
/// On Eyeriss-v2.
const CNN: [Drawn; 4] = [
    ("mobilenet", 28, 150.0),
    ("resnet-50", 50, 200.0),
    ("ssd", 26, 250.0),
    ("vgg-16", 16, 400.0),
];
/// Patterns of CNNs: random, blocks of four, channels; isolated mean over the model's. *Assumed*.
const PATTERNS: [f64; 3] = [1.2, 1.0, 0.8];

/// One model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Mean latency of each layer for each pattern, `[pattern][layer]`, µs.
    layers_us: Vec<Vec<f64>>,
    /// Sums of what is still to come after so many layers, `[pattern][layer]`; the last of each is 0.
    rest_us: Vec<Vec<f64>>,
    /// Their mean over the patterns, `[layer]`.
    mean_rest_us: Vec<f64>,
}

impl Model {
    /// A model from the mean latencies of its layers, `[pattern][layer]`, µs.
    ///
    /// # Errors
    /// No pattern, patterns with unequal numbers of layers, latencies out of range.
    pub fn new(name: impl Into<String>, layers_us: Vec<Vec<f64>>) -> Result<Model, Problem> {
        let name = name.into();
        let num_layers = layers_us.first().map_or(0, Vec::len);
        let key = format!("models.{name}.layers_us");
        if num_layers == 0
            || num_layers > LAYERS_MAX
            || layers_us.iter().any(|layers| layers.len() != num_layers)
        {
            let given: Vec<usize> = layers_us.iter().map(Vec::len).collect();
            let allowed = format!("one or more patterns, each with the same 1 to {LAYERS_MAX} layers");
            return Err(Problem::new(
                key,
                format!("{given:?}"),
                allowed,
                "Give each layer of each pattern.",
            ));
        }
        let mut all = layers_us.iter().flatten();
        if let Some(wrong) = all.find(|mean_us| !(1.0..=LAYER_US_MAX).contains(*mean_us)) {
            let allowed = format!("1 to {LAYER_US_MAX} us");
            return Err(Problem::new(key, wrong, allowed, "Give mean latencies in us."));
        }
        let rest_us: Vec<Vec<f64>> = layers_us.iter().map(|layers| sums_from(layers)).collect();
        let mean = |layer: usize| rest_us.iter().map(|rest| rest[layer]).sum::<f64>() / rest_us.len() as f64;
        let mean_rest_us = (0..=num_layers).map(mean).collect();
        Ok(Model {
            name,
            layers_us,
            rest_us,
            mean_rest_us,
        })
    }

    /// Number of layers.
    #[must_use]
    pub fn num_layers(&self) -> usize {
        self.layers_us[0].len()
    }

    /// Number of patterns.
    #[must_use]
    pub fn num_patterns(&self) -> usize {
        self.layers_us.len()
    }

    /// Mean latency of a layer, µs.
    #[must_use]
    pub fn layer_us(&self, pattern: usize, layer: usize) -> f64 {
        self.layers_us[pattern][layer]
    }

    /// Mean of what is to come after so many layers, µs.
    #[must_use]
    pub fn rest_us(&self, pattern: usize, layers_ran: usize) -> f64 {
        self.rest_us[pattern][layers_ran]
    }

    /// The same where the pattern is not known.
    #[must_use]
    pub fn mean_rest_us(&self, layers_ran: usize) -> f64 {
        self.mean_rest_us[layers_ran]
    }
}

/// `[n + 1]`: sums of the values from each place on.
fn sums_from(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; values.len() + 1];
    for place in (0..values.len()).rev() {
        sums[place] = sums[place + 1] + values[place];
    }
    sums
}

/// Models that share an accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct Profiles {
    /// One or more.
    pub models: Vec<Model>,
    /// Deviation of a layer's latency over its mean, of the logarithm.
    pub spread: f64,
    /// Correlation of that between any two layers of one sample, 0 to 1.
    pub correlation: f64,
}

impl Profiles {
    /// Those of [`PROFILES`]. Always the same numbers: another draw would be another version.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn by_name(name: &str) -> Result<Profiles, Problem> {
        // Deviations of means between layers and of samples are *assumed*; the correlation is DySta's "highly linear" one.
        match name {
            "attention-1" => Profiles::drawn(&ATTENTION, &[1.0], 0.3, 0.25),
            "cnn-1" => Profiles::drawn(&CNN, &PATTERNS, 0.6, 0.15),
            _ => Err(Problem::new(
                "profiles",
                name,
                PROFILES.join(", "),
                "Take one of them.",
            )),
        }
    }

    fn drawn(
        models: &[Drawn],
        patterns: &[f64],
        layer_spread: f64,
        spread: f64,
    ) -> Result<Profiles, Problem> {
        let draw = |(number, (name, num_layers, isolated_ms)): (usize, &Drawn)| {
            let mut rng = Seed(1).stream("layer-profile", number as u64);
            let shares: Vec<f64> = (0..*num_layers)
                .map(|_| exp(layer_spread * standard_normal(&mut rng)))
                .collect();
            let scale = isolated_ms * 1e3 / shares.iter().sum::<f64>();
            let of_pattern = |factor: &f64| shares.iter().map(|share| share * scale * factor).collect();
            Model::new(*name, patterns.iter().map(of_pattern).collect())
        };
        Ok(Profiles {
            models: models.iter().enumerate().map(draw).collect::<Result<_, _>>()?,
            spread,
            correlation: 0.9,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_profiles_have_the_stated_means_and_layers_and_never_change() {
        let attention = Profiles::by_name("attention-1").unwrap();
        let isolated_ms = |model: &Model| model.mean_rest_us(0) / 1e3;
        let found: Vec<f64> = attention.models.iter().map(isolated_ms).collect();
        for (found, (_, _, expected)) in found.iter().zip(ATTENTION) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        let cnn = Profiles::by_name("cnn-1").unwrap();
        let vgg = &cnn.models[3];
        assert_eq!((vgg.num_layers(), vgg.num_patterns()), (16, 3));
        assert!((isolated_ms(vgg) - 400.0).abs() < 1e-9);
        assert!((vgg.rest_us(0, 0) - 480_000.0).abs() < 1e-6 && vgg.rest_us(0, 16) == 0.0);
        assert_eq!(cnn, Profiles::by_name("cnn-1").unwrap());
    }

    #[test]
    fn what_is_no_profile_is_refused_with_its_name() {
        for (layers_us, expected) in [
            (vec![], "the same 1 to 1000 layers"),
            (vec![vec![1.0], vec![1.0, 2.0]], "[1, 2]"),
            (vec![vec![f64::NAN]], "models.x.layers_us"),
            (vec![vec![0.5]], "1 to 1000000000 us"),
        ] {
            let error = Model::new("x", layers_us).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = Profiles::by_name("rnn").unwrap_err().to_string();
        assert!(error.contains("attention-1, cnn-1"), "{error}");
    }
}
