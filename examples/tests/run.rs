//! Runs every example and compares what it prints with the output in its header.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum number of lines of an example.
const MAX_LINES: usize = 100;

/// Returns name and source text of every example.
fn sources() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let mut found: Vec<(String, String)> = files
        .filter(is_rust)
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    found.sort();
    found
}

/// Returns the program that cargo built for an example, beside the folder of this test program.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let program = profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.exists(), "{name} is not built; hint: cargo build -p querymend-examples --examples");
    program
}

/// Returns the source text with the `text` block of its doc comment replaced.
fn with_output(source: &str, output: &str) -> String {
    let (before, rest) = source.split_once("//! ```text\n").unwrap();
    let (_, after) = rest.split_once("//! ```\n").unwrap();
    let block: String = output.lines().map(|line| format!("//! {line}").trim_end().to_owned() + "\n").collect();
    format!("{before}//! ```text\n{block}//! ```\n{after}")
}

/// `QUERYMEND_BLESS=1` writes the output into the header.
#[test]
fn prints_the_output_in_its_header() {
    let bless = std::env::var_os("QUERYMEND_BLESS").is_some();
    for (name, source) in sources() {
        let output = Command::new(program(&name)).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        let expected = with_output(&source, &printed);
        if bless {
            fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{name}.rs")), &expected).unwrap();
        }
        assert!(!printed.is_empty() && (bless || source == expected), "{name} printed\n{printed}");
    }
}

#[test]
fn is_short() {
    for (name, source) in sources() {
        let lines = source.lines().count();
        assert!(lines <= MAX_LINES, "{name} has {lines} lines, more than {MAX_LINES}");
    }
}

#[test]
fn readme_and_manifest_list_every_example() {
    let names: BTreeSet<String> = sources().into_iter().map(|(name, _)| name).collect();
    let readme = include_str!("../README.md").lines().filter_map(|line| line.strip_prefix("| [`")?.split('`').next());
    assert_eq!(readme.map(str::to_owned).collect::<BTreeSet<_>>(), names);
    let manifest =
        include_str!("../Cargo.toml").lines().filter_map(|line| line.strip_prefix("path = \"")?.split('.').next());
    assert_eq!(manifest.map(str::to_owned).collect::<BTreeSet<_>>(), names);
}
