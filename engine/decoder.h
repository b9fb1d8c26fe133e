// Decoding: rows of tokens that grow by one token a step, each over a cache of its keys and values.
// The search (greedy, beam, sampling) stands above it and only sees rows and logits.
//
//   Result<DecodeSession> session = DecodeSession::Create(model, {.max_rows = 4});
//   // One sequence in row 0: its source, and the token that every output begins with.
//   auto logits = session->Start({.rows = {{0}}, .source_ids = ids, .source_offsets = {{0, 7}},
//                                 .ids = {{start}}, .offsets = {{0, 1}}});        // [1, V]
//   // Four beams out of it: rows 0 to 3 all continue row 0, each with a token of its own.
//   logits = session->Step({{0, 1, 2, 3}}, {{0, 0, 0, 0}}, {{5, 9, 2, 7}});       // [4, V]
//   // The best are children of rows 2, 2 and 0; the fourth beam has ended.
//   logits = session->Step({{0, 1, 2}}, {{2, 2, 0}}, {{8, 1, 4}});                // [3, V]
//
// Letters: B sequences that start together, R rows of a step, V vocabulary.
#ifndef ATTEND_ENGINE_DECODER_H_
#define ATTEND_ENGINE_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "attend/attend.h"
#include "attend/status.h"

namespace attend {

// Everything that decides memory.
struct DecodeOptions {
  int32_t num_threads = 1;  // as in SessionOptions
  int32_t max_rows = 16;    // rows alive at a time: sequences x beams
  // Tokens of a row, those it started with included. 0: 512, or what the model takes if that is
  // less.
  int32_t max_length = 0;
  int32_t max_sources = 0;        // encoder-decoder: sequences alive at a time; 0: as many as rows
  int32_t max_source_tokens = 0;  // encoder-decoder: of the longest source; 0: as for max_length
  Precision precision = Precision::kFile;
  Executor* executor = nullptr;
  ThreadBackend backend = ThreadBackend::kDefault;
  Share share = Share::kAuto;
  Trace* trace = nullptr;
  Logger* logger = nullptr;
  bool telemetry = false;
};

// Sequences that start, each in one row. `rows` names rows that are not alive.
struct DecodeStart {
  std::span<const int32_t> rows = {};            // [B], each in [0, max_rows)
  std::span<const int32_t> source_ids = {};      // encoder-decoder: what the encoder reads,
  std::span<const int32_t> source_offsets = {};  // end to end, [B+1]; else both empty
  std::span<const int32_t> ids = {};             // the first tokens of the rows, at least one each:
  std::span<const int32_t> offsets = {};         // the prompt, or the decoder's start token; [B+1]
};

// What a session has done since it was made.
struct DecodeWork {
  int64_t rows = 0;           // tokens that went through the decoder
  int64_t cached_pairs = 0;   // query and key, in each layer: with the row's own tokens
  int64_t source_pairs = 0;   // and with its source
  int64_t copied_blocks = 0;  // of kKeyBlock keys, in each layer, for rows that fork
};

struct DecodeSessionData;

// Runs a decoder, or an encoder and its decoder, over rows. Belongs to one caller at a time.
// All memory is taken in Create; Start and Step allocate nothing, but for the text of an error.
// A row's logits depend, bit by bit, on its source and its tokens alone: not on the other rows, on
// the row's number, on threads or share, and not on whether its tokens came by Start or by Step.
class DecodeSession {
 public:
  // Errors: kUnsupported (not a model that generates, or a part of it that this build does not
  // run); kInvalidArgument (an option out of its range, or beyond what the model's positions
  // reach: names it); kCapacity (more memory than there is).
  static Result<DecodeSession> Create(const Model& model, const DecodeOptions& options);

  DecodeSession(DecodeSession&&) noexcept;
  DecodeSession& operator=(DecodeSession&&) noexcept;
  ~DecodeSession();

  // Reads sources and first tokens, all tokens in one pass (long ones in passes of some hundreds).
  // Rows that are alive already stay as they are. Returns the logits [B, V] behind the last token
  // of each sequence, in the order of `rows`; valid until the next call.
  // Errors: kInvalidArgument (ids, offsets or rows: says which entry); kCapacity (longer than
  // max_length or max_source_tokens, more rows or sources than there are). After an error nothing
  // has changed.
  Result<std::span<const float>> Start(const DecodeStart& start);

  // Row rows[i] continues what row parents[i] was before this step, by the token ids[i]. A row may
  // have several children, which share its cache; afterwards exactly `rows` are alive. Sequences
  // that are not among `parents` have ended. Returns the logits [R, V] in the order of `rows`;
  // valid until the next call. No rows: everything ends.
  // Errors: as for Start; a parent that is not alive, a row that is named twice.
  // Cost: linear in the tokens of the row and its source. A child beyond a parent's first copies at
  // most 15 cached tokens.
  Result<std::span<const float>> Step(std::span<const int32_t> rows,
                                      std::span<const int32_t> parents,
                                      std::span<const int32_t> ids);

  // Ends rows without a step. Errors: kInvalidArgument (a row that is not alive).
  Status Release(std::span<const int32_t> rows);

  bool alive(int32_t row) const;
  int64_t length(int32_t row) const;  // tokens of a row that is alive

  const Model& model() const;
  bool has_encoder() const;
  int64_t vocab_size() const;            // V
  const DecodeOptions& options() const;  // as they are run: 0 replaced

  const DecodeWork& work() const;
  // Of the last Start or Step that worked, if the options ask for it, else null; valid until the
  // next. Tokens and sequences are those that started.
  const Telemetry* telemetry() const;
  size_t memory_bytes() const;
  int num_threads() const;
  // A line per step of the encoder's and the decoder's plan.
  std::string Describe() const;

 private:
  explicit DecodeSession(std::unique_ptr<DecodeSessionData> data);
  std::unique_ptr<DecodeSessionData> data_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_DECODER_H_
