#include "engine/text/post_processor.h"

#include <algorithm>

namespace attend {

Result<Template> MakeTemplate(const std::vector<TemplatePart>& parts, bool pair) {
  Template form;
  form.parts = parts;
  if (parts.empty()) {
    form.parts.push_back({.kind = PartKind::kSequenceA});
    if (pair) form.parts.push_back({.kind = PartKind::kSequenceB, .type_id = 1});
  }
  std::vector<PartKind> sequences;
  for (const TemplatePart& part : form.parts) {
    if (part.kind == PartKind::kToken) {
      ++form.num_added;
    } else {
      sequences.push_back(part.kind);
    }
  }
  const std::vector<PartKind> expected =
      pair ? std::vector<PartKind>{PartKind::kSequenceA, PartKind::kSequenceB}
           : std::vector<PartKind>{PartKind::kSequenceA};
  if (sequences != expected) {
    return Status(
        ErrorCode::kUnsupported,
        pair ? "the template of a pair must hold the first text once and the second behind it"
             : "the template of a text must hold the text once",
        "tokenizer: post_processor");
  }
  return form;
}

KeptTokens CutLongestFirst(size_t size_a, size_t size_b, size_t limit) {
  if (size_a + size_b <= limit) return {size_a, size_b};
  // The shorter one stays whole if half of the limit, or what the longer leaves, has room for it.
  const size_t shorter = std::min(size_a, size_b);
  KeptTokens kept;
  if (shorter <= limit / 2) {
    kept = {shorter, limit - shorter};
  } else {
    kept = {limit / 2, limit / 2 + limit % 2};
  }
  if (size_a > size_b) std::swap(kept.a, kept.b);
  return kept;
}

void ApplyTemplate(const Template& form, bool add_special, size_t size_a, KeptTokens kept,
                   Encoding* out) {
  size_t before_a = 0, before_b = 0, total = kept.a + kept.b;
  bool seen_a = false, seen_b = false;
  for (const TemplatePart& part : form.parts) {
    seen_a = seen_a || part.kind == PartKind::kSequenceA;
    seen_b = seen_b || part.kind == PartKind::kSequenceB;
    if (part.kind != PartKind::kToken || !add_special) continue;
    ++total;
    before_a += seen_a ? 0 : 1;
    before_b += seen_b ? 0 : 1;
  }
  const auto place = [&](auto& values) {
    values.resize(std::max(total, values.size()));
    // Whichever moves out of the other's way goes first: the second text when it moves back, the
    // first when the second moves forward over what the first has lost.
    const auto first = values.begin();
    const auto to_a = static_cast<std::ptrdiff_t>(before_a);
    const auto to_b = static_cast<std::ptrdiff_t>(before_b + kept.a);
    const auto from_b = static_cast<std::ptrdiff_t>(size_a);
    const auto count_a = static_cast<std::ptrdiff_t>(kept.a);
    const auto count_b = static_cast<std::ptrdiff_t>(kept.b);
    if (to_b >= from_b) {
      std::copy_backward(first + from_b, first + from_b + count_b, first + to_b + count_b);
      std::copy_backward(first, first + count_a, first + to_a + count_a);
    } else {
      std::copy_backward(first, first + count_a, first + to_a + count_a);
      std::copy(first + from_b, first + from_b + count_b, first + to_b);
    }
    values.resize(total);
  };
  place(out->ids);
  place(out->offsets);
  out->type_ids.resize(total);
  out->sequence_ids.resize(total);
  size_t at = 0;
  const auto fill = [&](size_t count, int32_t type_id, int32_t sequence_id) {
    std::fill_n(out->type_ids.begin() + static_cast<std::ptrdiff_t>(at), count, type_id);
    std::fill_n(out->sequence_ids.begin() + static_cast<std::ptrdiff_t>(at), count, sequence_id);
    at += count;
  };
  for (const TemplatePart& part : form.parts) {
    if (part.kind == PartKind::kSequenceA) {
      fill(kept.a, part.type_id, 0);
    } else if (part.kind == PartKind::kSequenceB) {
      fill(kept.b, part.type_id, 1);
    } else if (add_special) {
      out->ids[at] = part.id;
      out->offsets[at] = {0, 0};
      fill(1, part.type_id, -1);
    }
  }
}

}  // namespace attend
