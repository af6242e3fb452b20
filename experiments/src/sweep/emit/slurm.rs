//! A job array of Slurm: one script that is the array's, and that submits itself where a person runs it.

use super::call::Call;
use super::words::{check, directive, shell};
use crate::error::Error;
use crate::sweep::index_list::compress;

/// Indexes that a Slurm takes unless `MaxArraySize` says more.
/// # Source
/// `slurm.conf(5)`: the default is 1001, and the largest index one less.
const INDEX_MAX: usize = 1000;

/// Length of a list of indexes, at most; half of what `sbatch` reads as one word (`BUFSIZ`, 8192).
const LIST_LENGTH_MAX: usize = 4096;

/// What only Slurm asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmConfig {
    /// Units to run, sorted.
    pub indexes: Vec<usize>,
    /// Folder of the logs.
    pub logs: String,
    /// Words of `sbatch`, each an option with its value: `--partition=cpu`.
    pub options: Vec<String>,
}

impl SlurmConfig {
    fn check(&self) -> Result<(), Error> {
        Error::refuse_if(
            self.indexes.is_empty(),
            "units to run",
            "none",
            "at least one",
            "Every unit has a result: `pleach sweep gather` merges them.",
        )?;
        check("logs", &self.logs)?;
        Error::refuse_if(
            self.logs.contains('\\'),
            "logs",
            &self.logs,
            "no backslash",
            "Slurm takes a backslash in the name of a log for its own sign: give another --logs.",
        )?;
        for option in &self.options {
            check("option", option)?;
            let name = option.split('=').next().unwrap_or_default();
            let ours = [
                "--array",
                "--output",
                "--requeue",
                "--no-requeue",
                "--wrap",
                "--dependency",
            ];
            Error::refuse_if(
                !name.starts_with("--") || name.len() < 3 || ours.contains(&name),
                "option",
                option,
                "one option of sbatch in its long form, as --account=ml, that the script does not set itself",
                "Repeat the flag for each option.",
            )?;
        }
        Ok(())
    }
}

/// The indexes as an array; of a list that is too long, all from the first to the last. Those that are done end at once.
fn list(indexes: &[usize]) -> String {
    let list = compress(indexes);
    match (indexes.first(), indexes.last()) {
        (Some(first), Some(last)) if list.len() > LIST_LENGTH_MAX => format!("{first}-{last}"),
        _ => list,
    }
}

/// The script.
///
/// # Errors
/// [`Error::Problem`] where there is nothing to run, or a word cannot stand in a script.
pub fn slurm(call: &Call, config: &SlurmConfig) -> Result<String, Error> {
    call.check()?;
    config.check()?;
    let array = format!("{}%{}", list(&config.indexes), call.num_parallel);
    // Of a name of a log Slurm replaces `%A`; two signs stand for one.
    let logs = config.logs.replace('%', "%%");
    let log = format!("--output={logs}/%A_%a.log");
    let cpus = format!("--cpus-per-task={}", call.num_cpus);
    let name = format!("--job-name={}", call.name());
    let mut head = vec![name, format!("--array={array}"), cpus, log];
    head.extend(["--requeue", "--open-mode=append"].map(str::to_string));
    head.extend_from_slice(&config.options);
    let head: String = head
        .iter()
        .map(|option| format!("#SBATCH {}\n", directive(option)))
        .collect();
    let large = config.indexes.last().is_some_and(|last| *last > INDEX_MAX);
    let large = if large {
        "#\n# Indexes above 1000: MaxArraySize of slurm.conf has to be above the last of them (its default is 1001).\n"
    } else {
        ""
    };
    let file = shell(&call.file);
    let submit = submit(call, config, &logs);
    Ok(format!(
        r#"#!/bin/bash
# Sweep {label}: {num} of {all} units as a job array. Written by `pleach sweep emit slurm`.
#
# To run it, in the folder from which its relative paths count:
#   bash {file}
# makes the folder of the logs, and submits the array and a job behind it that merges the results. `sbatch` with this file
# submits the array alone, and the folder of the logs has to be there. Units that are done are not run again, so both may be
# repeated at any time. To list only what is still missing, write this file again (`pleach sweep emit slurm ... --force`).
#
# Exit codes of a unit, and what the script does:
#   0          done; the result is in units/K/result.json
#   75         worth another try: requeued, at most {retries} times, counted by SLURM_RESTART_COUNT
#   above 128  killed by a signal: requeued likewise
#   2          its configuration or an input cannot be used: not tried again
#   1, others  failed, see its log and units/K/error.json: not tried again
# A requeued task waits until its credential has run out, two minutes unless slurm.conf sets cred_expire.
{large}{head}
pleach={program}
manifest={manifest}
out={out}

run_unit() {{
  local task="${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID" tries=${{SLURM_RESTART_COUNT:-0}} code
  export RAYON_NUM_THREADS=${{SLURM_CPUS_PER_TASK:-{cpus}}}
  # Cancelled, or out of time: what the unit says then is no reason to come back.
  trap 'exit 143' TERM
  "$pleach" sweep unit --manifest "$manifest" --out "$out" --index "$SLURM_ARRAY_TASK_ID"
  code=$?
  if [ "$code" != 75 ] && [ "$code" -le 128 ]; then exit "$code"; fi
  if [ "$tries" -lt {retries} ]; then
    echo "unit $SLURM_ARRAY_TASK_ID ended with exit code $code: requeued, time $((tries + 1)) of {retries}"
    # Slurm ends this script while it waits. Where it does not, RequeueExit=75 of slurm.conf may bring the task back.
    scontrol requeue "$task" && sleep 60
    exit 75
  fi
  echo "unit $SLURM_ARRAY_TASK_ID ended with exit code $code: given up after {retries} requeues" >&2
  exit 1
}}

{submit}
if [ -n "${{SLURM_ARRAY_TASK_ID:-}}" ]; then run_unit; else submit "$0"; fi
"#,
        label = call.label,
        num = config.indexes.len(),
        all = call.num_units,
        retries = call.num_retries,
        cpus = call.num_cpus,
        program = shell(&call.program),
        manifest = shell(&call.manifest),
        out = shell(&call.out),
    ))
}

