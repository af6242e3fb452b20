//! Lists of requests in files: tables by the names of their columns (`FORMS`), and Mooncake's.
//!
//! | format | recognised by | source |
//! |---|---|---|
//! | ours | columns `arrival_s`, `prompt_tokens`, `output_tokens`; also `session`, `prefix_tokens`, `wait_s` | |
//! | Azure LLM inference | columns `TIMESTAMP`, `ContextTokens`, `GeneratedTokens` | Patel et al., ISCA'24; AzurePublicDataset |
//! | BurstGPT | columns `Timestamp`, `Request tokens`, `Response tokens`; also `Session ID` | Wang et al., KDD'25 |
//! | Mooncake | a JSON object a line with `timestamp` (ms), `input_length`, `output_length`, `hash_ids` | Qin et al., FAST'25 |
//!
//! Text may be gzipped. Rows without a prompt or an answer are left out and counted, and in a Mooncake list those whose blocks are
//! not those of their prompt.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pleach_tables::clock::{TimeFormat, UTC};
use pleach_tables::{Account, Lines, Problem, Table, replace};
use serde::Deserialize;

use crate::llm::request::{
    ARRIVAL_S_MAX, After, BLOCK_TOKENS, Blocks, Request, Requests, TOKENS_MAX, WAIT_S_MIN,
};

/// Most blocks of a list: as many as there are tokens in its prompts at most, within numbers of 32 bits.
const BLOCKS_MAX: usize = 100_000_000;
/// So many blocks in common make one conversation: the first is often a system prompt that all share. *Assumed.*
const COMMON_BLOCKS_MIN: usize = 2;
/// What to do about a row.
const FIX: &str = "mend the row or leave it out";

/// A list that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The requests; the first arrives at 0.
    pub requests: Requests,
    /// The format.
    pub format: &'static str,
    /// Rows read, and those that were left out, by reason.
    pub account: Account,
}

const NO_PROMPT: &str = "no token in its prompt";
const NO_ANSWER: &str = "no token in its answer: it failed, or nothing was asked for";
const OTHER_BLOCKS: &str = "as many blocks as its prompt has not: a block holds 512 tokens";

/// Whether a file has requests: the columns of one of the formats, or an object of Mooncake's in its first line.
#[must_use]
pub fn is_requests(path: &Path) -> bool {
    let first = Lines::open(path).and_then(|mut lines| Ok(lines.next_line()?.map(str::to_string)));
    let Ok(Some(first)) = first else {
        return false;
    };
    if first.trim_start().starts_with('{') {
        return first.contains("hash_ids") || first.contains("input_length");
    }
    let known = ["ContextTokens", "prompt_tokens"];
    Table::open(path, &[]).is_ok_and(|table| known.iter().any(|name| table.column(name).is_some()))
}

/// Reads a list in any of the formats.
///
/// # Errors
/// A file that is not there, a format that is not known, a value out of range with its line and column.
pub fn read(path: &Path) -> Result<Read, Problem> {
    let mut lines = Lines::open(path)?;
    let is_json = lines
        .next_line()?
        .is_some_and(|line| line.trim_start().starts_with('{'));
    let (mut block_ids, mut account) = (Vec::new(), Account::default());
    let mut waits_s = Vec::new();
    let (rows, format) = if is_json {
        (mooncake(path, &mut block_ids, &mut account)?, "Mooncake")
    } else {
        table(path, &mut waits_s, &mut account)?
    };
    if rows.is_empty() {
        let lines: Vec<String> = account.lines("rows").collect();
        let message = format!(
            "no request is left: {}; {}",
            account.sums("rows"),
            lines.join("; ")
        );
        return Err(whole(path, message));
    }
    let first_s = rows.iter().map(|row| row.arrival_s).fold(f64::INFINITY, f64::min);
    let rows = rows.into_iter().map(|row| Request {
        arrival_s: row.arrival_s - first_s,
        ..row
    });
    let requests = if waits_s.iter().any(Option::is_some) {
        in_a_loop(rows.zip(waits_s).collect())
    } else {
        Requests::with_blocks(rows.collect(), Arc::from(block_ids))
    };
    let requests = requests.map_err(|error| whole(path, error.to_string()))?;
    Ok(Read {
        requests,
        format,
        account,
    })
}

