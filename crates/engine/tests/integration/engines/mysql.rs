//! MySQL and MariaDB.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use querymend_sql::Cell;
use querymend_testing::lock_server;

use super::{ConnectionCounter, Kinds, Server, Subject};
use crate::support::address;

pub fn subject() -> Option<Subject> {
    let address = address("mysql")?;
    let text = |text: &str| Cell::Text(text.into());
    Some(Subject {
        name: "mysql",
        // Recursion ends by itself after a thousand rounds, so that rows are multiplied instead: three to the thirtieth.
        endless: "SELECT count(*) FROM things a, things b, things c, things d, things e, things f, things g, things h, things i, \
                  things j, things k, things l, things m, things n, things o, things p, things q, things r, things s, things t, \
                  things u, things v, things w, things x, things y, things z, things aa, things ab, things ac, things ad \
                  WHERE a.weight + b.weight > ad.weight + 100",
        flood: "SELECT a.id, 'padding' FROM things a, things b, things c, things d, things e, things f, things g, things h, \
                things i, things j, things k, things l, things m, things n, things o",
        kinds: Kinds {
            largest_integer: "SELECT 9223372036854775807",
            smallest_integer: "SELECT -9223372036854775807 - 1",
            decimal: Some("SELECT CAST('12345678901234567890.50' AS DECIMAL(30, 2))"),
            float: "SELECT 0.1e0",
            text: "SELECT 'Ελληνικά, עברית, 日本語, 🦀 and O''Clock'",
            date: Some("SELECT DATE '2024-02-29'"),
            time: Some("SELECT TIME '13:14:15.500'"),
            timestamp: Some("SELECT TIMESTAMP '2024-02-29 13:14:15.678000'"),
            // Moments carry no zone; the session's is UTC.
            zoned: None,
            // TRUE is the number 1.
            truth: None,
            null: "SELECT NULL",
            bytes: Some("SELECT x'0FA0'"),
            list: None,
            json: Some("SELECT JSON_OBJECT('a', JSON_ARRAY(1, 'x'))"),
            own: vec![
                ("SELECT TRUE", Cell::Integer(1)),
                ("SELECT CAST(18446744073709551615 AS UNSIGNED)", Cell::Decimal("18446744073709551615".into())),
                ("SELECT 12.50", Cell::Decimal("12.50".into())),
                ("SELECT b'101' + 0", Cell::Integer(5)),
                ("SELECT TIME '-838:59:59'", text("-838:59:59")),
                // Backslashes escape, double quotes are text, and texts side by side are one.
                ("SELECT 'it\\'s' \"double\"", text("it'sdouble")),
                ("SELECT CAST('x' AS BINARY)", Cell::Binary("78".into())),
                ("SELECT FROM_UNIXTIME(1)", text("1970-01-01 00:00:01")),
            ],
        },
        moments: "SELECT CAST('2024-03-15' AS DATE) AS d, CAST('2023-12-31 23:10:05' AS DATETIME) AS t",
        unicode_table: "größen 表",
        is_slow: false,
        transpile_sample: None,
        connection_counter: Some(ConnectionCounter {
            isolated_address: |address| Box::pin(isolated_address(address)),
            count: |address| Box::pin(count_connections(address)),
        }),
        has_keys: true,
        server: Some(Server { wrong_password: Some(address.replace("reader:reader@", "reader:wrong-password@")) }),
        folder: None,
        address,
    })
}

/// Creates a user of its own: each user sees their own connections.
async fn isolated_address(address: &str) -> String {
    let _lock = lock_server("mysql");
    let mut owner = Conn::from_url(address.replacen("reader:reader@", "owner:owner@", 1)).await.unwrap();
    for sql in [
        "CREATE OR REPLACE USER faults@'127.0.0.1' IDENTIFIED BY 'unspoken'",
        "GRANT SELECT ON app.* TO faults@'127.0.0.1'",
    ] {
        owner.query_drop(sql).await.unwrap();
    }
    owner.disconnect().await.unwrap();
    address.replacen("reader:reader@", "faults:unspoken@", 1)
}

async fn count_connections(address: &str) -> i64 {
    let mut connection = Conn::from_url(address).await.unwrap();
    let sql = "SELECT count(*) - 1 FROM information_schema.processlist";
    let others = connection.query_first(sql).await.unwrap().unwrap();
    connection.disconnect().await.unwrap();
    others
}

mod attacks {
    //! MariaDB: the server counts the statements of each kind that it ran; of an approved text it counts one that asks, and no other.

    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use mysql_async::prelude::Queryable;
    use mysql_async::{Conn, Row};
    use querymend_engine::open;
    use querymend_sql::EngineError;
    use querymend_testing::{ServerLock, hang_timeout, lock_server};

    use crate::attacks::corpora::Material;
    use crate::attacks::{SECRET, Seen, Tally, approved, files};
    use crate::support::address;

