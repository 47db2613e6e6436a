//! MariaDB: the server counts the statements of each kind that it ran; of an approved text it counts one that asks, and no other.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use querymend_engine::open;
use querymend_testing::{ServerLock, exclusive, hang_timeout};

use super::material::Material;
use super::{SECRET, Seen, Tally, address, approved, files};

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
    let lock = exclusive("mysql");
    let mut owner = Conn::from_url(&address).await.unwrap();
    owner.query_drop(format!("CREATE OR REPLACE DATABASE {name} CHARACTER SET utf8mb4")).await.unwrap();
    owner.query_drop(format!("USE {name}")).await.unwrap();
    for sql in CANARY {
        owner.query_drop(*sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    Some((lock, address.replace("/app", &format!("/{name}")), owner))
}

#[tokio::test]
async fn c01_what_is_approved_is_one_read_to_mariadb() {
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
    let mut tally = Tally::new("mysql");
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
async fn what_is_no_read_to_mariadb_is_seen() {
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
