//! A package index and a hub for tests, on the loopback: it serves what it is given, and breaks off where it is told to.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use zip::write::{SimpleFileOptions, ZipWriter};

pub struct Index {
    address: SocketAddr,
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    files: HashMap<String, Vec<u8>>,
    /// Files of which half is sent, and then nothing until they are released.
    held: HashSet<String>,
    /// Files of which nothing is sent until they are released.
    delayed: HashSet<String>,
    /// Files of which half is sent the next time.
    breaking: HashSet<String>,
    hub_is_hidden: bool,
    asked: Vec<String>,
}

impl Index {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        let serving = Arc::clone(&shelf);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shelf = Arc::clone(&serving);
                std::thread::spawn(move || serve(stream, &shelf));
            }
        });
        Self { address, shelf }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// What was asked for so far: the path, and the range if there was one.
    pub fn asked(&self) -> Vec<String> {
        self.shelf.lock().unwrap().asked.clone()
    }

    pub fn file(&self, name: &str, bytes: &[u8]) {
        self.shelf.lock().unwrap().files.insert(name.to_owned(), bytes.to_vec());
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
        let mut shelf = self.shelf.lock().unwrap();
        let file = shelf.files.get_mut(name).unwrap();
        file.truncate(file.len() / 2);
    }

    pub fn hold(&self, name: &str) {
        self.shelf.lock().unwrap().held.insert(name.to_owned());
    }

    pub fn delay(&self, name: &str) {
        self.shelf.lock().unwrap().delayed.insert(name.to_owned());
    }

    /// Breaks off what is held, sends what is delayed, and does neither any more.
    pub fn release(&self) {
        let mut shelf = self.shelf.lock().unwrap();
        shelf.held.clear();
        shelf.delayed.clear();
    }

    pub fn break_once(&self, name: &str) {
        self.shelf.lock().unwrap().breaking.insert(name.to_owned());
    }

    pub fn hide_hub(&self, hidden: bool) {
        self.shelf.lock().unwrap().hub_is_hidden = hidden;
    }
}

fn serve(mut stream: TcpStream, shelf: &Mutex<Shelf>) -> Option<()> {
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
        let mut shelf = shelf.lock().ok()?;
        shelf.asked.push(range.map_or(path.clone(), |from| format!("{path} bytes={from}-")));
        if let Some(package) = path.strip_prefix("/simple/") {
            let prefix = format!("{}-", package.trim_end_matches('/').replace('-', "_"));
            let names = shelf.files.keys().filter(|name| name.starts_with(&prefix));
            let links: String = names.map(|name| format!("<a href=\"/files/{name}\">{name}</a>")).collect();
            drop(shelf);
            let status = if links.is_empty() { "404 Not Found" } else { "200 OK" };
            return answer(&mut stream, status, "content-type: text/html\r\n", links.len(), links.as_bytes());
        }
        let name =
            if path.contains("/resolve/main/m.gguf") { "resolve" } else { path.strip_prefix("/files/").unwrap_or("") };
        let hidden = name == "resolve" && shelf.hub_is_hidden;
        let broken = shelf.breaking.remove(name) || shelf.held.contains(name);
        (name.to_owned(), shelf.files.get(name).cloned(), broken, hidden)
    };
    while shelf.lock().ok()?.delayed.contains(&name) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let Some(file) = file.filter(|_| !hidden) else {
        return answer(&mut stream, "404 Not Found", "", 0, b"");
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
    answer(&mut stream, status, &headers, body.len(), sent)?;
    while shelf.lock().ok()?.held.contains(&name) {
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(())
}

fn answer(stream: &mut TcpStream, status: &str, headers: &str, length: usize, body: &[u8]) -> Option<()> {
    write!(stream, "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n").ok()?;
    stream.write_all(body).ok()
}
