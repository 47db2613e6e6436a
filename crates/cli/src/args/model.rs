//! Model selection: options first, then environment variables, then `querymend.yaml`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use querymend::Config;
use querymend::prompts::{VARIANTS, find_variant};
use querymend_model::{Model, ModelRegistry, Providers};

use crate::args::env::env_var;
use crate::error::CliError;
use crate::{input, state_dir};

/// Options that select the model and limit its calls.
#[derive(Debug, Clone, Args)]
pub struct ModelArgs {
    /// Model that writes the SQL: provider:model, local:NAME, or http://HOST:PORT/v1#NAME [env:
    /// QUERYMEND_MODEL]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Configuration file [default: querymend.yaml in the current folder, else in the user's
    /// configuration folder]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Access policy: allowed and denied tables and functions, comments, size limits (YAML or JSON)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Maximum number of drafts per question, including the first [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub max_attempts: Option<u32>,
    /// Run the first draft as is: no repairs and no further model calls
    #[arg(long)]
    pub no_correction: bool,
    /// Do not fall back to fetching plain rows and analyzing them locally when all attempts have
    /// failed
    #[arg(long)]
    pub no_fallback: bool,
    /// Prompt variant
    #[arg(long, value_name = "VARIANT", value_parser = parse_prompt_variant)]
    pub prompt: Option<String>,
}

/// Options for choosing a model if none is named.
#[derive(Debug, Clone, Args)]
pub struct AutoPullArgs {
    /// If no model is named and none is found, download the default one without asking [env:
    /// QUERYMEND_AUTO_PULL=1]
    #[arg(short, long)]
    pub yes: bool,
}

impl ModelArgs {
    /// Loads the configuration and applies the options on top of it.
    pub fn load_config(&self) -> Result<Config, CliError> {
        let mut config = match &self.config {
            Some(file) => Config::read(file)?,
            None => Config::load()?,
        };
        config = state_dir::with_value_cache(config);
        if let Some(file) = &self.policy {
            // The policies are intersected: the file can add denials but cannot lift any.
            config.policy = std::mem::take(&mut config.policy).intersect(input::read_policy(file)?);
        }
        if let Some(attempts) = self.max_attempts {
            config.self_correction.max_attempts = attempts;
        }
        if self.no_correction {
            config.self_correction.enabled = false;
        }
        if self.no_correction || self.no_fallback {
            config.self_correction.fallback = false;
        }
        if let Some(prompt) = &self.prompt {
            config.prompt.clone_from(prompt);
        }
        parse_prompt_variant(&config.prompt)
            .map_err(|what| CliError::new(what).hint("change `prompt` in the configuration"))?;
        Ok(config)
    }

    /// Returns the name of the configured model, if any: `--model`, `QUERYMEND_MODEL`, or `model`
    /// in the configuration.
    pub fn model_spec(&self, config: &Config) -> Option<String> {
        self.model.clone().or_else(|| env_var("QUERYMEND_MODEL")).or_else(|| config.model.clone())
    }

    /// Opens the configured model, without sending it a request.
    ///
    /// Fails if no model is named, since the results of a measurement are useless without knowing
    /// the model.
    pub fn open_model(&self, config: &Config) -> Result<Arc<dyn Model>, CliError> {
        let providers = load_providers(config)?;
        let spec = self.model_spec(config).ok_or_else(no_model_configured)?;
        Ok(querymend_model::open(&spec, &providers)?)
    }
}

/// Loads the model providers and the registry of local models.
pub fn load_providers(config: &Config) -> Result<Providers, CliError> {
    let mut providers = Providers::builtin()?;
    if let Some(file) = &config.providers {
        providers = providers.merge_file(file)?;
    }
    providers.registry = load_model_registry(config)?;
    Ok(providers)
}

/// Loads the registry of local models.
pub fn load_model_registry(config: &Config) -> Result<ModelRegistry, CliError> {
    let catalogue = ModelRegistry::builtin()?;
    Ok(match &config.models {
        Some(file) => catalogue.merge_file(file)?,
        None => catalogue,
    })
}

fn parse_prompt_variant(name: &str) -> Result<String, String> {
    let names: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
    let unknown = || format!("there is no prompt variant `{name}`; there are {}", names.join(", "));
    find_variant(name).map(|variant| variant.name.to_string()).ok_or_else(unknown)
}

/// Hint for naming a model.
pub const MODEL_SPEC_HINT: &str = "name one with --model, in the variable QUERYMEND_MODEL or as `model` in querymend.yaml: \
                      ollama:qwen2.5-coder, openai:gpt-4.1-mini, or the address of a server, http://127.0.0.1:8080/v1#name";

/// Returns the error for a command that requires a named model and does not detect one.
pub fn no_model_configured() -> CliError {
    CliError::new("no model is configured")
        .hint(format!("{MODEL_SPEC_HINT}; `querymend model list` shows those that run here, as local:NAME"))
}
