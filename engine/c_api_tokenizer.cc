// The C interface: tokenizers. In libattend_text too.
#include "engine/c_api.h"
#include "engine/format.h"
#include "engine/log.h"
#include "engine/text/tokenizer_load.h"

using attend::c::Guarded;

namespace attend {
namespace {

Status Keep(Result<Tokenizer> tokenizer, attend_tokenizer** out) {
  if (!tokenizer.ok()) return tokenizer.status();
  *out = new attend_tokenizer{*tokenizer, std::string(tokenizer->kind())};
  return Status();
}

Status ReadEncodeOptions(const attend_encode_options* given, EncodeOptions* out) {
  attend_encode_options options = ATTEND_ENCODE_OPTIONS_INIT;
  ATTEND_RETURN_IF_ERROR(c::ReadStruct(given, "attend_encode_options", &options));
  out->add_special_tokens = options.no_special_tokens == 0;
  out->parse_special_tokens = options.no_special_parsing == 0;
  ATTEND_RETURN_IF_ERROR(
      c::CheckEnum(options.offset_unit, 2, "attend_encode_options", "offset_unit"));
  out->offset_unit = static_cast<OffsetUnit>(options.offset_unit);
  return c::Narrow(options.max_tokens, "attend_encode_options", "max_tokens", &out->max_tokens);
}

Status EncodeInto(const Tokenizer& tokenizer, const attend_text& text, const attend_text* pair,
                  const EncodeOptions& options, Encoding* out) {
  std::string_view first, second;
  ATTEND_RETURN_IF_ERROR(c::ReadText(text, "text", &first));
  if (pair == nullptr) return tokenizer.EncodeInto(first, options, out);
  ATTEND_RETURN_IF_ERROR(c::ReadText(*pair, "pair", &second));
  Result<Encoding> encoding = tokenizer.EncodePair(first, second, options);
  if (!encoding.ok()) return encoding.status();
  *out = *std::move(encoding);
  return Status();
}

}  // namespace
}  // namespace attend

attend_status attend_tokenizer_load(const char* path, attend_tokenizer** out, attend_error* error) {
  return attend_tokenizer_load_with(path, nullptr, out, error);
}

attend_status attend_tokenizer_load_with(const char* path, const attend_load_options* options,
                                         attend_tokenizer** out, attend_error* error) {
  return Guarded("tokenizer", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(path, "path"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::c::LoadSetup setup;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadLoadOptions(options, &setup));
    return attend::Keep(attend::Tokenizer::Load(path, setup.options), out);
  });
}

attend_status attend_tokenizer_from_bytes(const void* bytes, size_t size, attend_tokenizer** out,
                                          attend_error* error) {
  return attend_tokenizer_from_bytes_with(bytes, size, nullptr, out, error);
}

attend_status attend_tokenizer_from_bytes_with(const void* bytes, size_t size,
                                               const attend_load_options* options,
                                               attend_tokenizer** out, attend_error* error) {
  return Guarded("tokenizer", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(bytes, "bytes"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::c::LoadSetup setup;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadLoadOptions(options, &setup));
    // A copy: wherever the caller's bytes are, these are aligned.
    const attend::FileBytes copy =
        attend::FileBytes::Copy({static_cast<const std::byte*>(bytes), size});
    attend::Result<attend::FileView> file =
        attend::FileView::Open(copy.bytes(), attend::VerifyLevel::kStructure, "bytes");
    if (!file.ok()) return file.status();
    attend::Result<attend::Tokenizer> tokenizer = attend::TokenizerOfFile(*file, "bytes");
    if (tokenizer.ok() && attend::Wants(setup.options.logger, attend::LogLevel::kInfo)) {
      attend::TellLoaded(setup.options.logger, size, attend::Summary(*tokenizer));
    }
    return attend::Keep(std::move(tokenizer), out);
  });
}

void attend_tokenizer_free(attend_tokenizer* tokenizer) { delete tokenizer; }

attend_status attend_tokenizer_encode(const attend_tokenizer* tokenizer, const attend_text* text,
                                      const attend_text* pair, const attend_encode_options* options,
                                      attend_buffer* buffer, attend_tokens* out,
                                      attend_error* error) {
  return Guarded("tokenizer", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(tokenizer, "tokenizer"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(text, "text"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(buffer, "buffer"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_tokens"));
    attend::EncodeOptions encode;
    ATTEND_RETURN_IF_ERROR(attend::ReadEncodeOptions(options, &encode));
    attend::Encoding& encoding = buffer->encoding;
    ATTEND_RETURN_IF_ERROR(
        attend::EncodeInto(tokenizer->tokenizer, *text, pair, encode, &encoding));
    buffer->tokens.clear();
    for (const int32_t id : encoding.ids) {
      const std::string_view token = tokenizer->tokenizer.TokenText(id);
      buffer->tokens.push_back({token.data(), token.size()});
    }
    attend_tokens tokens = ATTEND_TOKENS_INIT;
    tokens.num_tokens = static_cast<int64_t>(encoding.ids.size());
    tokens.ids = encoding.ids.data();
    tokens.type_ids = encoding.type_ids.data();
    tokens.sequence_ids = encoding.sequence_ids.data();
    static_assert(sizeof(attend_range) == sizeof(attend::TextRange));
    tokens.offsets = reinterpret_cast<const attend_range*>(encoding.offsets.data());
    tokens.tokens = buffer->tokens.data();
    tokens.truncated = encoding.truncated ? 1 : 0;
    attend::c::WriteStruct(tokens, out);
    return {};
  });
}

attend_status attend_tokenizer_decode(const attend_tokenizer* tokenizer, const int32_t* ids,
                                      int64_t num_ids, int32_t keep_special, attend_buffer* buffer,
                                      attend_text* out, attend_error* error) {
  return Guarded("tokenizer", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(tokenizer, "tokenizer"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckArray(ids, num_ids, "ids"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(buffer, "buffer"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::Result<std::string> text =
        tokenizer->tokenizer.Decode({ids, static_cast<size_t>(num_ids)}, keep_special == 0);
    if (!text.ok()) return text.status();
    buffer->text = *std::move(text);
    *out = {buffer->text.c_str(), buffer->text.size()};
    return {};
  });
}

attend_status attend_tokenizer_get_info(const attend_tokenizer* tokenizer,
                                        attend_tokenizer_info* out, attend_error* error) {
  return Guarded("tokenizer", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(tokenizer, "tokenizer"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_tokenizer_info"));
    const attend::Tokenizer& t = tokenizer->tokenizer;
    attend_tokenizer_info info = ATTEND_TOKENIZER_INFO_INIT;
    info.kind = tokenizer->kind.c_str();
    info.vocab_size = t.vocab_size();
    info.bos_id = t.bos_id();
    info.eos_id = t.eos_id();
    info.num_added = t.num_added_tokens(false);
    info.num_added_to_pair = t.num_added_tokens(true);
    attend::c::WriteStruct(info, out);
    return {};
  });
}

int32_t attend_tokenizer_token_id(const attend_tokenizer* tokenizer, const char* text,
                                  size_t size) {
  if (tokenizer == nullptr || (text == nullptr && size > 0)) return -1;
  return tokenizer->tokenizer.TokenId(size == 0 ? std::string_view()
                                                : std::string_view(text, size));
}

attend_text attend_tokenizer_token_text(const attend_tokenizer* tokenizer, int32_t id) {
  if (tokenizer == nullptr) return {nullptr, 0};
  const std::string_view text = tokenizer->tokenizer.TokenText(id);
  return text.empty() ? attend_text{nullptr, 0} : attend_text{text.data(), text.size()};
}
