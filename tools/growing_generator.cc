#include "tools/growing_generator.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace attend::tools {
namespace {

constexpr int32_t kFirstRoom = 128;
constexpr int32_t kMostRoom = 1 << 20;

}  // namespace

GrowingGenerator::GrowingGenerator(const Model& model, const GeneratorOptions& options,
                                   int32_t limit)
    : model_(model), options_(options), limit_(limit) {
  if (limit_ == 0) limit_ = model.info().max_length;
  if (limit_ == 0) limit_ = kMostRoom;
  options_.max_text_tokens = std::min(limit_, kFirstRoom);
}

Result<Generator*> GrowingGenerator::For(size_t tokens, size_t decoder_tokens, bool* is_new) {
  const auto most = static_cast<size_t>(limit_);
  const auto needed = static_cast<int32_t>(std::min(most, std::bit_ceil(std::min(tokens, most))));
  const auto begun =
      static_cast<int32_t>(std::bit_ceil(std::min(decoder_tokens, static_cast<size_t>(kMostRoom))));
  const bool makes = !generator_.has_value() || needed > options_.max_text_tokens ||
                     begun > options_.max_decoder_tokens;
  if (is_new != nullptr) *is_new = makes;
  if (makes) {
    options_.max_text_tokens = std::max(options_.max_text_tokens, needed);
    options_.max_decoder_tokens = std::max(options_.max_decoder_tokens, begun);
    generator_.reset();  // its memory first
    Result<Generator> generator = Generator::Create(model_, options_);
    if (!generator.ok()) return generator.status();
    generator_ = *std::move(generator);
  }
  return &*generator_;
}

}  // namespace attend::tools
