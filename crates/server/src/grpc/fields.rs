//! Conversion of single fields: strings, counts, and enums that several messages share.

use querymend::{AnswerStatus, Confidence};

use super::proto;

/// Returns `None` for an empty string, the default of a proto3 field.
pub fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Converts a count, saturating at `u32::MAX`.
pub fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Converts the status of an answer.
pub fn answer_status(status: AnswerStatus) -> proto::AnswerStatus {
    match status {
        AnswerStatus::Answered => proto::AnswerStatus::Answered,
        AnswerStatus::GaveUp => proto::AnswerStatus::GaveUp,
        AnswerStatus::AskUser => proto::AnswerStatus::AskUser,
        AnswerStatus::Chat => proto::AnswerStatus::Chat,
        AnswerStatus::Failed => proto::AnswerStatus::Failed,
        AnswerStatus::Drafted => proto::AnswerStatus::Drafted,
        AnswerStatus::Abstained => proto::AnswerStatus::Abstained,
        AnswerStatus::Refused => proto::AnswerStatus::Refused,
    }
}

/// Converts a confidence.
pub fn confidence(confidence: Confidence) -> proto::Confidence {
    match confidence {
        Confidence::Low => proto::Confidence::Low,
        Confidence::Medium => proto::Confidence::Medium,
        Confidence::High => proto::Confidence::High,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire_name::wire_name;

    #[test]
    fn enum_values_have_the_same_name_everywhere() {
        let statuses = [
            AnswerStatus::Answered,
            AnswerStatus::GaveUp,
            AnswerStatus::AskUser,
            AnswerStatus::Chat,
            AnswerStatus::Failed,
            AnswerStatus::Drafted,
            AnswerStatus::Abstained,
            AnswerStatus::Refused,
        ];
        for status in statuses {
            let name = format!("ANSWER_STATUS_{}", wire_name(&status).to_uppercase());
            assert_eq!(answer_status(status).as_str_name(), name);
        }
        for level in [Confidence::Low, Confidence::Medium, Confidence::High] {
            assert_eq!(confidence(level).as_str_name(), format!("CONFIDENCE_{}", wire_name(&level).to_uppercase()));
        }
    }
}
