//! What a replica is: settings that all worlds with a server have.

/// Settings of a world with a server: its own, those of the server, and its own again. Its own have a `model`, a `gpu` and
/// `replica_gpus`.
macro_rules! settings {
    (
        $(#[$of:meta])*
        pub struct $name:ident { $($before:tt)* } and { $($after:tt)* }
    ) => {
        ::pleach_scheduler::settings! {
            $(#[$of])*
            pub struct $name {
                $($before)*
                /// Copies of all but experts, each on as many GPUs of the replica
                pub copies: u32 = 1, in 1..=8;
                /// Inference engine: vLLM 0.27, SGLang 0.5, TensorRT-LLM 1.x, and two of 2024
                pub engine: String = "vllm".into(), in $crate::worlds::server::OneOf(&$crate::worlds::server::ENGINE_NAMES);
                /// Numbers in which the weights are kept and multiplied
                pub precision: String = "bf16".into(), in $crate::worlds::server::OneOf($crate::worlds::server::PRECISIONS);
                /// Numbers in which keys and values are kept; engine: as it does by default
                pub kv_precision: String = "engine".into(),
                    in $crate::worlds::server::OneOf($crate::worlds::server::KV_PRECISIONS);
                /// Most requests of a step [default: the engine's on this GPU]
                pub batch_max: Option<u32>, in 1..=65_536;
                /// Most tokens of a step [default: the engine's on this GPU]
                pub step_tokens: Option<u32>, in 16..=1_048_576;
                /// Share of the memory that a replica takes [default: the engine's]
                pub memory_share: Option<f64>, in 0.1..=1.0;
                /// Whether contexts of what has ended stay in free memory
                pub prefix_cache: bool = true;
                /// Tokens of an answer that a step gives with speculation; published for DeepSeek-V3's own: 1.8
                pub speculation: f64 = 1.0, in 1.0..=8.0;
                /// Own times of layers over the engine's
                pub overhead_level: f64 = 1.0, in $crate::worlds::server::Above(0.0, 100.0);
                /// Own shares of bandwidth and peak over the engine's
                pub efficiency_level: f64 = 1.0, in $crate::worlds::server::Above(0.0, 100.0);
                $($after)*
            }
        }

        impl $name {
            /// What a replica is.
            ///
            /// # Errors
            /// Settings that cannot go together.
            pub(in crate::worlds) fn server(
                &self,
            ) -> Result<$crate::worlds::server::Server, $crate::worlds::server::Problem> {
                use $crate::worlds::server::Server;
                let num_gpus = u32::from(self.replica_gpus);
                let server = Server::of(&self.engine, &self.model, &self.gpu, num_gpus)?;
                let server = server.kept_in(&self.precision)?.copied(self.copies)?;
                Ok(Server {
                    has_small_kv: match &*self.kv_precision {
                        "engine" => server.has_small_kv,
                        numbers => numbers == "fp8",
                    },
                    speculation: self.speculation,
                    batch_max: self.batch_max,
                    step_tokens: self.step_tokens,
                    memory_share: self.memory_share,
                    keeps_prefixes: self.prefix_cache,
                    own_levels: [self.overhead_level, self.efficiency_level],
                    ..server
                })
            }
        }
    };
}

pub(in crate::worlds) use pleach_scheduler::Problem;
pub(in crate::worlds) use pleach_scheduler::settings::{Above, OneOf};
pub(in crate::worlds) use pleach_serving::llm::{ENGINE_NAMES, KV_PRECISIONS, PRECISIONS, Server};
pub(in crate::worlds) use settings;
