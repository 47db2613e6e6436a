//! Selection of a model if none is configured, as a pure function of the environment.

use crate::providers::{Provider, Providers};
use crate::registry::{ModelEntry, ModelRegistry};

/// Models available for selection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelEnvironment {
    /// Model configured by the user, as a spec for [`crate::open`].
    pub configured: Option<String>,
    /// Hosted providers with a default model and a key, by priority: the variable of the key, and
    /// the model as a spec for [`crate::open`].
    pub keyed_models: Vec<(String, String)>,
    /// Servers detected on this machine, by priority.
    pub servers: Vec<LocalServer>,
    /// Models on disk, best first.
    pub pulled_models: Vec<String>,
    /// Model that could be pulled.
    pub default_model: Option<String>,
    /// Permission to pull it.
    pub consent: Consent,
}

/// Server that was detected, with its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// Name of the provider.
    pub provider: String,
    /// Base URL of the server.
    pub base: String,
    /// Names of its models, in the order reported by the server.
    pub models: Vec<String>,
}

/// Permission to pull a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Consent {
    /// Given in advance.
    Granted,
    /// The user can be prompted.
    CanAsk,
    /// There is no user to prompt.
    #[default]
    Unavailable,
}

/// Result of the selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// The configured model.
    Configured(String),
    /// A detected model, with the reason.
    Detected {
        /// Model, as a spec for [`crate::open`].
        spec: String,
        /// Reason for the choice, as in "because …".
        because: String,
    },
    /// This model of the registry, which must be pulled first.
    Pull(String),
    /// This model of the registry, if the user agrees to pull it.
    AskToPull(String),
    /// No model is available.
    NoModel,
}

/// Chooses a model.
///
/// In order: the configured model, a provider whose key is set, a model of a local server, a pulled
/// model, and the default model if it may be pulled.
pub fn choose_model(environment: &ModelEnvironment) -> ModelChoice {
    if let Some(spec) = &environment.configured {
        return ModelChoice::Configured(spec.clone());
    }
    if let Some((variable, spec)) = environment.keyed_models.first() {
        return ModelChoice::Detected { spec: spec.clone(), because: format!("{variable} is set") };
    }
    for server in &environment.servers {
        if let Some(model) = server.models.iter().find(|model| is_text_model(model)) {
            let because = format!("{} serves it at {}", server.provider, server.base);
            return ModelChoice::Detected { spec: format!("{}:{model}", server.provider), because };
        }
    }
    if let Some(name) = environment.pulled_models.first() {
        return ModelChoice::Detected { spec: format!("local:{name}"), because: "it is on this machine".to_owned() };
    }
    match (&environment.default_model, environment.consent) {
        (Some(name), Consent::Granted) => ModelChoice::Pull(name.clone()),
        (Some(name), Consent::CanAsk) => ModelChoice::AskToPull(name.clone()),
        (_, Consent::Unavailable) | (None, _) => ModelChoice::NoModel,
    }
}

/// Substrings in the names of models that do not generate text, which servers list along with the
/// others.
const NON_TEXT_MODEL_MARKERS: [&str; 12] =
    ["embed", "minilm", "rerank", "bge-", "gte-", "e5-", "whisper", "tts", "clip", "diffusion", "guard", "moderation"];

fn is_text_model(model: &str) -> bool {
    let model = model.to_lowercase();
    !model.is_empty() && !NON_TEXT_MODEL_MARKERS.iter().any(|word| model.contains(word))
}

impl ModelEnvironment {
    /// Collects what is known without network access: keys and files.
    pub fn from_keys_and_files(providers: &Providers, is_pulled: impl Fn(&ModelEntry) -> bool) -> Self {
        let keyed = providers.by_priority().into_iter().filter_map(|(name, provider)| {
            let (default, variable) = (provider.default_model.as_ref()?, provider.key_variable.as_ref()?);
            has_key(provider, providers).then(|| (variable.clone(), format!("{name}:{default}")))
        });
        let catalogue: &ModelRegistry = &providers.registry;
        let pulled = catalogue.iter().filter(|entry| entry.unasked && is_pulled(entry));
        ModelEnvironment {
            keyed_models: keyed.collect(),
            pulled_models: pulled.map(|entry| entry.name.clone()).collect(),
            default_model: catalogue.default_entry().map(|entry| entry.name.clone()),
            ..ModelEnvironment::default()
        }
    }

    /// Returns whether server discovery is useful, since nothing with a higher priority was found.
    pub fn needs_server_discovery(&self) -> bool {
        self.configured.is_none() && self.keyed_models.is_empty()
    }
}

