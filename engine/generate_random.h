// The random numbers of sampling: Philox4x32-10, a function of a key and a counter. Nothing is kept
// between calls, so that a draw depends on what it is for (seed, stream, step, place) and never on
// how many were drawn before it, or for whom.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#ifndef ATTEND_ENGINE_GENERATE_RANDOM_H_
#define ATTEND_ENGINE_GENERATE_RANDOM_H_

#include <array>
#include <cstdint>

namespace attend {

// Four random words of the counter `c` under the key `k`.
inline std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    k = {k[0] + 0x9E3779B9, k[1] + 0xBB67AE85};
  }
  return c;
}

// What a draw of a search is for.
struct DrawPlace {
  uint64_t seed = 0;
  uint32_t stream = 0;  // the output among those of its text
  uint32_t step = 0;    // tokens generated before
  uint32_t row = 0;     // beam sampling: the beam
  uint32_t token = 0;   // beam sampling: the token
};

// Uniform in (0, 1): an odd multiple of 2^-54.
inline double UniformAt(const DrawPlace& place) {
  const std::array<uint32_t, 4> words =
      Philox({place.step, place.token, place.row, place.stream},
             {static_cast<uint32_t>(place.seed), static_cast<uint32_t>(place.seed >> 32)});
  const uint64_t bits = ((uint64_t{words[0]} << 32) | words[1]) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

}  // namespace attend

#endif  // ATTEND_ENGINE_GENERATE_RANDOM_H_
