//! Transport to a server: TCP with optional TLS, and the framing of messages after a SASL
//! handshake.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::deadline::Deadline;

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a blocked read checks the deadline and the cancel flag.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time to wait for a response after the deadline, when the caller is already gone. Servers are
/// configured to respond sooner than that, even if a query is still running, so that the connection
/// can be reused.
const GRACE_PERIOD: Duration = Duration::from_secs(1);
/// Timeout for the first response: a server that expects another handshake does not respond at all.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout after which a silent server is considered dead, regardless of the limits.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum frame size. It only bounds a single read; the memory of a response is limited
/// separately.
const MAX_FRAME_BYTES: usize = 256 << 20;
/// Maximum size of a SASL message.
const MAX_SASL_MESSAGE_BYTES: usize = 64 << 10;

/// Message of the error for a read that was abandoned because of its deadline.
pub(super) const INTERRUPTED_MESSAGE: &str = "the query was stopped";

enum TransportStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

pub(super) struct HiveTransport {
    stream: TransportStream,
    /// `true` if each message is sent in a frame: its length in four bytes, then the message.
    is_framed: bool,
    /// Received bytes, some of which may already be consumed.
    incoming: Vec<u8>,
    read_offset: usize,
    /// Number of bytes left in the frame that is being received.
    frame_remaining: usize,
    outgoing: Vec<u8>,
    deadline: Deadline,
    /// Time at which the deadline was first found to have passed.
    stopped_at: Option<Instant>,
    read_timeout: Duration,
}

