//! The law against steps worked by hand with round constants, and its tables against each other.

use pleach_workloads::plans::Precision as PlanPrecision;

use super::*;

const ROUND: [f64; NUM_CONSTANTS] = [
    40e-6, 10e-6, 10e-6, 20e-6, 10e-6, 5e-12, 4e-12, 0.8, 0.5, 0.8, 0.5, 0.4, 0.5,
];
const PLAIN: Levels = Levels {
    overhead: 1.0,
    request: 1.0,
    efficiency: 1.0,
    before_queue_steps: 2.0,
    before_queue_token_s: 1e-6,
};

fn server(model: &str, gpu: &str, num_gpus: u32) -> Server {
    Server::of("vllm", model, gpu, num_gpus).unwrap()
}

fn pace(server: Server) -> Pace {
    server.pace_with(&Constants::of(ROUND), &PLAIN).unwrap()
}

fn near(ps: u64, expected_s: f64) {
    let found = s_of_ps(ps);
    assert!(
        (found / expected_s - 1.0).abs() < 1e-4,
        "{found} s, by hand {expected_s}"
    );
}

/// 2 x 8.03e9 / (0.8 x 3.35e12) = 5.99254 ms of weights; 32 x 40 us = 1.28 ms of layers; 131,072 / (0.8 x 3.35e12) = 48.907 ns a
/// token in context; 2 x 8.03e9 / (0.5 x 989e12) = 32.477 us of a token's operations; (0.92 x 80 - 16.06 - 3) GB / 131,072.
#[test]
fn an_8b_model_on_an_h100_has_the_pace_worked_by_hand() {
    let pace = pace(server("llama-3-8b", "h100", 1));
    near(pace.step_ps, 1.28e-3);
    near(pace.weights_ps, 5.99254e-3);
    near(pace.context_token_ps, 48.907e-9);
    near(pace.token_ps, 32.477e-6);
    assert_eq!(
        (pace.request_ps, pace.experts_ps, pace.prompt_link_ps),
        (10_000_000, 0, 0)
    );
    assert_eq!(pace.kv_tokens, 416_107);
    assert_eq!((pace.batch_max, pace.tokens_max), (1_024, 8_192));
    // The operations of ten tokens hide behind the weights; those of 510 take 16.5634 ms.
    let decode = pace.step(10, 1_000, Chunks::default());
    near(decode, 1.28e-3 + 5.99254e-3 + 10.0 * 10e-6 + 1_000.0 * 48.907e-9);
    near(
        pace.step(10, 1_000, Chunks::of(500)),
        1.28e-3 + 16.5634e-3 + 10.0 * 10e-6 + 1_000.0 * 48.907e-9,
    );
}

/// 13 chunks of 8,192 tokens at most: 13 x 1.28 ms of layers, 100,000 x 32.477 us of operations, and 100,000 x 100,001 / 2 pairs of
/// 4 x 32 heads x 128 x 32 layers = 524,288 operations at half of the peak, 1.06024 ns each: 5.3012 s. Without attention it would be 3.26 s.
/// Before the queue it waits for two steps of one request, 1.28 + 5.99254 + 0.01 ms each, and 1 us for each of its tokens.
#[test]
fn a_prompt_of_100_000_tokens_takes_what_its_attention_takes() {
    let pace = pace(server("llama-3-8b", "H100", 1));
    let (mut before, mut sum) = (0, 0);
    while before < 100_000 {
        let mut chunk = Chunks::default();
        chunk.add(8_192.min(100_000 - before), before);
        sum += pace.step(0, 0, chunk);
        before += chunk.tokens;
    }
    near(sum, 13.0 * 1.28e-3 + 3.2477 + 5.3012);
    near(pace.to_queue_ps(100_000), 2.0 * 7.28254e-3 + 0.1);
    near(
        ps_of_s(pace.first_token_s(100_000, 0, 0, 0, 0)),
        2.0 * 7.28254e-3 + 0.1 + 0.78e-3 + 13.0 * 1.28e-3 + 3.2477 + 5.3012,
    );
    // What is held is not computed, but read before the queue: 1.28 ms of layers, 5.99254 ms of weights for the last 100.
    near(
        ps_of_s(pace.first_token_s(100_000, 99_900, 0, 0, 0)),
        2.0 * 7.28254e-3 + 0.1 + 0.78e-3 + 1.28e-3 + 5.99254e-3 + 5_050.0 * 1.06024e-9,
    );
}

