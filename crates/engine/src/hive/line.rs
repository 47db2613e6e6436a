//! The line to a server: TCP, in secret or not, and the frames that stand around each message once a name and a password have
//! been given.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::stop::Stop;

/// So long may a connection take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// How often a line that is silent looks at the clock and the flag.
const LOOK: Duration = Duration::from_millis(20);
/// How long an answer is waited for once the query must end; whoever asked has gone by then. Servers are asked to answer sooner
/// than that, also where they have nothing to say yet, so that the line can be kept.
const GRACE: Duration = Duration::from_secs(1);
/// How long the first word is waited for: a server that expects to be greeted in another way says none.
const GREETING: Duration = Duration::from_secs(10);
/// A server that says nothing for so long is gone, whatever the limits are.
const SILENCE: Duration = Duration::from_secs(600);
/// The largest frame. It is only a bound on what is read at once; what an answer may take is counted elsewhere.
const LARGEST_FRAME: usize = 256 << 20;
/// The longest thing that is said while names and passwords are exchanged.
const LONGEST_GREETING: usize = 64 << 10;

/// What is said of a line that was given up because the query must end.
pub(super) const GIVEN_UP: &str = "the query was to end";

enum Stream {
    Open(TcpStream),
    Secret(Box<StreamOwned<ClientConnection, TcpStream>>),
}

pub(super) struct Line {
    stream: Stream,
    /// Whether each message goes in a frame: its length in four bytes, then the message.
    framed: bool,
    /// What came and was not read yet.
    incoming: Vec<u8>,
    read: usize,
    /// What is left of the frame that is being received.
    frame: usize,
    outgoing: Vec<u8>,
    stop: Stop,
    /// Since when the wait is known to be over.
    told: Option<Instant>,
    patience: Duration,
}

impl Line {
    /// Calls a server. In secret, if there are certificates to trust.
    pub(super) fn open(host: &str, port: u16, tls: Option<&Arc<ClientConfig>>, stop: &Stop) -> io::Result<Self> {
        let mut failed = io::Error::new(ErrorKind::NotFound, "the name of the host leads nowhere");
        for address in (host, port).to_socket_addrs()? {
            if stop.reason().is_some() {
                return Err(io::Error::new(ErrorKind::TimedOut, GIVEN_UP));
            }
            match TcpStream::connect_timeout(&address, stop.left(CONNECT).max(LOOK)) {
                Ok(stream) => return Self::on(stream, host, tls, stop),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn on(stream: TcpStream, host: &str, tls: Option<&Arc<ClientConfig>>, stop: &Stop) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(CONNECT))?;
        let stream = match tls {
            None => Stream::Open(stream),
            Some(config) => {
                let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
                let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                Stream::Secret(Box::new(StreamOwned::new(connection, stream)))
            }
        };
        let stop = stop.clone();
        let (incoming, outgoing) = (Vec::new(), Vec::new());
        Ok(Self { stream, framed: false, incoming, read: 0, frame: 0, outgoing, stop, told: None, patience: GREETING })
    }

    /// From now on this is what ends the wait for an answer.
    pub(super) fn heed(&mut self, stop: &Stop) {
        self.stop = stop.clone();
        self.told = None;
    }

    /// The server is the one that was looked for, and may take its time.
    pub(super) fn trust(&mut self) {
        self.patience = SILENCE;
    }

    /// Gives a name and a password in the way that SASL calls PLAIN. The inner error is the server's refusal.
    pub(super) fn greet(&mut self, user: &str, password: &str) -> io::Result<Result<(), String>> {
        const START: u8 = 1;
        const OK: u8 = 2;
        const COMPLETE: u8 = 5;
        let mut say = |status: u8, words: &[u8]| {
            self.outgoing.push(status);
            self.outgoing.extend(u32::try_from(words.len()).unwrap_or(u32::MAX).to_be_bytes());
            self.outgoing.extend(words);
        };
        say(START, b"PLAIN");
        say(OK, format!("\0{user}\0{password}").as_bytes());
        self.flush()?;
        loop {
            let mut head = [0; 5];
            self.read_exact(&mut head)?;
            let [status, length @ ..] = head;
            let length = u32::from_be_bytes(length) as usize;
            if !(START..=COMPLETE).contains(&status) || length > LONGEST_GREETING {
                return Err(io::Error::new(ErrorKind::InvalidData, "the server does not speak SASL"));
            }
            let mut words = vec![0; length];
            self.read_exact(&mut words)?;
            match status {
                COMPLETE => break,
                START | OK => {}
                _ => return Ok(Err(String::from_utf8_lossy(&words).into_owned())),
            }
        }
        self.framed = true;
        Ok(Ok(()))
    }

    /// Waits until something comes.
    fn receive(&mut self) -> io::Result<()> {
        self.incoming.resize(32 << 10, 0);
        self.read = 0;
        let begun = Instant::now();
        let length = loop {
            // Also where something comes all the time, only never the end of it.
            if self.stop.reason().is_some() && self.told.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                break Err(io::Error::new(ErrorKind::TimedOut, GIVEN_UP));
            }
            let received = match &mut self.stream {
                Stream::Open(stream) => stream.read(&mut self.incoming),
                Stream::Secret(stream) => stream.read(&mut self.incoming),
            };
            match received {
                Ok(0) => break Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => break Ok(length),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
            if begun.elapsed() >= self.patience {
                break Err(io::Error::new(ErrorKind::TimedOut, "it says nothing"));
            }
        };
        self.incoming.truncate(*length.as_ref().unwrap_or(&0));
        length.map(drop)
    }

    fn raw(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.read == self.incoming.len() {
            self.receive()?;
        }
        let length = to.len().min(self.incoming.len() - self.read);
        to[..length].copy_from_slice(&self.incoming[self.read..self.read + length]);
        self.read += length;
        Ok(length)
    }
}

impl Read for Line {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if !self.framed || to.is_empty() {
            return self.raw(to);
        }
        while self.frame == 0 {
            let mut length = [0; 4];
            let mut filled = 0;
            while filled < length.len() {
                filled += self.raw(&mut length[filled..])?;
            }
            self.frame = u32::from_be_bytes(length) as usize;
            if self.frame > LARGEST_FRAME {
                return Err(io::Error::new(ErrorKind::InvalidData, "the frame is too large"));
            }
        }
        let most = to.len().min(self.frame);
        let length = self.raw(&mut to[..most])?;
        self.frame -= length;
        Ok(length)
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut message = std::mem::take(&mut self.outgoing);
        if self.framed {
            let length = u32::try_from(message.len()).map_err(io::Error::other)?;
            message.splice(0..0, length.to_be_bytes());
        }
        match &mut self.stream {
            Stream::Open(stream) => stream.write_all(&message),
            Stream::Secret(stream) => {
                // The secret is agreed on first, for which the server has to answer.
                let begun = Instant::now();
                while stream.conn.is_handshaking() {
                    match stream.conn.complete_io(&mut stream.sock) {
                        Ok(_) => {}
                        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                            if self.stop.reason().is_some() {
                                return Err(io::Error::new(ErrorKind::TimedOut, GIVEN_UP));
                            }
                            if begun.elapsed() >= CONNECT {
                                return Err(io::Error::new(ErrorKind::TimedOut, "it does not answer in secret (TLS)"));
                            }
                        }
                        Err(error) => return Err(error),
                    }
                }
                stream.write_all(&message)?;
                stream.flush()
            }
        }
    }
}
