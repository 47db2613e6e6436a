//! Health checks of a server.

use querymend_sql::Rows;

use super::address::HiveSettings;
use super::hive_error::HiveError;
use super::read_only;
use super::session::{HiveSession, Product};
use super::thrift_client::INFO_DBMS_VERSION;
use crate::deadline::Deadline;
use crate::{HealthCheck, Limits};

/// Write for the read-only check. If it ever succeeds, it only leaves a name in this session.
const PROBE_WRITE: &str = "CREATE TEMPORARY VIEW querymend_tries_its_lock AS SELECT 1";

pub(super) fn health_checks(
    session: &mut HiveSession,
    settings: &HiveSettings,
    deadline: &Deadline,
) -> Result<Vec<HealthCheck>, HiveError> {
    let version = session.call(deadline, |server, handle| server.get_info(handle, INFO_DBMS_VERSION))?;
    let (product, scheme) = match session.product {
        Product::Spark => ("Spark", "spark"),
        Product::Hive => ("Hive", "hive"),
    };
    let seen = format!("{} can be read; it is {product} {version}", settings.name);
    let connection = if settings.dialect.name == scheme {
        HealthCheck::passed("connection", seen)
    } else {
        let hint = format!("start the address with {scheme}://, so that queries use its dialect");
        HealthCheck::warning("connection", seen, hint)
    };
    let tried = read_only::execute(session, PROBE_WRITE, &Limits::default(), deadline);
    let lock = match tried.map(|gathered| gathered.collector.into_rows()) {
        Err(HiveError::Rejected(_)) => {
            HealthCheck::passed("read-only", "a test write that bypassed the query review is rejected")
        }
        Err(fault) => return Err(fault),
        Ok(Rows { .. }) => HealthCheck::failed(
            "read-only",
            "a test write that bypassed the query review is not rejected",
            "please report this with the version of the server; until it is fixed, use an account that cannot write",
        ),
    };
    let rights = match session.product {
        Product::Spark => HealthCheck::warning(
            "rights",
            "Spark's Thrift server has no access control: every user that can query can also write and drop tables",
            "run the server with an account that can only read the files of the warehouse and the metastore, or use \
             an authorizer such as Ranger",
        ),
        Product::Hive => HealthCheck::warning(
            "rights",
            "it is unknown whether this user can write; Hive allows everything unless authorization is set up",
            "with SQL standard authorization: CREATE ROLE reader; GRANT SELECT ON TABLE … TO ROLE reader; GRANT ROLE reader TO \
             USER …",
        ),
    };
    let mut checks = vec![connection, lock, rights];
    if settings.is_exposed() {
        checks.push(HealthCheck::warning(
            "encryption",
            "passwords, queries and rows are sent over the network unencrypted",
            "set hive.server2.use.SSL on the server, and remove tls=false from the address",
        ));
    } else if settings.tls.is_some() {
        checks.push(HealthCheck::passed("encryption", "the connection is encrypted (TLS)"));
    }
    Ok(checks)
}