/// Requests of which those with a wait come after the answer to the one before them in their conversation.
fn in_a_loop(mut rows: Vec<(Request, Option<f64>)>) -> Result<Requests, Problem> {
    rows.sort_by(|(one, _), (other, _)| one.arrival_s.total_cmp(&other.arrival_s));
    let mut last: HashMap<u32, u32> = HashMap::new();
    let after = rows.iter().enumerate().map(|(place, (row, wait_s))| {
        let before = last.insert(row.session, place as u32);
        let (place, wait_s) = (before?, (*wait_s)?);
        Some(After { place, wait_s })
    });
    let after = after.collect();
    Requests::in_a_loop(rows.into_iter().map(|(row, _)| row).collect(), after)
}

/// A complaint about a file as a whole.
fn whole(path: &Path, message: String) -> Problem {
    Problem::data(path, message)
}

/// Whether a row is a request; what is none is counted.
fn is_request(prompt_tokens: u32, output_tokens: u32, account: &mut Account) -> bool {
    account.rows_read += 1;
    match (prompt_tokens, output_tokens) {
        (0, _) => account.leave_out(NO_PROMPT, 1),
        (_, 0) => account.leave_out(NO_ANSWER, 1),
        _ => return true,
    }
    false
}

/// A table of requests: what its columns are called.
struct Form {
    name: &'static str,
    arrival: &'static str,
    /// Whether an arrival is a date; else seconds.
    is_dated: bool,
    prompt: &'static str,
    output: &'static str,
    /// The conversation, a number; where none is named each request is one of its own.
    session: &'static str,
    prefix: &'static str,
    /// From the answer to the conversation's last request to this one, s; empty where it comes at its arrival.
    wait: &'static str,
}

/// All forms; the last is taken where none of the others has its columns.
const FORMS: [Form; 3] = [
    Form {
        name: "Azure LLM inference",
        arrival: "TIMESTAMP",
        is_dated: true,
        prompt: "ContextTokens",
        output: "GeneratedTokens",
        session: "",
        prefix: "",
        wait: "",
    },
    Form {
        name: "BurstGPT",
        arrival: "Timestamp",
        is_dated: false,
        prompt: "Request tokens",
        output: "Response tokens",
        session: "Session ID",
        prefix: "",
        wait: "",
    },
    Form {
        name: "ours",
        arrival: "arrival_s",
        is_dated: false,
        prompt: "prompt_tokens",
        output: "output_tokens",
        session: "session",
        prefix: "prefix_tokens",
        wait: "wait_s",
    },
];

fn table(
    path: &Path,
    waits_s: &mut Vec<Option<f64>>,
    account: &mut Account,
) -> Result<(Vec<Request>, &'static str), Problem> {
    let mut table = Table::open(path, &[])?;
    let [.., ours] = &FORMS;
    let known = FORMS.iter().find(|form| table.column(form.prompt).is_some());
    let form = known.unwrap_or(ours);
    table = Table::open(path, &[form.arrival, form.prompt, form.output])?;
    let names = [
        form.arrival,
        form.prompt,
        form.output,
        form.session,
        form.prefix,
        form.wait,
    ];
    let [arrival, prompt, output, session, prefix, wait] = names.map(|name| table.column(name));
    let (mut rows, mut first_s) = (Vec::new(), None);
    while table.next_row()? {
        let arrival_s = if form.is_dated {
            let Some(at_s) = TimeFormat::Iso.read(table.text(arrival), &UTC) else {
                return Err(table.refuse(arrival, "a time such as 2023-11-16 18:15:46.68", FIX));
            };
            at_s - *first_s.get_or_insert(at_s)
        } else {
            table.number(arrival, 0.0, ARRIVAL_S_MAX, FIX)?
        };
        let [prompt_tokens, output_tokens] = [count(&table, prompt)?, count(&table, output)?];
        if !is_request(prompt_tokens, output_tokens, account) {
            continue;
        }
        let prefix_tokens = match table.text(prefix).is_empty() {
            true => 0,
            false => count(&table, prefix)?,
        };
        if prefix_tokens >= prompt_tokens {
            return Err(table.refuse(prefix, &format!("less than the prompt's {prompt_tokens}"), FIX));
        }
        waits_s.push(match table.text(wait).is_empty() {
            true => None,
            false => Some(table.number(wait, WAIT_S_MIN, ARRIVAL_S_MAX, FIX)?),
        });
        rows.push(Request {
            arrival_s,
            prompt_tokens,
            output_tokens,
            session: match table.text(session).is_empty() {
                true => rows.len() as u32,
                false => table.number(session, 0.0, f64::from(u32::MAX), FIX)? as u32,
            },
            prefix_tokens,
            blocks: Blocks::default(),
        });
    }
    Ok((rows, form.name))
}

