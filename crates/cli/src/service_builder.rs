//! Builds the service for `serve` and `mcp` from options and configuration.

use std::sync::Arc;

use querymend::Config;
use querymend::resilience::Breakers;
use querymend_model::Model;
use querymend_server::Service;
use querymend_server::audit::log::AuditLog;
use querymend_server::auth::user;
use querymend_server::auth::user::Authenticator;
use querymend_server::service::{self, Setup};
use querymend_server::store::InMemoryStore;
use tokio::runtime::Runtime;

use crate::args::database::{DatabaseArgs, default_database};
use crate::args::memory::{self, MemoryArgs};
use crate::args::model::{AutoPullArgs, ModelArgs};
use crate::deny_lists::check_deny_lists;
use crate::error::CliError;
use crate::model_selection;
use crate::no_model::NoModel;
use crate::output::Out;
use crate::state_dir;

/// Options of a service.
pub struct ServiceOptions<'o> {
    /// Database options.
    pub database: &'o DatabaseArgs,
    /// Model options.
    pub model_args: &'o ModelArgs,
    /// Memory options.
    pub memory_args: &'o MemoryArgs,
}

/// Builds a service for the local user, without authentication.
pub fn build_service(
    options: &ServiceOptions<'_>,
    config: Config,
    runtime: &Runtime,
    out: &Out,
) -> Result<Service, CliError> {
    let engine = options.database.open(&config)?;
    check_deny_lists(&config, &*engine, runtime, out);
    let address = options.database.address(&config)?.unwrap_or_default();
    let identity = memory::database_identity(&*engine, &address);
    let store = match runtime.block_on(options.memory_args.open_if_enabled(false, &config)) {
        Err(failure) if options.memory_args.store.is_none() => {
            out.note(&format!("note: memory is disabled: {}", failure.message));
            None
        }
        store => store?,
    };
    let audit = match &config.server.audit {
        Some(file) => AuditLog::open(file).map_err(|error| {
            CliError::new(format!("{} cannot be written: {error}", file.display()))
                .hint("change `server.audit` in the configuration")
        })?,
        None => AuditLog::default(),
    };
    let limits = &config.server.limits;
    let runs = state_dir::trace_dir(&config).map(|folder| (folder, config.trace.max_traces as usize));
    let session_store = InMemoryStore::new(limits.sessions, limits.session_age, runs);
    let breakers = Breakers::new(config.circuit_breaker);
    let setup = Setup {
        model: select_model_or_none(options.model_args, None, &config, out),
        databases: vec![service::Database { name: database_name(&address), engine, identity }],
        store,
        authenticator: Arc::new(user::NoAuth::default()),
        config,
    };
    Ok(Service::new(setup, Arc::new(breakers), Arc::new(session_store), audit))
}

/// Selects a model, or a placeholder that reports the error. Everything except questions works
/// without a model.
pub fn select_model_or_none(
    model_args: &ModelArgs,
    auto_pull: Option<&AutoPullArgs>,
    config: &Config,
    out: &Out,
) -> Arc<dyn Model> {
    model_selection::select_model(model_args, auto_pull, config, out).unwrap_or_else(|failure| {
        out.note(&format!("note: questions cannot be answered: {}", failure.message));
        let hint = failure.hint.unwrap_or_else(|| "run `querymend doctor` for details".to_owned());
        Arc::new(NoModel::new(failure.message, hint))
    })
}

/// Opens the named databases, each given as `NAME=ADDRESS` or an address alone. Clients refer to
/// them by name.
fn open_databases(named: &[String], config: &Config) -> Result<Vec<service::Database>, CliError> {
    let mut pairs: Vec<(String, String)> = named.iter().map(|text| parse_named_database(text)).collect();
    if pairs.is_empty() {
        pairs = config.server.databases.iter().map(|(name, address)| (name.clone(), address.clone())).collect();
    }
    if pairs.is_empty() {
        let one = default_database(config);
        pairs.extend(one.map(|address| (database_name(&address), address)));
    }
    if pairs.is_empty() {
        return Err(CliError::new("no database is configured")
            .hint("name one with --db, or several as `server.databases` in querymend.yaml"));
    }
    let mut databases: Vec<service::Database> = Vec::new();
    for (name, address) in pairs {
        if databases.iter().any(|known| known.name == name) {
            return Err(
                CliError::new(format!("two databases are called `{name}`")).hint("name them: --db NAME=ADDRESS")
            );
        }
        let engine: Arc<dyn querymend_engine::Engine> = Arc::from(querymend_engine::open(&address)?);
        let identity = memory::database_identity(&*engine, &address);
        databases.push(service::Database { name, engine, identity });
    }
    Ok(databases)
}

fn parse_named_database(text: &str) -> (String, String) {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    match text.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, address)) => (name.to_owned(), address.to_owned()),
        None => (database_name(text), text.to_owned()),
    }
}

/// Builds the part of the service that can be reloaded while it runs.
pub async fn build_setup(
    named: &[String],
    model: Arc<dyn Model>,
    memory_args: &MemoryArgs,
    config: Config,
    authenticator: Arc<dyn Authenticator>,
    out: &Out,
) -> Result<Setup, CliError> {
    let databases = open_databases(named, &config)?;
    let store = match memory_args.open_if_enabled(true, &config).await {
        Ok(store) => store,
        Err(failure) if memory_args.store.is_some() || config.memory.store.is_some() => return Err(failure),
        Err(failure) => {
            out.note(&format!("note: memory is disabled: {}", failure.message));
            None
        }
    };
    Ok(Setup { config, model, databases, store, authenticator })
}

/// Returns the name that clients use for the database at an address: the stem of the file or the
/// name of the database, in characters that need no quoting.
pub fn database_name(address: &str) -> String {
    let path = address.split(['?', '#']).next().unwrap_or_default().trim_end_matches(['/', '\\']);
    let last = path.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = stem.chars().take(64).map(plain).collect();
    // A user or a port is not a database name.
    if name.trim_matches('_').is_empty() || last.contains('@') || name.bytes().all(|b| b.is_ascii_digit()) {
        return "main".to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_database_names_from_addresses() {
        for (address, called) in [
            ("shop.db", "shop"),
            ("/data/my shop.sqlite3", "my_shop"),
            ("sqlite:shop.db", "shop"),
            ("postgres://ann@host:5432/sales?sslmode=require", "sales"),
            ("mysql://ann@host", "main"),
            ("mysql://host:3306", "main"),
            ("trino://host/hive/web", "web"),
            ("folder/", "folder"),
            (":memory:", "main"),
            ("", "main"),
        ] {
            assert_eq!(database_name(address), called, "{address}");
        }
    }

    #[test]
    fn parses_named_databases() {
        let of = |text: &str| parse_named_database(text);
        let address = "postgres://u@h/x?sslmode=require";
        assert_eq!(of(&format!("shop={address}")), ("shop".to_owned(), address.to_owned()));
        assert_eq!(of(address), ("x".to_owned(), address.to_owned()));
    }
}
