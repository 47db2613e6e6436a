//! A package index and a hub for tests, on the loopback: it serves what it is given, and breaks off where it is told to.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use zip::write::{SimpleFileOptions, ZipWriter};

pub struct PackageIndex {
    address: SocketAddr,
    state: Arc<Mutex<IndexState>>,
}

#[derive(Default)]
struct IndexState {
    files: HashMap<String, Vec<u8>>,
    /// Files of which half is sent, and then nothing until they are released.
    stalled: HashSet<String>,
    /// Files of which nothing is sent until they are released.
    delayed: HashSet<String>,
    /// Files of which half is sent the next time.
    breaking: HashSet<String>,
    hub_is_hidden: bool,
    requested_paths: Vec<String>,
}

impl PackageIndex {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shelf = Arc::new(Mutex::new(IndexState::default()));
        let serving = Arc::clone(&shelf);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shelf = Arc::clone(&serving);
                std::thread::spawn(move || serve(stream, &shelf));
            }
        });
        Self { address, state: shelf }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// What was asked for so far: the path, and the range if there was one.
    pub fn requested_paths(&self) -> Vec<String> {
        self.state.lock().unwrap().requested_paths.clone()
    }

    pub fn file(&self, name: &str, bytes: &[u8]) {
        self.state.lock().unwrap().files.insert(name.to_owned(), bytes.to_vec());
    }

    /// A package of version 1.0 that holds this piece beside some code.
    pub fn package(&self, name: &str, piece: &[u8]) {
        let module = name.replace('-', "_");
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Python: >=9\n");
        let wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, bytes) in [
            (format!("{module}/__init__.py"), b"raise SystemExit('nothing of a package is run')".as_slice()),
            (format!("{module}/data/piece.bin"), piece),
            (format!("{module}-1.0.dist-info/METADATA"), metadata.as_bytes()),
            (format!("{module}-1.0.dist-info/WHEEL"), wheel.as_bytes()),
            (format!("{module}-1.0.dist-info/RECORD"), b""),
        ] {
            zip.start_file(path, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        self.file(&format!("{module}-1.0-py3-none-any.whl"), zip.finish().unwrap().get_ref());
    }

    /// Cuts a file in half.
    pub fn truncate(&self, name: &str) {
        let mut shelf = self.state.lock().unwrap();
        let file = shelf.files.get_mut(name).unwrap();
        file.truncate(file.len() / 2);
    }

    pub fn stall_midway(&self, name: &str) {
        self.state.lock().unwrap().stalled.insert(name.to_owned());
    }

    pub fn delay(&self, name: &str) {
        self.state.lock().unwrap().delayed.insert(name.to_owned());
    }

    /// Breaks off what is held, sends what is delayed, and does neither any more.
    pub fn release(&self) {
        let mut shelf = self.state.lock().unwrap();
        shelf.stalled.clear();
        shelf.delayed.clear();
    }

    pub fn break_once(&self, name: &str) {
        self.state.lock().unwrap().breaking.insert(name.to_owned());
    }

    pub fn hide_hub(&self, hidden: bool) {
        self.state.lock().unwrap().hub_is_hidden = hidden;
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<IndexState>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut path, mut range) = (String::new(), None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if path.is_empty() {
            path = line.split(' ').nth(1)?.to_owned();
        } else if let Some(value) = line.to_lowercase().strip_prefix("range: bytes=") {
            range = value.trim_end_matches('-').parse::<usize>().ok();
        }
        if line.is_empty() {
            break;
        }
    }
    let (name, file, broken, hidden) = {
        let mut state = state.lock().ok()?;
        state.requested_paths.push(range.map_or(path.clone(), |from| format!("{path} bytes={from}-")));
        if let Some(package) = path.strip_prefix("/simple/") {
            let prefix = format!("{}-", package.trim_end_matches('/').replace('-', "_"));
            let names = state.files.keys().filter(|name| name.starts_with(&prefix));
            let links: String = names.map(|name| format!("<a href=\"/files/{name}\">{name}</a>")).collect();
            drop(state);
            let status = if links.is_empty() { "404 Not Found" } else { "200 OK" };
            return send_response(&mut stream, status, "content-type: text/html\r\n", links.len(), links.as_bytes());
        }
        let name =
            if path.contains("/resolve/main/m.gguf") { "resolve" } else { path.strip_prefix("/files/").unwrap_or("") };
        let hidden = name == "resolve" && state.hub_is_hidden;
        let broken = state.breaking.remove(name) || state.stalled.contains(name);
        (name.to_owned(), state.files.get(name).cloned(), broken, hidden)
    };
    while state.lock().ok()?.delayed.contains(&name) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let Some(file) = file.filter(|_| !hidden) else {
        return send_response(&mut stream, "404 Not Found", "", 0, b"");
    };
    let from = range.unwrap_or(0).min(file.len());
    let body = &file[from..];
    let (status, headers) = match range {
        Some(_) => {
            ("206 Partial Content", format!("content-range: bytes {from}-{}/{}\r\n", file.len() - 1, file.len()))
        }
        None => ("200 OK", "content-type: application/octet-stream\r\n".to_owned()),
    };
    let sent = if broken { &body[..body.len() / 2] } else { body };
    send_response(&mut stream, status, &headers, body.len(), sent)?;
    while state.lock().ok()?.stalled.contains(&name) {
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(())
}

fn send_response(stream: &mut TcpStream, status: &str, headers: &str, length: usize, body: &[u8]) -> Option<()> {
    write!(stream, "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n").ok()?;
    stream.write_all(body).ok()
}
