// The bytes of an .attend file as FORMAT.md lays them out: where each field is, and how it is read
// and written. For the verifier, the view and the writer only.
#ifndef ATTEND_ENGINE_FORMAT_LAYOUT_H_
#define ATTEND_ENGINE_FORMAT_LAYOUT_H_

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "engine/format.h"

namespace attend::layout {

// Shapes are handed out as they lie in the file.
static_assert(std::endian::native == std::endian::little, "big-endian hosts are not supported");
static_assert(sizeof(size_t) == 8, "32-bit hosts are not supported");

// As in PNG: a byte above 0x7F, a name, CR LF, Ctrl-Z, LF. Any text-mode transfer breaks it.
inline constexpr std::string_view kMagic =
    "\x89"
    "ATT\r\n\x1a\n";
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kEndianTag = 0x01020304;
inline constexpr uint64_t kKnownRequiredFeatures = 0;

// The preamble.
inline constexpr uint64_t kVersionAt = 8;            // u32
inline constexpr uint64_t kEndianTagAt = 12;         // u32
inline constexpr uint64_t kRequiredFeaturesAt = 16;  // u64
inline constexpr uint64_t kOptionalFeaturesAt = 24;  // u64
inline constexpr uint64_t kFileBytesAt = 32;         // u64
inline constexpr uint64_t kHeaderBytesAt = 40;       // u64
inline constexpr uint64_t kValueCountAt = 48;        // u64
inline constexpr uint64_t kTensorCountAt = 56;       // u64
inline constexpr uint64_t kChecksumAt = 64;          // 16 bytes
inline constexpr uint64_t kReservedAt = 80;          // zeros up to kPreambleBytes
inline constexpr uint64_t kPreambleBytes = 128;

// A record of the value table.
inline constexpr uint64_t kKeyOffsetAt = 0;       // u64
inline constexpr uint64_t kKeyBytesAt = 8;        // u32
inline constexpr uint64_t kValueTypeAt = 12;      // u32
inline constexpr uint64_t kValuePayloadAt = 16;   // u64: the scalar, or where the bytes are
inline constexpr uint64_t kValueElementsAt = 24;  // u64: 0, or bytes of the string, or elements
inline constexpr uint64_t kValueRecordBytes = 32;

inline constexpr uint32_t kInt = 1;
inline constexpr uint32_t kFloat = 2;
inline constexpr uint32_t kBool = 3;
inline constexpr uint32_t kString = 4;
inline constexpr uint32_t kStrings = 5;
inline constexpr uint32_t kInts = 6;

// A record of the tensor table.
inline constexpr uint64_t kNameOffsetAt = 0;     // u64
inline constexpr uint64_t kNameBytesAt = 8;      // u32
inline constexpr uint64_t kDTypeAt = 12;         // u32
inline constexpr uint64_t kRankAt = 16;          // u32
inline constexpr uint64_t kTensorUnusedAt = 20;  // u32, zero
inline constexpr uint64_t kDataOffsetAt = 24;    // u64
inline constexpr uint64_t kDataBytesAt = 32;     // u64
inline constexpr uint64_t kDataChecksumAt = 40;  // u64
inline constexpr uint64_t kShapeAt = 48;         // u64 [kMaxRank], zero past the rank
inline constexpr uint64_t kTensorRecordBytes = 112;
static_assert(kShapeAt + 8 * kMaxRank == kTensorRecordBytes);

inline uint32_t Load32(const std::byte* at) noexcept {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

inline uint64_t Load64(const std::byte* at) noexcept {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

inline void Store32(std::byte* at, uint32_t value) noexcept {
  std::memcpy(at, &value, sizeof(value));
}

inline void Store64(std::byte* at, uint64_t value) noexcept {
  std::memcpy(at, &value, sizeof(value));
}

inline std::string_view Chars(const std::byte* at, uint64_t size) noexcept {
  return {reinterpret_cast<const char*>(at), size};
}

// Zero bytes that follow `size` bytes so that the next thing is aligned.
inline constexpr uint64_t PaddingAfter(uint64_t size) noexcept {
  return (kTensorAlignment - size % kTensorAlignment) % kTensorAlignment;
}

// Valid UTF-8 (no surrogates, nothing overlong) without NUL: text that can also be a C string.
bool IsText(std::string_view text) noexcept;

// Names and keys are printable ASCII without the space, so that no two look alike by Unicode's
// rules and none can move a terminal's cursor.
inline constexpr bool IsNameCharacter(char c) noexcept { return c > ' ' && c <= '~'; }

// XXH3-128 of the header with its own field taken as zero, in XXH128's canonical order reversed:
// low half first, both little-endian.
inline void HeaderChecksum(std::span<const std::byte> header, std::byte out[16]) noexcept {
  constexpr std::byte kZero[16] = {};
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, header.data(), kChecksumAt);
  XXH3_128bits_update(&state, kZero, sizeof(kZero));
  XXH3_128bits_update(&state, header.data() + kChecksumAt + sizeof(kZero),
                      header.size() - kChecksumAt - sizeof(kZero));
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  Store64(out, hash.low64);
  Store64(out + 8, hash.high64);
}

inline uint64_t DataChecksum(std::span<const std::byte> data) noexcept {
  return XXH3_64bits(data.data(), data.size());
}

}  // namespace attend::layout

#endif  // ATTEND_ENGINE_FORMAT_LAYOUT_H_