/// Returns whether a key is set for a provider; its validity is not checked.
pub fn has_key(provider: &Provider, providers: &Providers) -> bool {
    let is_set = |name: &str| providers.variables()(name).is_some_and(|value| !value.trim().is_empty());
    let variable = provider.key_variable.as_deref();
    variable.is_some_and(|name| is_set(name) || is_set(&format!("{name}_FILE"))) || provider.key_file.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(spec: &str, because: &str) -> ModelChoice {
        ModelChoice::Detected { spec: spec.to_owned(), because: because.to_owned() }
    }

    fn served(provider: &str, models: &[&str]) -> LocalServer {
        let models = models.iter().map(ToString::to_string).collect();
        LocalServer { provider: provider.to_owned(), base: "http://127.0.0.1:1/v1".to_owned(), models }
    }

    #[test]
    fn chooses_the_first_available_source() {
        let mut facts = ModelEnvironment {
            configured: Some("openai:gpt-5".to_owned()),
            keyed_models: vec![("A_KEY".to_owned(), "a:m".to_owned()), ("B_KEY".to_owned(), "b:m".to_owned())],
            servers: vec![served("ollama", &["nomic-embed-text", "qwen2.5-coder:7b"]), served("vllm", &["other"])],
            pulled_models: vec!["large".to_owned(), "small".to_owned()],
            default_model: Some("small".to_owned()),
            consent: Consent::Granted,
        };
        assert_eq!(choose_model(&facts), ModelChoice::Configured("openai:gpt-5".to_owned()));
        facts.configured = None;
        assert_eq!(choose_model(&facts), found("a:m", "A_KEY is set"));
        facts.keyed_models.clear();
        assert_eq!(choose_model(&facts), found("ollama:qwen2.5-coder:7b", "ollama serves it at http://127.0.0.1:1/v1"));
        facts.servers[0].models.pop();
        assert_eq!(choose_model(&facts), found("vllm:other", "vllm serves it at http://127.0.0.1:1/v1"));
        facts.servers[1].models.clear();
        assert_eq!(choose_model(&facts), found("local:large", "it is on this machine"));
        facts.pulled_models.clear();
        assert_eq!(choose_model(&facts), ModelChoice::Pull("small".to_owned()));
        facts.consent = Consent::CanAsk;
        assert_eq!(choose_model(&facts), ModelChoice::AskToPull("small".to_owned()));
        facts.consent = Consent::Unavailable;
        assert_eq!(choose_model(&facts), ModelChoice::NoModel);
        facts = ModelEnvironment { consent: Consent::Granted, ..ModelEnvironment::default() };
        assert_eq!(choose_model(&facts), ModelChoice::NoModel);
    }

    #[test]
    fn finds_keys_in_provider_priority_order() {
        let facts = |set: &'static [(&'static str, &'static str)], more: &str| {
            let providers = Providers::builtin().unwrap().merge_text(more, "more.toml").unwrap();
            let providers = providers.with_variables(move |name| {
                set.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
            });
            ModelEnvironment::from_keys_and_files(&providers, |entry| entry.name != "qwen2.5-coder-1.5b")
        };
        let specs =
            |facts: &ModelEnvironment| facts.keyed_models.iter().map(|(_, spec)| spec.clone()).collect::<Vec<_>>();
        let all = &[
            ("OPENROUTER_API_KEY", "k"),
            ("GEMINI_API_KEY", "k"),
            ("ANTHROPIC_API_KEY_FILE", "/k"),
            ("OPENAI_API_KEY", "k"),
            ("OLLAMA_API_KEY", "k"),
        ];
        let every = facts(all, "");
        let expected = [
            "openai:gpt-4.1-mini",
            "anthropic:claude-sonnet-4-6",
            "gemini:gemini-2.5-flash",
            "openrouter:qwen/qwen3-coder",
        ];
        assert_eq!(specs(&every), expected);
        assert!(!every.needs_server_discovery());
        assert_eq!(specs(&facts(all, "[gemini]\norder = 0"))[0], expected[2]);
        let ours = "[ours]\nwire = 'openai'\nbase = 'http://x'\nkey = 'OURS'\ndefault = 'm'\nkey_file = '/k'";
        assert_eq!(specs(&facts(&[("GEMINI_API_KEY", "k")], ours)), [expected[2], "ours:m"]);
        let none = facts(&[("OPENAI_API_KEY", " ")], "");
        assert!(none.keyed_models.is_empty() && none.needs_server_discovery());
        // The smallest model is pulled as well, but must be configured explicitly.
        assert_eq!(none.pulled_models, ["qwen2.5-coder-0.5b"]);
        assert_eq!(none.default_model.as_deref(), Some("qwen2.5-coder-0.5b"));
    }

    #[test]
    fn default_models_are_known_models() {
        for (name, provider) in Providers::builtin().unwrap().iter() {
            assert_ne!(provider.default_model.is_some(), provider.discover, "{name} has a default or is looked for");
            assert!(provider.priority.is_some(), "{name}");
            if let Some(default) = provider.default_model.as_ref().filter(|_| !provider.models.is_empty()) {
                assert!(provider.models.contains_key(default), "{name}:{default}");
            }
        }
    }
}
