//! Generates the gRPC code and descriptor set, and the list of embedded web app files.
//!
//! The web app is embedded only if it was built.

use std::fs;
use std::path::{Path, PathBuf};

use prost::Message;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(["querymend/v1/querymend.proto"], ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(out.join("querymend.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure().build_transport(false).compile_fds(files)?;
    page(&out)
}

/// Lists the files that `scripts/page.sh` builds into `web/dist`.
///
/// The directory exists even if the web app was not built.
fn page(out: &Path) -> Outcome<()> {
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../web/dist");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    list(&folder, &mut files)?;
    files.sort();
    let packed = |file: &Path, end: &str| {
        let packed = PathBuf::from(format!("{}.{end}", file.display()));
        if packed.is_file() { format!("Some(include_bytes!({packed:?}))") } else { "None".to_owned() }
    };
    let mut text = String::from("/// The files of the page.\nstatic FILES: &[StaticFile] = &[\n");
    for file in files.iter().filter(|file| !file.extension().is_some_and(|end| end == "br" || end == "gz")) {
        let path = file.strip_prefix(&folder)?.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let path = format!("/{}", path.collect::<Vec<_>>().join("/"));
        let (brotli, gzip) = (packed(file, "br"), packed(file, "gz"));
        text.push_str(&format!(
            "    StaticFile {{ path: {path:?}, plain: include_bytes!({file:?}), brotli: {brotli}, gzip: {gzip} }},\n"
        ));
    }
    text.push_str("];\n");
    fs::write(out.join("page.rs"), text)?;
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() { list(&entry.path(), files)? } else { files.push(entry.path()) }
    }
    Ok(())
}
