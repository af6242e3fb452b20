//! The list of Mooncake on one replica: without bound it finds what a set of all blocks so far would, and less with less memory.

use pleach_serving::llm::{Event, Pace, Replica, Request, Work, file, ps_of_s};

/// Tokens of prompts that a replica found, each request after the one before had ended.
fn found(rows: &[Request], ids: &std::sync::Arc<[u32]>, kv_tokens: u64) -> u64 {
    let pace = Pace {
        kv_tokens,
        ..Pace::of("llama-3-8b", "H100").unwrap()
    };
    let mut replica = Replica::with_blocks(pace, ids);
    let mut told = Vec::new();
    for (id, row) in rows.iter().enumerate() {
        let work = Work {
            id: id as u32,
            prompt_tokens: row.prompt_tokens,
            output_tokens: row.output_tokens,
            blocks: row.blocks,
            ..Work::default()
        };
        replica.send(id as u64 * ps_of_s(200.0), work);
    }
    replica.advance(u64::MAX, &mut told);
    let ended = told.iter().filter(|told| told.1 == Event::Last);
    assert_eq!(ended.count(), rows.len());
    replica.reused_tokens()
}

/// 37.3 % of all tokens of prompts; by blocks it is 36.6 %, as counted apart.
#[test]
fn a_replica_without_bound_finds_all_blocks_of_mooncake_that_came_before() {
    let Some(path) = pleach_tests::data("traces/mooncake_2025/conversation_trace.jsonl.gz") else {
        return;
    };
    let list = file::read(&path).unwrap().requests;
    let rows = list.rows();
    let all: u64 = rows.iter().map(|row| u64::from(row.prompt_tokens)).sum();
    let share = |kv_tokens: u64| found(rows, list.block_ids(), kv_tokens) as f64 / all as f64;
    let unbounded = share(1_000_000_000);
    assert!((unbounded - list.block_share().unwrap()).abs() < 1e-12);
    assert!((unbounded - 0.373_379_9).abs() < 1e-6, "{unbounded}");
    let mut less = unbounded;
    for kv_tokens in [20_000_000, 5_000_000, 1_600_000, 411_529] {
        let share = share(kv_tokens);
        println!("{kv_tokens} tokens: {:.1} %", 100.0 * share);
        assert!(share < less, "{share} of {kv_tokens}, {less} of more");
        less = share;
    }
}
