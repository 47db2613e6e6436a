//! Encrypted connections to servers: a certificate is trusted only if somebody says so, and a server that speaks no TLS is not asked
//! without it. For PostgreSQL that stands in `postgres.rs`; what Trino does with certificates that are not known, in its attacks.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use querymend_engine::{Error, Standing, open};
use querymend_sql::Cell;
use querymend_testing::exclusive;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::asking::ask;
use crate::encrypted::{Encrypted, Greeting};

fn address(name: &str) -> Option<String> {
    let address = std::env::var(format!("QUERYMEND_TEST_{}", name.to_uppercase())).ok();
    if address.is_none() {
        eprintln!("skipped on {name}: it is not there; scripts/engines.sh up {name}");
    }
    address
}

/// Whether it is said that there is no secure connection, which will be so until somebody does something, and what that is.
async fn is_refused(address: &str, said: &str, hint: &str) {
    let error = open(address).unwrap().test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{address}: {error:?}");
    assert!(error.to_string().contains(said), "{address}: {error}");
    assert!(error.hint().unwrap().contains(hint), "{address}: {error:?}");
    assert!(!format!("{error:?}").contains(":reader@"), "{error:?}");
}

async fn is_answered(address: &str) {
    let engine = open(address).unwrap();
    assert_eq!(ask(&*engine, "SELECT count(*) FROM things").await.unwrap().rows, [[Cell::Integer(3)]], "{address}");
}

#[tokio::test]
async fn f06_mysql_is_trusted_by_its_certificate_alone() {
    let Some(address) = address("mysql") else { return };
    // Others end the sessions of the owner.
    let _lock = exclusive("mysql");
    let mut owner =
        Conn::new(Opts::from_url(&address.replace("reader:reader@", "owner:owner@")).unwrap()).await.unwrap();
    let file: String = owner.query_first("SELECT @@ssl_cert").await.unwrap().unwrap();
    is_answered(&format!("{address}?ssl-mode=required&ssl-ca={file}")).await;
    let checks = open(&format!("{address}?ssl-ca={file}")).unwrap().examine().await.unwrap();
    assert!(checks.iter().all(|check| check.standing != Standing::Bad), "{checks:?}");

    is_refused(&format!("{address}?ssl-mode=required"), "certificate", "ssl-ca").await;
    // It is made out for an address, and not for this name.
    let named = address.replace("127.0.0.1", "localhost");
    is_refused(&format!("{named}?ssl-mode=required&ssl-ca={file}"), "certificate", "ssl-ca").await;
}

/// Passes on all that a server says, except that it could be spoken to in secret.
async fn without_tls(server: &str) -> u16 {
    let place = server.split_once('@').unwrap().1.split('/').next().unwrap().to_string();
    let listening = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listening.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listening.accept().await.unwrap();
            let mut server = TcpStream::connect(&place).await.unwrap();
            tokio::spawn(async move {
                let mut greeting = vec![0; 4096];
                let length = server.read(&mut greeting).await.unwrap();
                // Its version ends with a zero; a number, eight bytes and another zero follow, and then what it can do.
                let version = greeting[5..].iter().position(|byte| *byte == 0).unwrap();
                greeting[5 + version + 1 + 4 + 8 + 1 + 1] &= !0x08;
                client.write_all(&greeting[..length]).await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
            });
        }
    });
    port
}

#[tokio::test]
async fn f06_a_mysql_server_without_tls_is_not_asked_without_it() {
    let Some(address) = address("mysql") else { return };
    let plain = format!("mysql://reader:reader@127.0.0.1:{}/app", without_tls(&address).await);
    is_answered(&plain).await;
    is_refused(&format!("{plain}?ssl-mode=required"), "offers no encrypted connections", "ssl-mode=disabled").await;
}

#[tokio::test]
async fn f06_spark_is_trusted_by_its_certificate_alone() {
    let Some(address) = address("spark") else { return };
    let encrypted = Encrypted::start(&address, Greeting::AtOnce);
    let place = format!("spark://reader:reader@127.0.0.1:{}/default?auth=plain&tls=true", encrypted.port);
    is_answered(&format!("{place}&sslrootcert={}", encrypted.folder.path().join("ca.pem").display())).await;
    is_refused(&place, "no secure connection", "sslrootcert").await;
    // It is asked in the clear by nobody who wants TLS.
    is_refused(&format!("{address}&tls=true"), "no secure connection", "tls=false").await;
}

#[tokio::test]
async fn f06_trino_without_tls_is_not_asked_without_it() {
    // Whoever speaks HTTP says so when TLS is spoken to them.
    let listening = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listening.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listening.accept().await.unwrap();
            let mut hello = [0; 64];
            drop(client.read(&mut hello).await);
            drop(client.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await);
        }
    });
    for scheme in ["trino", "presto"] {
        let address = format!("{scheme}://reader:reader@127.0.0.1:{port}/memory/default?tls=true");
        is_refused(&address, "no secure connection", "sslrootcert").await;
    }
}