impl HiveTransport {
    /// Connects to a server, with TLS if a configuration is given.
    pub(super) fn open(
        host: &str,
        port: u16,
        tls: Option<&Arc<ClientConfig>>,
        deadline: &Deadline,
    ) -> io::Result<Self> {
        let mut failed = io::Error::new(ErrorKind::NotFound, "the host name cannot be resolved");
        for address in (host, port).to_socket_addrs()? {
            if deadline.stop_reason().is_some() {
                return Err(io::Error::new(ErrorKind::TimedOut, INTERRUPTED_MESSAGE));
            }
            match TcpStream::connect_timeout(&address, deadline.remaining(CONNECT_TIMEOUT).max(POLL_INTERVAL)) {
                Ok(stream) => return Self::from_stream(stream, host, tls, deadline),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn from_stream(
        stream: TcpStream,
        host: &str,
        tls: Option<&Arc<ClientConfig>>,
        deadline: &Deadline,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(POLL_INTERVAL))?;
        stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
        let stream = match tls {
            None => TransportStream::Plain(stream),
            Some(config) => {
                let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
                let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                TransportStream::Tls(Box::new(StreamOwned::new(connection, stream)))
            }
        };
        let stop = deadline.clone();
        let (incoming, outgoing) = (Vec::new(), Vec::new());
        Ok(Self {
            stream,
            is_framed: false,
            incoming,
            read_offset: 0,
            frame_remaining: 0,
            outgoing,
            deadline: stop,
            stopped_at: None,
            read_timeout: HANDSHAKE_TIMEOUT,
        })
    }

    /// Sets the deadline of subsequent reads.
    pub(super) fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
        self.stopped_at = None;
    }

    /// Switches to the longer idle timeout once the server's identity is established.
    pub(super) fn use_idle_timeout(&mut self) {
        self.read_timeout = IDLE_TIMEOUT;
    }

    /// Authenticates with SASL PLAIN. The inner error is the server's rejection.
    pub(super) fn authenticate_plain(&mut self, user: &str, password: &str) -> io::Result<Result<(), String>> {
        const START: u8 = 1;
        const OK: u8 = 2;
        const COMPLETE: u8 = 5;
        let mut queue_message = |status: u8, words: &[u8]| {
            self.outgoing.push(status);
            self.outgoing.extend(u32::try_from(words.len()).unwrap_or(u32::MAX).to_be_bytes());
            self.outgoing.extend(words);
        };
        queue_message(START, b"PLAIN");
        queue_message(OK, format!("\0{user}\0{password}").as_bytes());
        self.flush()?;
        loop {
            let mut head = [0; 5];
            self.read_exact(&mut head)?;
            let [status, length @ ..] = head;
            let length = u32::from_be_bytes(length) as usize;
            if !(START..=COMPLETE).contains(&status) || length > MAX_SASL_MESSAGE_BYTES {
                return Err(io::Error::new(ErrorKind::InvalidData, "the server does not support SASL"));
            }
            let mut words = vec![0; length];
            self.read_exact(&mut words)?;
            match status {
                COMPLETE => break,
                START | OK => {}
                _ => return Ok(Err(String::from_utf8_lossy(&words).into_owned())),
            }
        }
        self.is_framed = true;
        Ok(Ok(()))
    }

    /// Waits for data.
    fn receive(&mut self) -> io::Result<()> {
        self.incoming.resize(32 << 10, 0);
        self.read_offset = 0;
        let begun = Instant::now();
        let length = loop {
            // Checked on every iteration, because a server may keep sending without ever finishing.
            if self.deadline.stop_reason().is_some()
                && self.stopped_at.get_or_insert_with(Instant::now).elapsed() >= GRACE_PERIOD
            {
                break Err(io::Error::new(ErrorKind::TimedOut, INTERRUPTED_MESSAGE));
            }
            let received = match &mut self.stream {
                TransportStream::Plain(stream) => stream.read(&mut self.incoming),
                TransportStream::Tls(stream) => stream.read(&mut self.incoming),
            };
            match received {
                Ok(0) => break Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => break Ok(length),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
            if begun.elapsed() >= self.read_timeout {
                break Err(io::Error::new(ErrorKind::TimedOut, "it does not respond"));
            }
        };
        self.incoming.truncate(*length.as_ref().unwrap_or(&0));
        length.map(drop)
    }

    fn read_unframed(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.read_offset == self.incoming.len() {
            self.receive()?;
        }
        let length = to.len().min(self.incoming.len() - self.read_offset);
        to[..length].copy_from_slice(&self.incoming[self.read_offset..self.read_offset + length]);
        self.read_offset += length;
        Ok(length)
    }
}

impl Read for HiveTransport {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if !self.is_framed || to.is_empty() {
            return self.read_unframed(to);
        }
        while self.frame_remaining == 0 {
            let mut length = [0; 4];
            let mut filled = 0;
            while filled < length.len() {
                filled += self.read_unframed(&mut length[filled..])?;
            }
            self.frame_remaining = u32::from_be_bytes(length) as usize;
            if self.frame_remaining > MAX_FRAME_BYTES {
                return Err(io::Error::new(ErrorKind::InvalidData, "the frame is too large"));
            }
        }
        let most = to.len().min(self.frame_remaining);
        let length = self.read_unframed(&mut to[..most])?;
        self.frame_remaining -= length;
        Ok(length)
    }
}

impl Write for HiveTransport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut message = std::mem::take(&mut self.outgoing);
        if self.is_framed {
            let length = u32::try_from(message.len()).map_err(io::Error::other)?;
            message.splice(0..0, length.to_be_bytes());
        }
        match &mut self.stream {
            TransportStream::Plain(stream) => stream.write_all(&message),
            TransportStream::Tls(stream) => {
                // The TLS handshake needs responses of the server before data can be written.
                let begun = Instant::now();
                while stream.conn.is_handshaking() {
                    match stream.conn.complete_io(&mut stream.sock) {
                        Ok(_) => {}
                        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                            if self.deadline.stop_reason().is_some() {
                                return Err(io::Error::new(ErrorKind::TimedOut, INTERRUPTED_MESSAGE));
                            }
                            if begun.elapsed() >= CONNECT_TIMEOUT {
                                return Err(io::Error::new(ErrorKind::TimedOut, "the TLS handshake timed out"));
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
