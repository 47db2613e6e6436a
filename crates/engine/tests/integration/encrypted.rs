//! Servers behind TLS.

use std::io::BufRead;
use std::process::{Command, Stdio};

use querymend_engine::{Error, open};
use querymend_sql::Cell;

use crate::support::ask;

/// A certificate of an authority of its own, and a small program that speaks TLS in front of a server that was built or set up
/// without.
pub struct Encrypted {
    pub folder: tempfile::TempDir,
    proxy: std::process::Child,
    pub port: u16,
}

/// How a client says that it wants to be understood by nobody else.
#[derive(Debug, Clone, Copy)]
pub enum Greeting {
    /// It asks first, in the clear.
    Postgres,
    /// It begins at once.
    AtOnce,
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        drop(self.proxy.kill());
        drop(self.proxy.wait());
    }
}

const CERTIFICATES: &str = "set -e; cd \"$1\"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=tests -addext keyUsage=keyCertSign
    openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
    printf 'subjectAltName=IP:127.0.0.1,DNS:localhost' > names
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names";

const PROXY: &str = "
import socket, ssl, sys, threading
folder, port, greets = sys.argv[1], int(sys.argv[2]), sys.argv[3] == 'Postgres'
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + '/server.pem', folder + '/server.key')
listening = socket.create_server(('127.0.0.1', 0))
print(listening.getsockname()[1], flush=True)
def pump(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
    except OSError: pass
    for s in (a, b):
        try: s.shutdown(socket.SHUT_RDWR)
        except OSError: pass
def serve(client):
    try:
        if greets:
            client.recv(8)
            client.sendall(b'S')
        client = context.wrap_socket(client, server_side=True)
    except OSError: return
    server = socket.create_connection(('127.0.0.1', port))
    threading.Thread(target=pump, args=(server, client), daemon=True).start()
    pump(client, server)
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
";

impl Encrypted {
    pub fn start(address: &str, greeting: Greeting) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("bash").args(["-c", CERTIFICATES, "-"]).arg(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = address.rsplit_once(':').unwrap().1.split('/').next().unwrap();
        let mut proxy = Command::new("python3");
        proxy.args(["-c", PROXY]).arg(folder.path()).arg(port).arg(format!("{greeting:?}")).stdout(Stdio::piped());
        let mut proxy = proxy.spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(proxy.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { folder, proxy, port: line.trim().parse().unwrap() }
    }
}

/// Asserts that a connection fails until somebody does what the hint says: a certificate is trusted only if somebody says so, and a
/// server without TLS is not asked without it.
pub async fn assert_tls_rejected(address: &str, said: &str, hint: &str) {
    let error = open(address).unwrap().test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{address}: {error:?}");
    assert!(error.to_string().contains(said), "{address}: {error}");
    assert!(error.hint().unwrap().contains(hint), "{address}: {error:?}");
    assert!(!format!("{error:?}").contains(":reader@"), "{error:?}");
}

/// Asserts that queries are answered.
pub async fn assert_connects(address: &str) {
    let engine = open(address).unwrap();
    assert_eq!(ask(&*engine, "SELECT count(*) FROM things").await.unwrap().rows, [[Cell::Integer(3)]], "{address}");
}
