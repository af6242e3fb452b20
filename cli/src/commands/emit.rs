//! `pleach sweep emit`: writes a sweep as a file for Slurm, Kubernetes or Ray.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::say::say;
use crate::flags::emit::{EmitArgs, EmitSystem};
use crate::flags::is_standard_output;
use pleach_experiments::error::{EXIT_DONE, Error};
use pleach_experiments::run_folder::atomic_file;
use pleach_experiments::sweep::Manifest;
use pleach_experiments::sweep::emit::{self, Call, KubernetesConfig, MOUNT, SlurmConfig, Volume};
use pleach_experiments::sweep::status::Status;

/// Writes the file, and says how it is run.
///
/// # Errors
/// [`Error::Problem`] where a setting cannot be used or another file is in the way, as [`Manifest::read`], and [`Error::Problem`].
pub fn emit(args: &EmitArgs, print: &mut dyn Write) -> Result<u8, Error> {
    refuse_of_others(args)?;
    let (name, run) = match args.system {
        EmitSystem::Slurm => ("sweep.sbatch", "bash"),
        EmitSystem::Kubernetes => ("sweep-job.yaml", "kubectl apply -f"),
        EmitSystem::Ray => ("sweep_ray.py", "python3"),
    };
    let manifest = Manifest::read(&args.place.manifest)?;
    let file = args.file.clone().unwrap_or_else(|| beside(args, name));
    let call = call(args, &manifest, &file)?;
    let text = match args.system {
        EmitSystem::Slurm => slurm(args, call, &manifest)?,
        EmitSystem::Kubernetes => kubernetes(args, call)?,
        EmitSystem::Ray => emit::ray(&call)?,
    };
    if is_standard_output(&file) {
        say(print, &text)?;
        return Ok(EXIT_DONE);
    }
    write(&file, &text, args.target.force)?;
    if !args.words.quiet {
        let file = file.display();
        say(print, &format!("{file}\nto run it: {run} {file}\n"))?;
    }
    Ok(EXIT_DONE)
}

/// Refuses flags of another system.
fn refuse_of_others(args: &EmitArgs) -> Result<(), Error> {
    let slurm = args.slurm.given().filter(|_| args.system != EmitSystem::Slurm);
    let kubernetes = args.kubernetes.given();
    let kubernetes = kubernetes.filter(|_| args.system != EmitSystem::Kubernetes);
    let of_others = slurm.zip(Some("slurm")).or(kubernetes.zip(Some("kubernetes")));
    match of_others {
        Some((flag, system)) => Err(Error::config(
            flag,
            "given",
            format!("none: it is a flag of {system} alone"),
            format!("Leave it out, or: pleach sweep emit {system}."),
        )),
        None => Ok(()),
    }
}

/// `name` in the folder of the results, without a `./` before it.
fn beside(args: &EmitArgs, name: &str) -> PathBuf {
    match args.place.out() {
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

fn call(args: &EmitArgs, manifest: &Manifest, file: &Path) -> Result<Call, Error> {
    let path = text_of("manifest", &args.place.manifest)?;
    let out = text_of("out", args.place.out())?;
    Ok(Call {
        program: args.program.clone(),
        file: text_of("file", file)?,
        num_retries: args.retries,
        num_parallel: args.parallel,
        num_cpus: args.cpus,
        ..Call::new(manifest, path, out)
    })
}

fn slurm(args: &EmitArgs, call: Call, manifest: &Manifest) -> Result<String, Error> {
    let flags = &args.slurm;
    let logs = flags.logs.clone().unwrap_or_else(|| beside(args, "logs"));
    let config = SlurmConfig {
        indexes: Status::of(manifest, args.place.out()).to_run(),
        logs: text_of("logs", &logs)?,
        options: flags.option.clone(),
    };
    emit::slurm(&call, &config)
}

fn kubernetes(args: &EmitArgs, call: Call) -> Result<String, Error> {
    let flags = &args.kubernetes;
    let volume = match (&flags.claim, &flags.host_path) {
        (Some(name), _) => Volume::Claim(name.clone()),
        (None, Some(path)) => Volume::HostPath(path.clone()),
        (None, None) => {
            let allowed = "a PersistentVolumeClaim (--claim), or a folder of the node (--host-path)";
            let hint = "The manifest and the results lie there.";
            return Err(Error::config("claim", "none", allowed, hint));
        }
    };
    let config = KubernetesConfig {
        image: flags.image.clone().unwrap_or_default(),
        volume,
        memory: flags.memory.clone(),
    };
    let name = args.place.manifest.file_name().unwrap_or_default();
    let call = Call {
        manifest: format!("{MOUNT}/{}", text_of("manifest", Path::new(name))?),
        out: MOUNT.to_string(),
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