    const CANARY: &[&str] = &[
        "CREATE TABLE canary (id INT PRIMARY KEY AUTO_INCREMENT, song VARCHAR(100))",
        "INSERT INTO canary (song) VALUES ('tweet'), ('chirp'), (NULL)",
        "CREATE TABLE heard (what VARCHAR(100))",
        "CREATE TRIGGER hears AFTER UPDATE ON canary FOR EACH ROW INSERT INTO heard VALUES (new.song)",
        "CREATE TABLE isam (x INT) ENGINE = MyISAM",
        "CREATE SEQUENCE numbers",
        "CREATE FUNCTION sing(x TEXT) RETURNS INT BEGIN INSERT INTO isam VALUES (1); RETURN 1; END",
        "CREATE PROCEDURE commits() BEGIN COMMIT; DELETE FROM canary; END",
        "CREATE VIEW songs AS SELECT song FROM canary",
    ];

    /// How texts are read: as the engine has them read.
    const READ: &str = "SET NAMES utf8mb4; SET SESSION sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', \
                    sql_select_limit = 200, lock_wait_timeout = 1, innodb_lock_wait_timeout = 1";

    /// All that an attack could leave behind.
    const STATE: &[&str] = &[
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, AUTO_INCREMENT FROM information_schema.TABLES \
     WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema') ORDER BY 1, 2",
        "SELECT * FROM canary ORDER BY id",
        "SELECT * FROM heard",
        "CHECKSUM TABLE canary, heard, isam",
        "SELECT next_not_cached_value FROM numbers",
        "SELECT User, Host FROM mysql.user ORDER BY 1, 2",
        "SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid%'",
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1",
        "SELECT ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES ORDER BY 1, 2",
        "SELECT IS_FREE_LOCK('x')",
    ];

    /// A connection of who may do everything, without any lock, and what it has counted so far.
    struct Unlocked {
        connection: Conn,
        counts: BTreeMap<String, i64>,
    }

    impl Unlocked {
        /// Each statement may run for so many seconds.
        async fn open(address: &str, seconds: u64) -> Self {
            let mut connection = Conn::from_url(address).await.unwrap();
            connection.query_drop(format!("{READ}, max_statement_time = {seconds}")).await.unwrap();
            let counts = counted(&mut connection).await;
            Self { connection, counts }
        }

        /// Sends it the way on which the server takes several statements at once, and looks at what was counted.
        async fn classify(&mut self, sql: &str) -> Seen {
            let (sets, error) = self.run(sql).await;
            let counts = counted(&mut self.connection).await;
            let before = std::mem::replace(&mut self.counts, counts);
            let rose: Vec<(&str, i64)> = self
                .counts
                .iter()
                .map(|(name, count)| (name.as_str(), count - before.get(name).copied().unwrap_or_default()))
                // Looking at the counts is counted too.
                .filter(|(name, more)| *more != 0 && *name != "Com_show_status")
                .collect();
            match (rose.as_slice(), sets, error) {
                ([("Com_select", 1)], 1, false) => Seen::OneRead,
                // Begun and then given up: too long, or wrong only when it ran.
                ([] | [("Com_select", 1)], 0, true) => Seen::Refused,
                (rose, sets, error) => Seen::Otherwise(format!("{rose:?}, {sets} results, an error {error}")),
            }
        }

        /// How many results came, and whether the last one was an error.
        async fn run(&mut self, sql: &str) -> (usize, bool) {
            let Ok(mut result) = self.connection.query_iter(sql).await else { return (0, true) };
            let mut sets = 0;
            while !result.is_empty() || sets == 0 {
                let asked = !result.columns_ref().is_empty();
                if result.collect::<Row>().await.is_err() {
                    return (sets, true);
                }
                // What gives no columns is no answer, `INTO @x` for example.
                if !asked {
                    return (0, false);
                }
                sets += 1;
            }
            // What is wrong with a second statement is said behind the rows of the first.
            (sets, result.drop_result().await.is_err())
        }
    }

    async fn counted(connection: &mut Conn) -> BTreeMap<String, i64> {
        let kinds = "SHOW SESSION STATUS WHERE Variable_name LIKE 'Com\\_%' OR Variable_name IN \
                 ('Handler_delete', 'Handler_write')";
        let rows: Vec<(String, String)> = connection.query(kinds).await.unwrap();
        rows.into_iter().filter_map(|(name, count)| Some((name, count.parse().ok()?))).collect()
    }

    async fn state(owner: &mut Conn) -> Vec<String> {
        let mut state = Vec::new();
        for sql in STATE {
            let rows: Vec<Row> = owner.query(*sql).await.unwrap();
            state.extend(rows.into_iter().map(|row| format!("{sql}: {:?}", row.unwrap())));
        }
        state
    }

