//! `pleach sweep emit`: writes a sweep as a file for Slurm, Kubernetes or Ray.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::say::say;
use crate::flags::emit::{EmitCommand, EmitKubernetesArgs, EmitShared, EmitSlurmArgs};
use crate::flags::is_standard_output;
use pleach_experiments::error::{EXIT_DONE, Error};
use pleach_experiments::run_folder::atomic_file;
use pleach_experiments::sweep::Manifest;
use pleach_experiments::sweep::emit::{self, Call, KubernetesConfig, SlurmConfig, Volume};
use pleach_experiments::sweep::status::Status;

/// Writes the file, and says how it is run.
///
/// # Errors
/// [`Error::Config`] where a setting cannot be used or another file is in the way, as [`Manifest::read`], and [`Error::Io`].
pub fn emit(command: &EmitCommand, print: &mut dyn Write) -> Result<u8, Error> {
    let (shared, name) = match command {
        EmitCommand::Slurm(args) => (&args.shared, "sweep.sbatch"),
        EmitCommand::Kubernetes(args) => (&args.shared, "sweep-job.yaml"),
        EmitCommand::Ray(args) => (&args.shared, "sweep_ray.py"),
    };
    let manifest = Manifest::read(&shared.place.manifest)?;
    let file = shared.file.clone().unwrap_or_else(|| beside(shared, name));
    let call = call(shared, &manifest, &file)?;
    let (text, run) = match command {
        EmitCommand::Slurm(args) => (slurm(args, call, &manifest)?, "bash"),
        EmitCommand::Kubernetes(args) => (kubernetes(args, call)?, "kubectl apply -f"),
        EmitCommand::Ray(_) => (emit::ray(&call)?, "python3"),
    };
    if is_standard_output(&file) {
        say(print, &text)?;
        return Ok(EXIT_DONE);
    }
    write(&file, &text, shared.force)?;
    if !shared.quiet {
        let file = file.display();
        say(print, &format!("{file}\nto run it: {run} {file}\n"))?;
    }
    Ok(EXIT_DONE)
}

/// `name` in the folder of the results, without a `./` before it.
fn beside(shared: &EmitShared, name: &str) -> PathBuf {
    match shared.place.out() {
        here if here == Path::new(".") => PathBuf::from(name),
        out => out.join(name),
    }
}

fn text_of(flag: &str, path: &Path) -> Result<String, Error> {
    let hint = "Scripts are text: give it a name that is.";
    path.to_str()
        .map(str::to_string)
        .ok_or_else(|| Error::config(flag, path.display(), "a path in UTF-8", hint))
}

fn call(shared: &EmitShared, manifest: &Manifest, file: &Path) -> Result<Call, Error> {
    let path = text_of("manifest", &shared.place.manifest)?;
    let out = text_of("out", shared.place.out())?;
    Ok(Call {
        program: shared.program.clone(),
        file: text_of("file", file)?,
        num_retries: shared.retries,
        num_parallel: shared.parallel,
        num_cpus: shared.cpus,
        ..Call::new(manifest, path, out)
    })
}

fn slurm(args: &EmitSlurmArgs, call: Call, manifest: &Manifest) -> Result<String, Error> {
    let logs = args.logs.clone().unwrap_or_else(|| beside(&args.shared, "logs"));
    let config = SlurmConfig {
        indexes: match args.all {
            true => (0..manifest.num_units()).collect(),
            false => Status::of(manifest, args.shared.place.out()).to_run(),
        },
        logs: text_of("logs", &logs)?,
        options: args.option.clone(),
        gather: !args.no_gather,
    };
    emit::slurm(&call, &config)
}

fn kubernetes(args: &EmitKubernetesArgs, call: Call) -> Result<String, Error> {
    let volume = match (&args.claim, &args.host_path) {
        (Some(name), _) => Volume::Claim(name.clone()),
        (None, path) => Volume::HostPath(path.clone().unwrap_or_default()),
    };
    let config = KubernetesConfig {
        image: args.image.clone(),
        volume,
        sub_path: args.sub_path.clone(),
        mount: args.mount.clone(),
        memory: args.memory.clone(),
        namespace: args.namespace.clone(),
    };
    let name = args.shared.place.manifest.file_name().unwrap_or_default();
    let folder = args.mount.trim_end_matches('/');
    let call = Call {
        manifest: format!("{folder}/{}", text_of("manifest", Path::new(name))?),
        out: args.mount.clone(),
        ..call
    };
    emit::kubernetes(&call, &config)
}

/// Writes a file that people may have changed since: not over other words, unless that is asked for.
fn write(file: &Path, text: &str, force: bool) -> Result<(), Error> {
    match fs::read(file) {
        Ok(there) if there == text.as_bytes() => return Ok(()),
        Ok(_) if !force => {
            let hint = "Another file is there: give another --file, or --force to replace it.";
            return Err(Error::config(
                "file",
                file.display(),
                "a new file, or the same words",
                hint,
            ));
        }
        _ => {}
    }
    atomic_file::write(file, text.as_bytes())
}
