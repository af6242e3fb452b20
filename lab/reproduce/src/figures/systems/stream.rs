//! StreamRL: generation and training of reinforcement learning on GPUs of their own, streamed, or in turns on all.

use pleach_env::workload::normal::standard_normal;
use pleach_serving::llm::{Pace, Replica, Work, ps_of_s, s_of_ps};
use rand::Rng;

use super::system::{Benchmark, Effort, Error, Reproduction, drawn, exact, figures, smallest};
use pleach_scheduler::portable_math::exp;

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "streamrl",
    title: "StreamRL: generation and training in turns or apart",
    source: "Zhong et al., arXiv 2504.15930: up to 2.66 times the throughput of existing systems",
    setup: "Our model. In turns: both on all GPUs, one after the other; apart: the longer of the two. Example: 50 + 160 / a and 640 / b \
            seconds on 16 GPUs. Drawn: 512 prompts of 512 tokens, answers log-normal with median 600 and at most 8,192 tokens, on 16 \
            H100 in the replicas' engine with an 8B model; training at 0.4 of the peak, 6 operations a parameter and token, assumed",
    run,
};

const NUM_GPUS: usize = 16;

/// In turns over apart with the best split, from the seconds of each on so many GPUs.
fn gain(generate: &dyn Fn(usize) -> f64, train: &dyn Fn(usize) -> f64) -> f64 {
    let turns = generate(NUM_GPUS) + train(NUM_GPUS);
    turns / smallest((1..NUM_GPUS).map(|gpus| generate(gpus).max(train(NUM_GPUS - gpus))))
}

/// Answers' tokens.
fn answers(rng: &mut impl Rng) -> Vec<u32> {
    (0..512)
        .map(|_| (600.0 * exp(standard_normal(rng))).clamp(1.0, 8192.0) as u32)
        .collect()
}

/// When the last answer is there, with a replica on each of some GPUs, s.
fn generated_s(answers: &[u32], num_gpus: usize, pace: Pace) -> f64 {
    let mut last_ps = 0;
    for gpu in 0..num_gpus {
        let mut replica = Replica::new(pace);
        for (number, output_tokens) in answers.iter().enumerate().skip(gpu).step_by(num_gpus) {
            let work = Work {
                id: number as u32,
                session: number as u32,
                prompt_tokens: 512,
                prefix_tokens: 0,
                output_tokens: *output_tokens,
                blocks: Default::default(),
                is_computed: false,
            };
            replica.send(0, work);
        }
        let mut events = Vec::new();
        replica.advance(ps_of_s(1e5), &mut events);
        last_ps = events.iter().map(|event| event.2).fold(last_ps, u64::max);
    }
    s_of_ps(last_ps)
}

fn run(effort: &Effort) -> Result<Reproduction, Error> {
    let pace = Pace::of("llama-3-8b", "h100")?;
    let streamed = |seed: pleach_env::Seed| {
        let answers = answers(&mut seed.stream("answers", 0));
        let tokens: f64 = answers.iter().map(|tokens| f64::from(*tokens) + 512.0).sum();
        let trained_s = 6.0 * 8e9 * tokens / (0.4 * 989e12);
        gain(&|gpus| generated_s(&answers, gpus, pace), &|gpus| {
            trained_s / gpus as f64
        })
    };
    let example = gain(&|gpus| 50.0 + 160.0 / gpus as f64, &|gpus| 640.0 / gpus as f64);
    figures(
        vec![
            exact("example: in turns over apart", example),
            drawn("drawn answers: in turns over apart", effort, streamed),
        ],
        "What is won is what generation does not gain from more GPUs, its longest answer. The published systems also pay for moving \
         weights and for answers of older weights, which are left out.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_gpus_are_split_as_worked_by_hand() {
        let generate = |gpus: usize| 50.0 + 160.0 / gpus as f64;
        let train = |gpus: usize| 640.0 / gpus as f64;
        let own = gain(&generate, &train);
        assert!((own - 100.0 / (50.0 + 160.0 / 7.0)).abs() < 1e-12, "{own}");
        // Where both gain from every GPU nothing is won.
        let even = gain(&|gpus| 160.0 / gpus as f64, &|gpus| 480.0 / gpus as f64);
        assert!((even - 1.0).abs() < 1e-12, "{even}");
    }

    #[test]
    fn the_longest_answer_bounds_what_more_gpus_gain() {
        let pace = Pace::of("llama-3-8b", "h100").unwrap();
        let answers = answers(&mut pleach_env::Seed(1).stream("answers", 0));
        let [few, many] = [2, 16].map(|gpus| generated_s(&answers, gpus, pace));
        let longest = answers.iter().copied().max().unwrap();
        let alone = generated_s(&[longest], 1, pace);
        assert!(few > many && many >= alone, "{few}, {many}, {alone}");
    }
}
