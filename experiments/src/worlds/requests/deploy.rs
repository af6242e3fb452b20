//! A tree that routes as the plug-in of an endpoint picker: what is baked into it, as flags.

use clap::Args;
use pleach_scheduler::Problem;
use pleach_scheduler::tree::Tree;
use pleach_serving::llm::deploy::{Deployment, EndpointPicker, plugin};
use pleach_serving::llm::{Pace, Targets};

use super::RequestsSettings;
use crate::evaluate::flag_values;

/// What a tree is exported with for an endpoint picker.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct DeploymentConfig {
    /// Language model of the endpoints (pleach workload settings requests)
    #[arg(
        long,
        value_name = "NAME",
        default_value = "llama-3-8b",
        help_heading = "Endpoint pickers"
    )]
    pub model: String,
    /// Their GPU type
    #[arg(
        long,
        value_name = "NAME",
        default_value = "H100",
        help_heading = "Endpoint pickers"
    )]
    pub gpu: String,
    /// GPUs of an endpoint, among which the model is split: 1, 2, 4, 8
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flag_values::whole::<u32>(1..=8),
        help_heading = "Endpoint pickers")]
    pub replica_gpus: u32,
    /// Target of the time to the first token, s; `ttftS` in the picker's configuration
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = flag_values::positive, help_heading = "Endpoint pickers")]
    pub ttft_s: f64,
    /// Target of the mean time between two later tokens, s; `tpotS` there
    #[arg(long, value_name = "S", default_value_t = 0.03, value_parser = flag_values::positive, help_heading = "Endpoint pickers")]
    pub tpot_s: f64,
    /// Whether requests may be refused; `refuse` there
    #[arg(long, help_heading = "Endpoint pickers")]
    pub refuse: bool,
}

impl Default for DeploymentConfig {
    fn default() -> DeploymentConfig {
        let serving = RequestsSettings::default();
        DeploymentConfig {
            model: serving.model,
            gpu: serving.gpu,
            replica_gpus: serving.replica_gpus,
            ttft_s: serving.ttft_s,
            tpot_s: serving.tpot_s,
            refuse: serving.refuse,
        }
    }
}

impl DeploymentConfig {
    /// The plug-in of a picker: name of the file, and its content.
    ///
    /// # Errors
    /// A model or GPU that is not there, a tree that reads what no picker tells.
    pub fn plugin(&self, tree: &Tree, picker: EndpointPicker) -> Result<(&'static str, String), Problem> {
        let gpus = match self.replica_gpus {
            1 => "one".to_string(),
            num => num.to_string(),
        };
        let deployment = Deployment {
            pace: Pace::split(&self.model, &self.gpu, self.replica_gpus)?,
            pace_of: format!("{} on {gpus} {}", self.model, self.gpu),
            targets: Targets {
                ttft_s: self.ttft_s,
                tpot_s: self.tpot_s,
            },
            may_refuse: self.refuse,
        };
        Ok((picker.file_name(), plugin(tree, picker, &deployment)?))
    }
}
