//! Tokenizer and chat template of a model.

use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::tokenizer::TokenizerFromGguf;
use minijinja::{Environment, context};
use tokenizers::Tokenizer;

use super::error::LocalModelError;
use super::weights::GgufReader;
use crate::request::Message;

/// ChatML template, the default for files without one, since most small models use it.
const CHATML_TEMPLATE: &str =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";

/// Tokenizer with a chat template.
pub(super) struct ChatTokenizer {
    tokenizer: Tokenizer,
    templates: Environment<'static>,
    /// Texts of all special tokens, which must not be interpreted in user input (prompt injection).
    special_tokens: Vec<String>,
    end_token_ids: Vec<u32>,
    bos_token: String,
    eos_token: String,
}

impl ChatTokenizer {
    pub(super) fn read(source: &GgufReader) -> Result<Self, LocalModelError> {
        let wrong = |what: String| LocalModelError::InvalidGguf(format!("its vocabulary cannot be used: {what}"));
        let tokenizer = Tokenizer::from_gguf(source.content()).map_err(|error| wrong(error.to_string()))?;
        let mut special: Vec<String> =
            tokenizer.get_added_tokens_decoder().into_values().map(|token| token.content).collect();
        special.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let by_id = |key: &str| match source.content().metadata.get(key) {
            Some(Value::U32(id)) => Some(*id),
            _ => None,
        };
        let text = |id: Option<u32>| id.and_then(|id| tokenizer.id_to_token(id)).unwrap_or_default();
        let (begin, end) = (by_id("tokenizer.ggml.bos_token_id"), by_id("tokenizer.ggml.eos_token_id"));
        let mut ends: Vec<u32> = end.into_iter().chain(by_id("tokenizer.ggml.eot_token_id")).collect();
        ends.extend(
            ["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>"].iter().filter_map(|text| tokenizer.token_to_id(text)),
        );
        ends.sort_unstable();
        ends.dedup();
        let mut templates = Environment::new();
        templates.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        templates.set_fuel(Some(2_000_000));
        let template = source.str_value("tokenizer.chat_template").unwrap_or(CHATML_TEMPLATE).to_owned();
        templates.add_template_owned("chat", template).map_err(|error| wrong(format!("its chat template: {error}")))?;
        let (begin, end) = (text(begin), text(end));
        Ok(Self {
            tokenizer,
            templates,
            special_tokens: special,
            end_token_ids: ends,
            bos_token: begin,
            eos_token: end,
        })
    }

    /// Renders a conversation with the chat template and tokenizes it.
    pub(super) fn encode_chat(&self, messages: &[Message]) -> Result<Vec<u32>, LocalModelError> {
        let messages: Vec<_> = messages
            .iter()
            .map(|m| context! { role => m.role.name(), content => self.escape_special_tokens(&m.text) })
            .collect();
        let values = context! { messages, add_generation_prompt => true, bos_token => self.bos_token, eos_token => self.eos_token };
        let text = self.templates.get_template("chat").and_then(|template| template.render(values));
        let text = text.map_err(|error| LocalModelError::InvalidGguf(format!("its chat template fails: {error}")))?;
        let encoded =
            self.tokenizer.encode_fast(text, false).map_err(|error| LocalModelError::InvalidGguf(error.to_string()))?;
        Ok(encoded.get_ids().to_vec())
    }

    /// Breaks up special tokens in a text, so that they are tokenized as plain text.
    fn escape_special_tokens<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, str> {
        if !self.special_tokens.iter().any(|special| text.contains(special.as_str())) {
            return text.into();
        }
        let mut text = text.to_owned();
        for special in &self.special_tokens {
            let mut letters = special.chars();
            if let Some(first) = letters.next() {
                text = text.replace(special.as_str(), &format!("{first} {}", letters.as_str()));
            }
        }
        text.into()
    }

    /// Returns whether a token ends the reply.
    pub(super) fn is_end_token(&self, token: u32) -> bool {
        self.end_token_ids.contains(&token)
    }

    /// Converts tokens to text.
    pub(super) fn decode(&self, tokens: &[u32]) -> String {
        self.tokenizer.decode(tokens, true).unwrap_or_default()
    }
}