fn count(table: &Table, column: Option<usize>) -> Result<u32, Problem> {
    table
        .number(column, 0.0, f64::from(TOKENS_MAX), FIX)
        .map(|number| number as u32)
}

/// A line of a Mooncake list.
#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    hash_ids: Vec<u64>,
}

/// A block's id stands for all text up to its end, so a known id is a prefix of one that came before. Whole blocks of each
/// prompt are added to `block_ids`, numbered as they come.
fn mooncake(path: &Path, block_ids: &mut Vec<u32>, account: &mut Account) -> Result<Vec<Request>, Problem> {
    let mut lines = Lines::open(path)?;
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let (mut rows, mut num_sessions) = (Vec::new(), 0);
    let mut homes: HashMap<u64, u32> = HashMap::new();
    while let Some(text) = lines.next_line()? {
        let parsed = serde_json::from_str::<Line>(text).map_err(|error| error.to_string());
        let line = parsed.map_err(|error| lines.error("-", format!("{error}; {FIX}")))?;
        if !is_request(line.input_length, line.output_length, account) {
            continue;
        }
        if line.hash_ids.len() != line.input_length.div_ceil(BLOCK_TOKENS) as usize {
            let cell = format!("{} blocks for {} tokens", line.hash_ids.len(), line.input_length);
            account.leave_out_for(OTHER_BLOCKS, &cell);
            continue;
        }
        let known = line
            .hash_ids
            .iter()
            .take_while(|id| homes.contains_key(id))
            .count();
        let (session, common) = if known >= COMMON_BLOCKS_MIN {
            (homes[&line.hash_ids[known - 1]], known)
        } else {
            num_sessions += 1;
            (num_sessions - 1, 0)
        };
        for id in line.hash_ids.iter().skip(known.min(COMMON_BLOCKS_MIN - 1)) {
            homes.insert(*id, session);
        }
        let prefix_tokens = (common as u32)
            .saturating_mul(BLOCK_TOKENS)
            .min(line.input_length - 1);
        let num_whole = (line.input_length / BLOCK_TOKENS) as usize;
        let whole = &line.hash_ids[..num_whole.min(line.hash_ids.len())];
        if block_ids.len() + whole.len() > BLOCKS_MAX {
            return Err(lines.error(
                "hash_ids",
                format!("more than {BLOCKS_MAX} blocks; give a part of the list"),
            ));
        }
        let blocks = Blocks {
            first: block_ids.len() as u32,
            num: whole.len() as u32,
        };
        for id in whole {
            let next = numbers.len() as u32;
            block_ids.push(*numbers.entry(*id).or_insert(next));
        }
        rows.push(Request {
            arrival_s: line.timestamp / 1e3,
            prompt_tokens: line.input_length,
            output_tokens: line.output_length,
            session,
            prefix_tokens,
            blocks,
        });
    }
    Ok(rows)
}