/// 141.1 GB / 4 / (0.8 x 3.35e12) = 13.1623 ms; 80 x 40 us and 160 all-reduces of 10 us; 4 x 80 x 8,192 x 5 ps = 13.1072 us of links a
/// token; 327,680 / 4 / (0.8 x 3.35e12) = 30.567 ns; (73.6 - 35.275 - 3) GB / 81,920.
#[test]
fn a_70b_model_on_four_gpus_has_the_pace_worked_by_hand() {
    let pace = pace(server("llama-3-70b", "H100", 4));
    near(pace.weights_ps, 13.1623e-3);
    near(pace.step_ps, 3.2e-3 + 1.6e-3);
    near(pace.request_ps, 10e-6 + 13.1072e-6);
    near(pace.prompt_link_ps, 13.1072e-6);
    near(pace.context_token_ps, 30.567e-9);
    assert_eq!(pace.kv_tokens, 431_213);
}

/// 128 experts, 8 of them for a token: one token goes to 1/16 of them, eight to 1 - (15/16)^8 = 40.329 %, thousands to all. All of
/// them are 48 x 128 x 4.72e6 x 2 bytes = 57.999 GB, at half of 3.35 TB/s 34.6264 ms.
#[test]
fn a_step_reads_the_experts_to_which_its_tokens_go() {
    let pace = pace(server("qwen-3-30b-a3b", "H100", 1));
    near(pace.experts_ps, 34.6264e-3);
    for (tokens, part) in [(1, 1.0 / 16.0), (8, 0.403_29), (10_000, 1.0)] {
        near(pace.touched_ps(tokens), part * 34.6264e-3);
    }
    assert_eq!(pace.touched_ps(0), 0);
    // 48 layers of 40 + 10 us; on several GPUs an exchange of 20 us each more, and copies move 3 x 48 x 8 x 2,048 bytes, 3/4 of
    // them to others, at 4 ps, for a quarter of the tokens each.
    near(pace.step_ps, 48.0 * 50e-6);
    let copied = server("qwen-3-30b-a3b", "H100", 4).copied(4).unwrap();
    let copied = self::pace(copied);
    near(copied.step_ps, 48.0 * 70e-6);
    near(
        copied.request_ps,
        (10e-6 + 3.0 * 48.0 * 8.0 * 2_048.0 * 0.75 * 4e-12) / 4.0,
    );
}

/// Latent vectors of 576 numbers in 61 layers, the same on each GPU: on eight GPUs a token takes 70,272 bytes on each.
#[test]
fn latent_attention_is_held_on_each_gpu() {
    let server = server("deepseek-v3", "H200", 8).kept_in("fp8").unwrap();
    assert!((server.gpu_kv_bytes() - 2.0 * 576.0 * 61.0).abs() < 1e-9);
    near(pace(server).context_token_ps, 70_272.0 / (0.8 * 4.8e12));
}

#[test]
fn fewer_bytes_are_read_sooner_and_a_gpu_without_them_is_refused() {
    let fp8 = pace(server("llama-3-8b", "H100", 1).kept_in("fp8").unwrap());
    near(fp8.weights_ps, 5.99254e-3 / 2.0);
    near(fp8.token_ps, 2.0 * 8.03e9 / (0.5 * 1_979e12));
    // Four bits with scales: 4.5 of 16; what is outside of experts keeps two bytes.
    let fp4 = pace(server("llama-3-8b", "B200", 1).kept_in("fp4").unwrap());
    near(fp4.weights_ps, 0.5625 * 8.03e9 / (0.8 * 8e12));
    let int4 = pace(server("llama-3-8b", "A100", 1).kept_in("int4").unwrap());
    near(int4.token_ps, 2.0 * 8.03e9 / (0.5 * 312e12));
    for (precision, gpu, part) in [
        ("fp8", "A100", "fp8 on A100"),
        ("fp4", "H100", "fp4 on H100"),
        ("mxfp9", "H100", "bf16, fp8, fp4, int4"),
    ] {
        let said = server("llama-3-8b", gpu, 1)
            .kept_in(precision)
            .unwrap_err()
            .to_string();
        assert!(said.contains(part), "{said}");
    }
    // TensorRT-LLM keeps keys and values in one byte beside weights of one byte; others do not.
    let engine = |name: &str| {
        Server::of(name, "llama-3-8b", "H100", 1)
            .unwrap()
            .kept_in("fp8")
            .unwrap()
    };
    assert!(engine("trtllm").has_small_kv && !engine("vllm").has_small_kv);
}

/// Two tokens a step: half of its times, for each token of an answer; operations of both are computed.
#[test]
fn speculation_divides_a_step_among_the_tokens_that_it_gives() {
    let plain = server("llama-3-8b", "H100", 1);
    let both = [1.0, 2.0].map(|speculation| pace(Server { speculation, ..plain }));
    assert_eq!(both[1].weights_ps, both[0].weights_ps.div_ceil(2));
    assert_eq!(both[1].token_ps, both[0].token_ps);
    assert_eq!(
        (both[1].tokens_max, both[1].prompt_token_ps),
        (4_096, both[0].prompt_token_ps)
    );
    // A request waits for whole steps.
    assert_eq!(both[1].before_queue_ps, both[0].before_queue_ps);
}

