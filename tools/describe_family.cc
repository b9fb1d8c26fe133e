#include "tools/describe_family.h"

#include <charconv>

namespace attend {
namespace {

std::string Number(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string Seen(const ModelConfig& c) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (c.edges) add("edges of a graph");
  if (c.causal) add("causal");
  if (c.windowed) {
    add("window of " + std::to_string(c.window_left) + " left, " + std::to_string(c.window_right) +
        " right");
    if (c.global_tokens > 0) add("first " + std::to_string(c.global_tokens) + " global");
  }
  return text;
}

std::string Rotary(const ModelConfig& c) {
  std::string text = "rotary, theta " + Number(c.rope_theta);
  if (c.rope_scaling == RopeScaling::kNone) return text;
  text += std::string(", ") + Name(c.rope_scaling) + " scaling by " + Number(c.rope_factor);
  if (c.rope_scaling == RopeScaling::kLinear) return text;
  return text + " from " + std::to_string(c.rope_original_length) + " positions, bands " +
         Number(c.rope_low_factor) + " to " + Number(c.rope_high_factor);
}

// What decoders have beside the family.
void DescribeDecoder(const ModelConfig& c,
                     std::vector<std::pair<std::string, std::string>>* lines) {
  if (!Decodes(c)) return;
  if (IsEncoderDecoder(c)) {
    lines->emplace_back("decoder", std::to_string(c.decoder_layers) + " layers, " +
                                       std::to_string(c.decoder_heads) + " heads of " +
                                       std::to_string(c.decoder_head_dim) + ", feed-forward " +
                                       std::to_string(c.decoder_intermediate_size));
  }
  if (c.qk_norm) lines->emplace_back("head norms", "queries and keys");
  if (c.embedding_scale != 1) lines->emplace_back("embedding scale", Number(c.embedding_scale));
  if (c.task != Task::kGenerate) return;
  lines->emplace_back(
      "logits", std::string(c.tied_head ? "by the embeddings" : "by a head") +
                    (c.logits_scale == 1 ? std::string() : ", times " + Number(c.logits_scale)));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> DescribeFamily(const ModelConfig& c) {
  std::vector<std::pair<std::string, std::string>> lines;
  DescribeDecoder(c, &lines);
  if (c.position == Position::kRotary) {
    lines.emplace_back("position", Rotary(c));
  } else if (c.position != Position::kLearned) {
    lines.emplace_back("position", Name(c.position));
  }
  if (c.score == Score::kAdditive) {
    lines.emplace_back("score", "additive, " + std::to_string(c.score_size) + " wide");
  } else if (c.score != Score::kScaledDot) {
    lines.emplace_back("score", Name(c.score));
  }
  if (c.score_bias == ScoreBias::kRelative) {
    lines.emplace_back("score bias", "relative, " + std::to_string(c.relative_buckets) +
                                         " buckets up to " +
                                         std::to_string(c.relative_max_distance));
  } else if (c.score_bias != ScoreBias::kNone) {
    lines.emplace_back("score bias", Name(c.score_bias));
  }
  if (const std::string seen = Seen(c); !seen.empty()) lines.emplace_back("sees", seen);
  if (c.normalizer != Normalizer::kSoftmax) {
    lines.emplace_back("normalizer", std::string(Name(c.normalizer)) +
                                         (c.normalizer_length ? ", divided by length" : ""));
  }
  if (c.norm != NormPlace::kPost || c.norm_type != NormType::kLayerNorm) {
    lines.emplace_back("norm", c.norm == NormPlace::kNone
                                   ? std::string("none")
                                   : std::string(Name(c.norm)) + ", " + Name(c.norm_type));
  }
  if (!c.residual) lines.emplace_back("residual", "no");
  if (!c.output_projection) lines.emplace_back("output projection", "no");
  return lines;
}

}  // namespace attend
