#include "engine/text/trie.h"

#include <algorithm>

namespace attend {

// Places the children of one node after the other. Free slots are a doubly linked list, so that the
// many nodes with one child take the first hole whatever it is and leave the array dense.
class TrieBuilder {
 public:
  explicit TrieBuilder(std::span<const Trie::Entry> entries) : entries_(entries) {
    size_t bytes = 0;
    for (const Trie::Entry& entry : entries) bytes += entry.text.size();
    // A real vocabulary needs about one slot a node.
    max_slots_ = std::min<size_t>(bytes * 16 + 65536, size_t{1} << 28);
    Grow(512);
  }

  Result<Trie> Build() {
    stack_.push_back({0, entries_.size(), 0, Trie::kRoot});
    while (!stack_.empty()) {
      const Range range = stack_.back();
      stack_.pop_back();
      if (!Place(range)) {
        return Status(ErrorCode::kCapacity, "the vocabulary's index would grow out of proportion",
                      "tokenizer");
      }
    }
    // Child() may look at base + 255 of any base.
    trie_.units_.resize(trie_.units_.size() + 256);
    trie_.units_.shrink_to_fit();
    return std::move(trie_);
  }

 private:
  // Entries [begin, end) share their first `depth` bytes, which lead to `node`.
  struct Range {
    size_t begin, end, depth;
    uint32_t node;
  };
  struct Link {
    uint32_t previous, next;
  };
  // Slots below it are nobody's, so that a base is never negative and a leaf (base 0) has no child.
  static constexpr uint32_t kFirst = 256;
  static constexpr int kTries = 64;

  bool Place(Range range) {
    std::vector<Trie::Unit>& units = trie_.units_;
    if (range.begin < range.end && entries_[range.begin].text.size() == range.depth) {
      units[range.node].id = entries_[range.begin].id;
      ++range.begin;
    }
    labels_.clear();
    starts_.clear();
    for (size_t i = range.begin; i < range.end; ++i) {
      const auto label = static_cast<uint8_t>(entries_[i].text[range.depth]);
      if (labels_.empty() || labels_.back() != label) {
        labels_.push_back(label);
        starts_.push_back(i);
      }
    }
    if (labels_.empty()) return true;
    const size_t base = FindBase();
    if (base + 512 > units.size() && !Grow(base + 512)) return false;
    units[range.node].base = static_cast<uint32_t>(base);
    starts_.push_back(range.end);
    for (size_t i = 0; i < labels_.size(); ++i) {
      const auto slot = static_cast<uint32_t>(base + labels_[i]);
      Unlink(slot);
      used_ = std::max<size_t>(used_, slot + 1);
      units[slot].parent = range.node;
      stack_.push_back({starts_[i], starts_[i + 1], range.depth + 1, slot});
    }
    return true;
  }

  // Where all labels fall on free slots. After a number of holes it takes what lies behind
  // all slots in use.
  size_t FindBase() const {
    uint32_t slot = links_[0].next;
    for (int i = 0; i < kTries && slot != 0; ++i, slot = links_[slot].next) {
      if (slot < kFirst + labels_[0]) continue;
      const size_t base = slot - labels_[0];
      const bool fits = std::all_of(labels_.begin(), labels_.end(), [&](uint8_t label) {
        return base + label >= trie_.units_.size() ||
               trie_.units_[base + label].parent == Trie::kFree;
      });
      if (fits) return base;
    }
    return std::max<size_t>(used_, kFirst + labels_[0]) - labels_[0];
  }

  bool Grow(size_t size) {
    if (size > max_slots_) return false;
    const size_t old = trie_.units_.size();
    size = std::min(std::max(size, old + old / 2), max_slots_);
    trie_.units_.resize(size);
    if (links_.empty()) links_.push_back({0, 0});
    links_.resize(size);
    for (auto slot = static_cast<uint32_t>(std::max<size_t>(old, kFirst)); slot < size; ++slot) {
      const uint32_t last = links_[0].previous;
      links_[slot] = {last, 0};
      links_[last].next = slot;
      links_[0].previous = slot;
    }
    return true;
  }

  void Unlink(uint32_t slot) {
    links_[links_[slot].previous].next = links_[slot].next;
    links_[links_[slot].next].previous = links_[slot].previous;
  }

  std::span<const Trie::Entry> entries_;
  Trie trie_;
  size_t max_slots_ = 0;
  size_t used_ = 0;          // no slot is used from here on
  std::vector<Link> links_;  // links_[0] is the list's head and foot
  std::vector<Range> stack_;
  std::vector<uint8_t> labels_;
  std::vector<size_t> starts_;
};

Trie::Trie() : units_(256) {}

Result<Trie> Trie::Build(std::span<const Entry> entries) { return TrieBuilder(entries).Build(); }

uint32_t Trie::Walk(uint32_t node, std::string_view text) const {
  for (char c : text) {
    node = Child(node, static_cast<uint8_t>(c));
    if (node == kNone) return kNone;
  }
  return node;
}

int32_t Trie::Find(std::string_view text) const {
  const uint32_t node = Walk(kRoot, text);
  return node == kNone && !text.empty() ? -1 : id(node);
}

}  // namespace attend