/// vLLM 0.27 takes large batches on GPUs of 70 GiB and more but A100; SGLang's chunks follow the memory.
#[test]
fn defaults_are_those_of_engine_and_gpu() {
    for (engine, gpu, batch_max, step_tokens) in [
        ("vllm", "H100", 1_024, 8_192),
        ("vllm", "A100", 256, 2_048),
        ("vllm", "L40S", 256, 2_048),
        ("sglang", "H200", 2_048, 8_192),
        ("sglang", "B200", 2_048, 16_384),
        ("trtllm", "H100", 2_048, 8_192),
        ("vllm-2024", "H100", 256, 2_048),
    ] {
        let pace = Server::of(engine, "llama-3-8b", gpu, 1).unwrap().pace().unwrap();
        assert_eq!(
            (pace.batch_max, pace.tokens_max),
            (batch_max, step_tokens),
            "{engine} {gpu}"
        );
    }
    let own = Server {
        batch_max: Some(8),
        step_tokens: Some(512),
        memory_share: Some(0.5),
        ..server("llama-3-8b", "H100", 1)
    };
    let own = own.pace().unwrap();
    assert_eq!((own.batch_max, own.tokens_max, own.kv_tokens), (8, 512, 159_759));
}

#[test]
fn a_slower_site_has_longer_steps() {
    let slower = Server {
        own_levels: [2.0, 0.5],
        ..server("llama-3-8b", "H100", 1)
    };
    let (slower, usual) = (slower.pace().unwrap(), Pace::of("llama-3-8b", "H100").unwrap());
    assert!(
        slower.step_ps.abs_diff(2 * usual.step_ps) <= 1
            && slower.weights_ps.abs_diff(2 * usual.weights_ps) <= 1
    );
}

#[test]
fn each_engine_has_levels_and_all_shares_are_shares() {
    for gpu in GPUS.iter() {
        let of = Constants::of_family(gpu.family);
        for share in [of.weights, of.experts, of.kv, of.dense, of.mixture, of.attention] {
            assert!((0.05..=1.0).contains(&share), "{} {share}", gpu.name);
        }
    }
    for engine in &ENGINES {
        assert!(Levels::of_engine(engine.name).efficiency > 0.0);
    }
}

/// The plans of trainings have data sheets too.
#[test]
fn gpus_are_those_of_plans_of_trainings() {
    let mut num = 0;
    for gpu in GPUS.iter() {
        let others = &*pleach_workloads::plans::GPUS;
        let Some(other) = others.iter().find(|other| other.name == gpu.name) else {
            continue;
        };
        num += 1;
        assert_eq!(gpu.memory_gb, other.memory_gb, "{}", gpu.name);
        let precisions = [PlanPrecision::Bf16, PlanPrecision::Fp8, PlanPrecision::Nvfp4];
        for (own, precision) in gpu.tflops.iter().zip(precisions) {
            let other = other.peak(precision);
            assert!(
                (own * 1e12 - other).abs() <= 1e-3 * own * 1e12,
                "{} {precision:?}",
                gpu.name
            );
        }
    }
    assert!(num >= 8, "{num}");
}

#[test]
fn a_model_that_does_not_fit_and_names_that_are_not_there_are_refused() {
    let refusal = |model: &str, gpu: &str, num_gpus: u32| {
        let refused = Pace::split(model, gpu, num_gpus);
        refused.unwrap_err().to_string()
    };
    for (model, gpu, num_gpus, parts) in [
        (
            "llama-3-70b",
            "H100",
            1,
            [
                "llama-3-70b on one H100",
                "at most 70 GB",
                "141 GB a GPU: a replica of 4",
            ],
        ),
        (
            "llama-3-405b",
            "H100",
            8,
            ["on 8 H100", "101 GB a GPU", "another precision"],
        ),
        (
            "llama-3-8b",
            "H100",
            3,
            ["replica_gpus = 3", "1, 2, 4, 8 for llama-3-8b", ""],
        ),
        ("qwen-2.5-7b", "H100", 8, ["replica_gpus = 8", "1, 2, 4 for", ""]),
        (
            "llama",
            "H100",
            1,
            ["llama-3-8b", "mixtral-8x7b", "llama-4-maverick"],
        ),
        ("llama-3-8b", "T4", 1, ["H100, A100, L40S, H200", "MI355X", ""]),
    ] {
        let said = refusal(model, gpu, num_gpus);
        assert!(
            parts.iter().all(|part| said.contains(part)),
            "{model} {num_gpus}: {said}"
        );
    }
    let said = server("qwen-3-30b-a3b", "H100", 4)
        .copied(3)
        .unwrap_err()
        .to_string();
    assert!(said.contains("copies = 3"), "{said}");
}
