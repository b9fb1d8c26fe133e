// A double-array trie: finds entries along the bytes of a text, one load a byte.
#ifndef ATTEND_ENGINE_TEXT_TRIE_H_
#define ATTEND_ENGINE_TEXT_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "attend/status.h"

namespace attend {

class Trie {
 public:
  struct Entry {
    std::string_view text;
    int32_t id;
  };
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = 0;  // no node: the root is nobody's child

  // An empty trie.
  Trie();

  // A trie of `entries`, which are in strictly increasing order of their bytes.
  // Errors: kCapacity (the entries are such that the array would grow out of proportion).
  // Cost: linear in the bytes of the entries.
  static Result<Trie> Build(std::span<const Entry> entries);

  // The node one byte further, or kNone.
  uint32_t Child(uint32_t node, uint8_t label) const {
    const uint32_t slot = units_[node].base + label;
    return units_[slot].parent == node ? slot : kNone;
  }
  // The node behind all of `text`, or kNone (the root for an empty text).
  uint32_t Walk(uint32_t node, std::string_view text) const;
  // The entry that ends at a node, or -1.
  int32_t id(uint32_t node) const { return units_[node].id; }
  // The entry that is `text`, or -1.
  int32_t Find(std::string_view text) const;

  size_t memory_bytes() const { return units_.size() * sizeof(Unit); }

 private:
  friend class TrieBuilder;
  static constexpr uint32_t kFree = 0xFFFFFFFF;
  struct Unit {
    uint32_t base = 0;  // children are at base + label; 256 units lie behind any base
    uint32_t parent = kFree;
    int32_t id = -1;
  };
  std::vector<Unit> units_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_TRIE_H_
