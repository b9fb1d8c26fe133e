#include "engine/text/decoder.h"

#include <string_view>

namespace attend {
namespace {

// What the WordPiece decoder of Hugging Face does to every token, in this order.
constexpr struct {
  std::string_view from, to;
} kCleanup[] = {
    {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
    {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
    {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

void ReplaceAll(std::string_view from, std::string_view to, std::string* text) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size()) {
    text->replace(at, from.size(), to);
  }
}

}  // namespace

std::string DecodeIds(const TokenizerData& data, std::span<const int32_t> ids,
                      bool skip_special_tokens) {
  const TokenizerSpec& spec = data.spec;
  const bool is_wordpiece = spec.decoder == DecoderKind::kWordPiece;
  std::string text, token;
  bool is_first = true;
  for (int32_t id : ids) {
    if (skip_special_tokens && data.is_special[static_cast<size_t>(id)]) continue;
    const auto content = data.norm_contents.find(id);
    const std::string& entry = content != data.norm_contents.end()
                                   ? content->second
                                   : spec.vocabulary[static_cast<size_t>(id)];
    token.clear();
    if (is_first) {
      token = entry;
    } else if (is_wordpiece && entry.starts_with(spec.decoder_prefix)) {
      token.append(entry, spec.decoder_prefix.size());
    } else {
      token.append(1, ' ').append(entry);
    }
    is_first = false;
    if (is_wordpiece && spec.decoder_cleanup) {
      for (const auto& rule : kCleanup) ReplaceAll(rule.from, rule.to, &token);
    }
    text += token;
  }
  return text;
}

}  // namespace attend