/// Writes a list in our format, without blocks.
///
/// # Errors
/// What the system says; nothing is left behind then.
pub fn write(path: &Path, requests: &Requests) -> Result<(), Problem> {
    let after = requests.after();
    replace(path, |out| {
        let wait = if after.is_empty() { "" } else { ",wait_s" };
        writeln!(
            out,
            "arrival_s,prompt_tokens,output_tokens,session,prefix_tokens{wait}"
        )?;
        for (place, row) in requests.rows().iter().enumerate() {
            let Request {
                arrival_s,
                prompt_tokens,
                output_tokens,
                session,
                prefix_tokens,
                blocks: _,
            } = row;
            write!(
                out,
                "{arrival_s},{prompt_tokens},{output_tokens},{session},{prefix_tokens}"
            )?;
            match after.get(place) {
                Some(Some(After { wait_s, .. })) => writeln!(out, ",{wait_s}")?,
                Some(None) => writeln!(out, ",")?,
                None => writeln!(out)?,
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(name: &str, text: &str) -> Result<Read, Problem> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn a_written_list_is_read_as_it_was() {
        let generator = crate::llm::generate::RequestGenerator {
            num_requests: 500,
            turns: 3.0,
            ..Default::default()
        };
        let list = generator.draw(pleach_workloads::Seed(1)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        write(&path, &list).unwrap();
        let first_s = list.rows()[0].arrival_s;
        let shifted = list.rows().iter().map(|row| Request {
            arrival_s: row.arrival_s - first_s,
            ..*row
        });
        assert_eq!(read(&path).unwrap().requests.rows(), shifted.collect::<Vec<_>>());
    }

    #[test]
    fn a_written_loop_is_read_as_it_was_and_cut_where_it_is_cut() {
        let generator = crate::llm::generate::RequestGenerator {
            num_requests: 500,
            rate_per_s: 5.0,
            turns: 3.0,
            sessions: crate::llm::generate::Sessions::Closed,
            ..Default::default()
        };
        let list = generator.draw(pleach_workloads::Seed(1)).unwrap();
        let list = list.part(0..500).unwrap();
        assert!(list.after().iter().flatten().count() > 50);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        write(&path, &list).unwrap();
        assert_eq!(read(&path).unwrap().requests, list);
        let half = list.part(250..500).unwrap();
        let kept = half.after().iter().flatten().count();
        let whole = list.after()[250..].iter().flatten();
        assert_eq!(kept, whole.filter(|after| after.place >= 250).count());
    }

    /// As Mooncake's list of tools and agents has it: all tasks share the system prompt (block 7), and each step of a task begins
    /// with the whole of the one before. Two tasks of three and two steps.
    #[test]
    fn a_mooncake_list_of_agents_grows_by_step() {
        let line = |ms: u32, length: u32, ids: &str| {
            format!(
                "{{\"timestamp\": {ms}, \"input_length\": {length}, \"output_length\": 52, \"hash_ids\": {ids}}}\n"
            )
        };
        let text = [
            line(27_000, 1100, "[7, 8, 9]"),
            line(28_500, 900, "[7, 20]"),
            line(30_000, 1700, "[7, 8, 9, 10]"),
            line(33_000, 1500, "[7, 20, 21]"),
            line(36_000, 2100, "[7, 8, 9, 10, 11]"),
        ];
        let read = read_text("toolagent.jsonl", &text.concat()).unwrap();
        let seen = read.requests.rows().iter();
        let seen = seen.map(|row| (row.arrival_s, row.session, row.prefix_tokens));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [
                (0.0, 0, 0),
                (1.5, 1, 0),
                (3.0, 0, 1536),
                (6.0, 1, 1024),
                (9.0, 0, 2048)
            ]
        );
        // Of 7,300 tokens stood in whole blocks before: 7; 7, 8; 7; 7, 8, 9.
        assert_eq!(read.requests.block_share(), Some(7.0 * 512.0 / 7300.0));
    }

    #[test]
    fn azure_lists_are_read_and_rows_without_an_answer_left_out() {
        let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
            2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,0\n2023-11-16 18:15:51.2224670,879,55\n";
        let read = read_text("azure.csv", text).unwrap();
        assert_eq!(read.format, "Azure LLM inference");
        assert_eq!(read.account.sums("rows"), "3 rows read, 2 kept, 1 left out");
        let rows = read.requests.rows();
        assert_eq!((rows[0].prompt_tokens, rows[1].output_tokens), (374, 55));
        assert!(
            (rows[1].arrival_s - 4.541_877).abs() < 1e-6,
            "{}",
            rows[1].arrival_s
        );
    }

    #[test]
    fn burstgpt_is_read_as_published_and_requests_that_failed_are_counted() {
        let text = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
            5,1001,2.1,ChatGPT,472,18,490,Conversation log\n45,1001,1.2,ChatGPT,1087,230,1317,Conversation log\n\
            118,,0.4,GPT-4,417,0,417,API log\n151,,3.3,GPT-4,1360,203,1563,API log\n";
        let read = read_text("burst.csv", text).unwrap();
        assert_eq!((read.format, read.requests.rows().len()), ("BurstGPT", 3));
        assert_eq!(read.account.sums("rows"), "4 rows read, 3 kept, 1 left out");
        let rows = read.requests.rows();
        assert_eq!(
            (rows[0].session, rows[1].session, rows[1].arrival_s),
            (1001, 1001, 40.0)
        );
    }

    /// Blocks 1 and 2 are the second request's too: the same conversation. The third shares only block 0.
    #[test]
    fn mooncake_blocks_in_common_make_a_conversation() {
        let text = "{\"timestamp\": 0, \"input_length\": 1400, \"output_length\": 10, \"hash_ids\": [0, 1, 2]}\n\
            {\"timestamp\": 2500, \"input_length\": 2000, \"output_length\": 5, \"hash_ids\": [0, 1, 2, 3]}\n\
            {\"timestamp\": 3000, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [0, 9]}\n";
        let read = read_text("mooncake.jsonl", text).unwrap();
        let seen = read
            .requests
            .rows()
            .iter()
            .map(|row| (row.session, row.prefix_tokens, row.arrival_s));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [(0, 0, 0.0), (0, 1536, 2.5), (1, 0, 3.0)]
        );
        // Whole blocks, as they come: 2 of 1,400 tokens, 3 of 2,000, 1 of 700; of 4,100 tokens 2 x 512 + 512 came before.
        let ids = read.requests.block_ids();
        let of_each: Vec<&[u32]> = read
            .requests
            .rows()
            .iter()
            .map(|row| row.blocks.of(ids))
            .collect();
        assert_eq!(of_each, [&[0, 1][..], &[0, 1, 2], &[0]]);
        assert_eq!(read.requests.block_share(), Some(1536.0 / 4100.0));
    }

    /// Of 20 tokens there is one block of 512, of 1,025 there are three.
    #[test]
    fn requests_without_an_answer_or_with_blocks_of_another_size_are_left_out_and_counted() {
        let text = "arrival_s,prompt_tokens,output_tokens\n0,100,10\n1,200,0\n2,0,30\n3,5,5\n";
        let read = read_text("ours.csv", text).unwrap();
        assert_eq!(read.requests.rows().len(), 2);
        let lines: Vec<String> = read.account.lines("rows").collect();
        assert_eq!(
            (read.account.sums("rows").as_str(), lines.len()),
            ("4 rows read, 2 kept, 2 left out", 2)
        );
        let line = |length: u32, ids: &str| {
            format!(
                "{{\"timestamp\": 0, \"input_length\": {length}, \"output_length\": 5, \"hash_ids\": {ids}}}\n"
            )
        };
        let text = [line(10, "[0]"), line(20, "[0, 1]"), line(1025, "[0, 1, 2]")].concat();
        let read = read_text("mooncake.jsonl", &text).unwrap();
        let lines: Vec<String> = read.account.lines("rows").collect();
        assert_eq!(read.account.sums("rows"), "3 rows read, 2 kept, 1 left out");
        assert!(
            lines[0].contains("such as `2 blocks for 20 tokens`: 1 rows"),
            "{lines:?}"
        );
        let refused = read_text("mooncake.jsonl", &line(64, "[0, 1, 2, 3]"))
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("no request is left") && refused.contains("512 tokens"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_line_and_column() {
        let bad = [
            (
                "arrival_s,prompt_tokens,output_tokens\n0,1,1\n5,x,1\n",
                "line 3, column prompt_tokens",
            ),
            (
                "arrival_s,prompt_tokens,output_tokens,prefix_tokens\n0,9,1,9\n",
                "less than the prompt's 9",
            ),
            ("arrival_s,prompt_tokens\n0,1\n", "output_tokens"),
            (
                "arrival_s,prompt_tokens,output_tokens,session,wait_s\n0,9,1,1,\n1,9,1,1,0\n",
                "line 3, column wait_s",
            ),
            ("{\"timestamp\": 0}\n", "missing field `input_length`"),
            (
                "TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,1,1\n",
                "column TIMESTAMP",
            ),
        ];
        for (text, expected) in bad {
            let error = read_text("list", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