/// The function that submits.
fn submit(call: &Call, config: &SlurmConfig, logs: &str) -> String {
    let mut words = vec![
        format!("--job-name={}-gather", call.name()),
        format!("--output={logs}/gather-%j.log"),
    ];
    words.extend_from_slice(&config.options);
    let words: Vec<String> = words.iter().map(|word| shell(word)).collect();
    // What is in the quoted document reaches sbatch as it stands.
    format!(
        r#"submit() {{
  local array gather
  mkdir -p -- {folder} || exit 1
  array=$(sbatch --parsable "$1") || exit 1
  # A cluster's name may stand behind the id.
  array=${{array%%;*}}
  echo "array $array: {num} units; logs in "{folder}
  gather=$(sbatch --parsable --dependency=afterany:"$array" {words} <<'END_OF_GATHER'
#!/bin/bash
exec {program} sweep gather --manifest {manifest} --out {out}
END_OF_GATHER
  ) || exit 1
  echo "gather ${{gather%%;*}}: merges the results when no task is left"
}}
"#,
        folder = shell(&config.logs),
        num = config.indexes.len(),
        words = words.join(" "),
        program = shell(&call.program),
        manifest = shell(&call.manifest),
        out = shell(&call.out),
    )
}

#[cfg(test)]
mod tests {
    use super::super::call::tests::hostile;
    use super::*;

    fn config() -> SlurmConfig {
        SlurmConfig {
            indexes: vec![0, 1, 2, 5],
            logs: "runs/logs 50% #1".to_string(),
            options: vec!["--comment=it's mine".to_string()],
        }
    }

    #[test]
    fn the_header_asks_for_what_was_asked_for_and_keeps_every_word_whole() {
        let script = slurm(&hostile(), &config()).unwrap();
        let head: Vec<&str> = script
            .lines()
            .filter_map(|line| line.strip_prefix("#SBATCH "))
            .collect();
        assert_eq!(
            head,
            [
                "--job-name=sweep-load-0123abcd",
                "--array=0-2,5%4",
                "--cpus-per-task=2",
                "\"--output=runs/logs 50%% #1/%A_%a.log\"",
                "--requeue",
                "--open-mode=append",
                "\"--comment=it's mine\"",
            ]
        );
        assert!(script.contains("4 of 6 units") && script.contains("SLURM_RESTART_COUNT"));
        assert!(!script.contains("MaxArraySize"));
    }

    #[test]
    fn a_script_of_large_indexes_says_what_slurm_needs() {
        let large = SlurmConfig {
            indexes: vec![7, 1001],
            ..config()
        };
        let script = slurm(&hostile(), &large).unwrap();
        assert!(script.contains("MaxArraySize"));
    }

    #[test]
    fn a_list_that_sbatch_could_not_read_becomes_a_range() {
        assert_eq!(list(&[1, 3, 4]), "1,3-4");
        let odd: Vec<usize> = (0..5000).map(|index| 2 * index + 1).collect();
        assert_eq!(list(&odd), "1-9999");
    }

    #[test]
    fn what_cannot_be_a_script_is_refused_with_the_way_out() {
        let refused = |config: SlurmConfig| slurm(&hostile(), &config).unwrap_err().to_string();
        assert!(
            refused(SlurmConfig {
                indexes: vec![],
                ..config()
            })
            .contains("gather")
        );
        assert!(
            refused(SlurmConfig {
                logs: "a\\b".into(),
                ..config()
            })
            .contains("backslash")
        );
        for option in ["-p cpu", "--", "--array=0-3", "--output=x", "--comment=a\n#b"] {
            let options = vec![option.to_string()];
            assert!(
                refused(SlurmConfig { options, ..config() }).contains("option"),
                "{option}"
            );
        }
    }
}
