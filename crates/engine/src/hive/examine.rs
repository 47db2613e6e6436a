//! What is seen of a server by whoever sets it up.

use querymend_sql::Rows;

use super::address::Settings;
use super::call::VERSION_OF_SERVER;
use super::fault::Fault;
use super::lock;
use super::session::{Product, Session};
use crate::stop::Stop;
use crate::{Check, Limits};

/// Would leave nothing behind but a name in this one session, should it ever get through.
const HARMLESS_WRITE: &str = "CREATE TEMPORARY VIEW querymend_tries_its_lock AS SELECT 1";

pub(super) fn checks(session: &mut Session, settings: &Settings, stop: &Stop) -> Result<Vec<Check>, Fault> {
    let version = session.ask(stop, |server, handle| server.info(handle, VERSION_OF_SERVER))?;
    let (product, scheme) = match session.product {
        Product::Spark => ("Spark", "spark"),
        Product::Hive => ("Hive", "hive"),
    };
    let seen = format!("{} can be read; it is {product} {version}", settings.name);
    let connection = if settings.dialect.name == scheme {
        Check::good("connection", seen)
    } else {
        let hint = format!("begin the address with {scheme}://, so that queries are written in its SQL");
        Check::doubtful("connection", seen, hint)
    };
    let tried = lock::execute(session, HARMLESS_WRITE, &Limits::default(), stop);
    let lock = match tried.map(|gathered| gathered.taking.done()) {
        Err(Fault::Rejected(_)) => Check::good("read-only lock", "a write that no critic has seen is refused"),
        Err(fault) => return Err(fault),
        Ok(Rows { .. }) => Check::bad(
            "read-only lock",
            "a write that no critic has seen is not refused",
            "please report this with the version of the server; until then use an account that cannot write",
        ),
    };
    let rights = match session.product {
        Product::Spark => Check::doubtful(
            "rights",
            "Spark's Thrift server has no rights of its own: whoever may ask may also write and drop tables",
            "run the server for questions with an account that may only read the files of the warehouse and the metastore, or put \
             an authorizer such as Ranger before it",
        ),
        Product::Hive => Check::doubtful(
            "rights",
            "whether this user could write is not known; Hive allows everything unless authorization is set up",
            "with SQL standard authorization: CREATE ROLE reader; GRANT SELECT ON TABLE … TO ROLE reader; GRANT ROLE reader TO \
             USER …",
        ),
    };
    let mut checks = vec![connection, lock, rights];
    if settings.is_exposed() {
        checks.push(Check::doubtful(
            "encryption",
            "passwords, queries and rows go over the network for all to read",
            "set hive.server2.use.SSL on the server, and leave tls=false out of the address",
        ));
    } else if settings.tls.is_some() {
        checks.push(Check::good("encryption", "the connection is encrypted (TLS)"));
    }
    Ok(checks)
}