    /// A database of its own, and who may do everything in it.
    async fn ground(name: &str) -> Option<(ServerLock, String, Conn)> {
        let address = address("mysql")?.replace("reader:reader@", "owner:owner@");
        let lock = lock_server("mysql");
        let mut owner = Conn::from_url(&address).await.unwrap();
        owner.query_drop(format!("CREATE OR REPLACE DATABASE {name} CHARACTER SET utf8mb4")).await.unwrap();
        owner.query_drop(format!("USE {name}")).await.unwrap();
        for sql in CANARY {
            owner.query_drop(*sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        Some((lock, address.replace("/app", &format!("/{name}")), owner))
    }

    fn is_read_only_error(_: &str, error: &EngineError) -> bool {
        error.code == "1792" || error.code == "1290"
    }

    #[tokio::test]
    async fn approved_sql_is_one_read_in_mariadb() {
        let Some((_lock, address, mut owner)) = ground("proof").await else { return };
        // The one folder that the server may read from and write to.
        let folder: String = owner.query_first("SELECT @@secure_file_priv").await.unwrap().unwrap();
        let folder = PathBuf::from(folder);
        std::fs::write(folder.join("secret"), SECRET).unwrap();
        let shown: Option<String> = owner
            .query_first(format!("SELECT CAST(LOAD_FILE('{}') AS CHAR)", folder.join("secret").display()))
            .await
            .unwrap();
        assert_eq!(shown.as_deref(), Some(SECRET), "the secret could not be read anyway");
        let (before, lying) = (state(&mut owner).await, files(&folder));
        let mut unlocked = Unlocked::open(&address, 2).await;
        let engine = open(&address).unwrap();
        let schema = engine.schema().await.unwrap();
        let mut tally = Tally::new("mysql", is_read_only_error);
        for text in Material::new("mysql", &folder, &folder).texts() {
            tally.tried();
            let Some(query) = approved(&text, engine.dialect(), Some(&schema)) else { continue };
            tally.note(query.sql(), unlocked.classify(query.sql()).await);
            tally.through_the_door(&*engine, &query).await;
        }
        tally.end();
        let after = state(&mut owner).await;
        let changed: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
        assert!(before == after, "{changed:?}");
        assert_eq!(files(&folder), lying);
        unlocked.connection.disconnect().await.unwrap();
        std::fs::remove_file(folder.join("secret")).unwrap();
        owner.query_drop("DROP DATABASE proof").await.unwrap();
    }

    #[tokio::test]
    async fn classifies_writes_in_mariadb() {
        let Some((_lock, address, mut owner)) = ground("seen").await else { return };
        let mut unlocked = Unlocked::open(&address, hang_timeout().as_secs()).await;
        assert_eq!(unlocked.classify("SELECT song FROM songs").await, Seen::OneRead);
        assert_eq!(unlocked.classify("SELECT nothing FROM songs").await, Seen::Refused);
        for sql in [
            "UPDATE canary SET song = 'x' WHERE id = 1",
            "SELECT 1; SELECT 2",
            "SELECT 1; not even SQL",
            "SELECT sing('x')",
            "SELECT NEXT VALUE FOR numbers",
            "SELECT 1 INTO @x",
            "SET @x = 1",
            "DO 1",
            "COMMIT",
            "HANDLER canary OPEN",
            "CALL commits()",
            "CREATE TEMPORARY TABLE x (y INT)",
        ] {
            let seen = unlocked.classify(sql).await;
            assert!(matches!(seen, Seen::Otherwise(_)), "{sql}: {seen:?}");
        }
        // It holds what HANDLER has opened.
        unlocked.connection.disconnect().await.unwrap();
        owner.query_drop("DROP DATABASE seen").await.unwrap();
    }
}

mod tls {
    use mysql_async::prelude::Queryable;
    use mysql_async::{Conn, Opts};
    use querymend_engine::{CheckStatus, open};
    use querymend_testing::lock_server;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use crate::encrypted::{assert_connects, assert_tls_rejected};
    use crate::support::address;

    #[tokio::test]
    async fn trusts_mysql_by_its_certificate_only() {
        let Some(address) = address("mysql") else { return };
        // Others end the sessions of the owner.
        let _lock = lock_server("mysql");
        let mut owner =
            Conn::new(Opts::from_url(&address.replace("reader:reader@", "owner:owner@")).unwrap()).await.unwrap();
        let file: String = owner.query_first("SELECT @@ssl_cert").await.unwrap().unwrap();
        assert_connects(&format!("{address}?ssl-mode=required&ssl-ca={file}")).await;
        let checks = open(&format!("{address}?ssl-ca={file}")).unwrap().check_health().await.unwrap();
        assert!(checks.iter().all(|check| check.status != CheckStatus::Failed), "{checks:?}");

        assert_tls_rejected(&format!("{address}?ssl-mode=required"), "certificate", "ssl-ca").await;
        // It is made out for an address, and not for this name.
        let named = address.replace("127.0.0.1", "localhost");
        assert_tls_rejected(&format!("{named}?ssl-mode=required&ssl-ca={file}"), "certificate", "ssl-ca").await;
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
    async fn never_falls_back_from_tls_for_mysql() {
        let Some(address) = address("mysql") else { return };
        let plain = format!("mysql://reader:reader@127.0.0.1:{}/app", without_tls(&address).await);
        assert_connects(&plain).await;
        assert_tls_rejected(
            &format!("{plain}?ssl-mode=required"),
            "does not support encrypted connections",
            "ssl-mode=disabled",
        )
        .await;
    }
}
