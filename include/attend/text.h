// Text in; labels, vectors and text out: the tokenizer and the pipelines over it.
//
//   auto tagger = attend::Tagger::Load("pos-en.attend");
//   auto tags = tagger->Tag("I saw a saw");
//   for (const attend::TaggedWord& word : tags->words) ...
#ifndef ATTEND_TEXT_H_
#define ATTEND_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"

namespace attend {

// A half-open range [begin, end) of the original text.
struct TextRange {
  uint32_t begin = 0;
  uint32_t end = 0;
  friend bool operator==(const TextRange&, const TextRange&) = default;
};

// What positions count.
enum class OffsetUnit : int32_t { kBytes = 0, kCodePoints = 1, kUtf16 = 2 };

struct EncodeOptions {
  bool add_special_tokens = true;    // [CLS] ... [SEP] and the like
  bool parse_special_tokens = true;  // "[MASK]" written in the text is the special token
  OffsetUnit offset_unit = OffsetUnit::kBytes;
  int32_t max_tokens = 0;  // longer is cut to this many tokens, special ones included; 0: never
};

// One encoded text, or pair of texts. Reusing one keeps its memory.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;      // 0, and 1 for the second text of a pair
  std::vector<TextRange> offsets;     // in the original text; [0, 0] for tokens that were added
  std::vector<int32_t> sequence_ids;  // 0 or 1: which text; -1 for tokens that were added
  std::vector<std::string> tokens;    // the entries' text; filled by Tokenizer::Encode only
  bool truncated = false;
};

struct TokenizerData;

// Cuts text into the tokens of a vocabulary. Read-only and shared by any number of threads.
class ATTEND_EXPORT Tokenizer {
 public:
  Tokenizer(const Tokenizer&) = default;  // and no move: no Tokenizer is ever empty
  Tokenizer& operator=(const Tokenizer&) = default;

  // The tokenizer inside an .attend file or a Model.
  // Errors: as Model::Load; kNotFound (the model has no tokenizer).
  static Result<Tokenizer> Load(const std::string& path, const LoadOptions& options = {});
  static Result<Tokenizer> FromModel(const Model& model);
  // The tokenizer of what a model writes, where it has one of its own; kNotFound where not.
  static Result<Tokenizer> TargetOfModel(const Model& model);
  // The serialised form that a converter makes (engine/text/FORMAT.md), whatever the mode.
  static Result<Tokenizer> FromBytes(std::span<const std::byte> bytes,
                                     const LoadOptions& options = {});

  // Encodes `text` (UTF-8, NUL bytes allowed), or the pair `text`, `pair`.
  // Errors: kInvalidArgument (invalid UTF-8: names the byte); kCapacity (over 64 MiB, or memory).
  // Cost: linear in the text.
  Result<Encoding> Encode(std::string_view text, const EncodeOptions& options = {}) const;
  Result<Encoding> EncodePair(std::string_view text, std::string_view pair,
                              const EncodeOptions& options = {}) const;

  // The same without `tokens`, into an Encoding whose memory is reused.
  Status EncodeInto(std::string_view text, const EncodeOptions& options, Encoding* out) const;

  // Appends the tokens of one word on its own, without special tokens; a word of which nothing is
  // left becomes one unknown token. Offsets are not computed.
  Status EncodeWord(std::string_view word, std::vector<int32_t>* ids) const;

  // The text of `ids`; special tokens are left out if asked.
  // Errors: kInvalidArgument (an id out of range).
  Result<std::string> Decode(std::span<const int32_t> ids, bool skip_special_tokens = true) const;

  int32_t vocab_size() const;
  // The entry's text, or "" if `id` is out of range.
  std::string_view TokenText(int32_t id) const;
  // The entry's id, or -1.
  int32_t TokenId(std::string_view token) const;
  // "wordpiece", "bpe", "unigram" or "characters".
  std::string_view kind() const;
  // How many tokens are added to one text, and to a pair.
  int32_t num_added_tokens(bool pair) const;
  int32_t bos_id() const;  // the token in front ([CLS]), or -1
  int32_t eos_id() const;  // the token behind ([SEP]), or -1

  explicit Tokenizer(std::shared_ptr<const TokenizerData> data) : data_(std::move(data)) {}

 private:
  std::shared_ptr<const TokenizerData> data_;
};

// The pipelines below belong to one caller at a time. One that was moved from answers texts with
// kInvalidArgument, and is else only to be destroyed or assigned to.

// A word that a Tagger labelled.
struct TaggedWord {
  std::string text;
  TextRange range;  // in the text, in the unit asked for
  std::string label;
  float score = 0;  // the label's probability
};

struct Tags {
  std::vector<TaggedWord> words;
  bool windowed = false;  // the text was longer than the model takes and read in windows
};

struct PipelineOptions {
  SessionOptions session = {};
  OffsetUnit offset_unit = OffsetUnit::kBytes;
  bool truncate = false;   // cut texts that are too long instead of giving an error
  int32_t max_length = 0;  // tokens; 0: what the model takes
};

// n -> n: a label for every word.
class ATTEND_EXPORT Tagger {
 public:
  // Errors: as Model::Load and Session::Create; kUnsupported (a model of another task, or one
  // without a tokenizer: says what it is for).
  static Result<Tagger> Load(const std::string& path, const PipelineOptions& options = {});
  static Result<Tagger> Create(const Model& model, const PipelineOptions& options = {});
  Tagger(Tagger&&) noexcept;
  Tagger& operator=(Tagger&&) noexcept;
  ~Tagger();

  // Cuts the text into words and labels each. Text of any length; no word is lost.
  // Errors: kInvalidArgument (invalid UTF-8).
  Result<Tags> Tag(std::string_view text);
  Result<std::vector<Tags>> TagBatch(std::span<const std::string_view> texts);
  // The words are given: exactly one label a word, in order, empty words included. Ranges count in
  // the words joined by single spaces.
  Result<Tags> TagWords(std::span<const std::string_view> words);
  Result<std::vector<Tags>> TagWordsBatch(std::span<const std::vector<std::string_view>> texts);

  // What the model reads where Tag gets `text`. Offsets are those of the word that a token is of.
  // Errors: as of Tag; kCapacity (Tag would read it in windows).
  Result<Encoding> Encode(std::string_view text);

  const Model& model() const;
  // Where the time of the last call went, if session.telemetry asks for it; else null. Valid until
  // the next call.
  const Telemetry* telemetry() const;

 private:
  struct Impl;
  explicit Tagger(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Classification {
  std::string label;          // the most probable
  std::vector<float> scores;  // [C] probabilities, in the order of labels()
  bool truncated = false;
};

// n -> 1: a label for every text or pair of texts.
class ATTEND_EXPORT Classifier {
 public:
  static Result<Classifier> Load(const std::string& path, const PipelineOptions& options = {});
  static Result<Classifier> Create(const Model& model, const PipelineOptions& options = {});
  Classifier(Classifier&&) noexcept;
  Classifier& operator=(Classifier&&) noexcept;
  ~Classifier();

  // Errors: kInvalidArgument (invalid UTF-8); kCapacity (longer than the model takes, and
  // truncate is off).
  Result<Classification> Classify(std::string_view text);
  Result<Classification> ClassifyPair(std::string_view text, std::string_view pair);
  Result<std::vector<Classification>> ClassifyBatch(std::span<const std::string_view> texts);
  Result<std::vector<Classification>> ClassifyPairBatch(std::span<const std::string_view> texts,
                                                        std::span<const std::string_view> pairs);

  std::span<const std::string> labels() const;
  const Model& model() const;
  const Telemetry* telemetry() const;  // as Tagger's

 private:
  struct Impl;
  explicit Classifier(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Embedding {
  std::vector<float> values;  // [D]
  bool truncated = false;
};

// A vector for every text.
class ATTEND_EXPORT Embedder {
 public:
  static Result<Embedder> Load(const std::string& path, const PipelineOptions& options = {});
  static Result<Embedder> Create(const Model& model, const PipelineOptions& options = {});
  Embedder(Embedder&&) noexcept;
  Embedder& operator=(Embedder&&) noexcept;
  ~Embedder();

  // Errors: as Classifier's.
  Result<Embedding> Embed(std::string_view text);
  Result<std::vector<Embedding>> EmbedBatch(std::span<const std::string_view> texts);

  int32_t dimensions() const;
  const Model& model() const;
  const Telemetry* telemetry() const;  // as Tagger's

 private:
  struct Impl;
  explicit Embedder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Ranked {
  size_t index = 0;  // into the texts
  float score = 0;
  bool truncated = false;  // the text, or the query, was cut
};

// Texts by relevance to a query, best first: the logit of a cross-encoder with one label if the
// model is one, else the cosine of embeddings.
class ATTEND_EXPORT Reranker {
 public:
  static Result<Reranker> Load(const std::string& path, const PipelineOptions& options = {});
  static Result<Reranker> Create(const Model& model, const PipelineOptions& options = {});
  Reranker(Reranker&&) noexcept;
  Reranker& operator=(Reranker&&) noexcept;
  ~Reranker();

  // Errors: as Classifier's. Equal scores keep the order of the texts.
  Result<std::vector<Ranked>> Rank(std::string_view query, std::span<const std::string_view> texts);

  const Model& model() const;
  const Telemetry* telemetry() const;  // as Tagger's

 private:
  struct Impl;
  explicit Reranker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// When beam search may end before the longest length.
enum class EarlyStopping : int32_t {
  kNo = 0,     // when the best running beam, at its present length, cannot beat the worst finished
  kYes = 1,    // as soon as num_beams outputs are finished
  kNever = 2,  // as kNo, with the length that is best for the running beam
};

// How text is generated: the fields of Hugging Face's generation config, with their names and their
// meaning (transformers 5). What is not set is as the model file says, else as the comment says.
// Lengths count tokens; an output's length counts what it began with: the prompt, or the decoder's
// start token.
struct GenerationSettings {
  std::optional<int32_t> num_beams = {};             // 1: greedy, or plain sampling
  std::optional<int32_t> num_return_sequences = {};  // 1; at most num_beams, unless sampled plainly
  std::optional<int32_t> max_new_tokens = {};        // wins over max_length
  std::optional<int32_t> max_length = {};            // of an output; neither set: 20 new tokens
  std::optional<int32_t> min_length = {};            // 0: of an output
  std::optional<int32_t> min_new_tokens = {};        // 0
  std::optional<EarlyStopping> early_stopping = {};  // kNo
  std::optional<double> length_penalty = {};         // 1: scores are divided by length to its power
  std::optional<int32_t> no_repeat_ngram_size = {};  // 0: n-grams may repeat
  std::optional<double> repetition_penalty = {};     // 1
  std::optional<bool> renormalize_logits = {};       // false

  std::optional<bool> do_sample = {};      // false
  std::optional<double> temperature = {};  // 1
  std::optional<int32_t> top_k = {};       // 50; 0: all
  std::optional<double> top_p = {};        // 1
  std::optional<double> min_p = {};        // 0
  std::optional<uint64_t> seed = {};       // 0; not of Hugging Face's config

  // Token ids; -1 and empty lists: none.
  std::optional<std::vector<int32_t>> eos_token_id = {};
  std::optional<int32_t> bos_token_id = {};  // the prompt of an empty text
  std::optional<int32_t> pad_token_id = {};  // told, never generated: nothing is padded here
  std::optional<int32_t> decoder_start_token_id = {};  // bos_token_id
  std::optional<int32_t> forced_bos_token_id = {};
  std::optional<std::vector<int32_t>> forced_eos_token_id = {};
  std::optional<std::vector<int32_t>> suppress_tokens = {};
  std::optional<std::vector<int32_t>> begin_suppress_tokens = {};
  std::optional<std::vector<std::vector<int32_t>>> bad_words_ids = {};
};

struct GeneratorOptions {
  // At most max_sequences texts are decoded side by side, and no more than fit into max_tokens with
  // all their beams at full length.
  SessionOptions session = {};
  GenerationSettings settings = {};  // the defaults of every call, over those of the file
  int32_t max_text_tokens = 512;     // of a text or prompt; less if the model takes less
  int32_t max_decoder_tokens = 1;    // encoder-decoder: of what an output begins with
  bool truncate = false;             // cut texts that are too long instead of giving an error
};

// One output.
struct GeneratedText {
  std::string text;          // empty if the model has no tokenizer
  std::vector<int32_t> ids;  // new ones only, with the end token if it was reached
  // The sum of the ids' log-probabilities divided by their number to the power of length_penalty:
  // of what the settings leave of the model's distribution in beam search (a forced token counts
  // 0), of that distribution itself in greedy search and plain sampling.
  double score = 0;
};

// num_return_sequences outputs, best first (samples: in their order). Fewer if the settings allow
// no more.
struct Generation {
  std::vector<GeneratedText> outputs;
  bool truncated = false;
};

// Ids in, for models and callers without a tokenizer.
struct GenerationInput {
  std::span<const int32_t> ids = {};          // what the encoder reads, or the prompt
  std::span<const int32_t> decoder_ids = {};  // encoder-decoder: what the output begins with; the
                                              // start token is put in front if it is not there
};

// n -> unknown: text out of text, by greedy search, beam search or sampling.
// An output depends on its text, the settings and the seed alone, bit by bit: not on what is
// decoded beside it. Samples are drawn by Philox4x32-10 (engine/generate_random.h): output i of a
// text by the stream i of the seed.
class ATTEND_EXPORT Generator {
 public:
  // Takes all memory: for max_sequences texts of the settings' beams and lengths.
  // Errors: as Model::Load; kUnsupported (a model of another task: says what it is for);
  // kInvalidArgument (a setting out of its range or that does not go with another: names both);
  // kCapacity (longer than the model's positions, more memory than there is).
  static Result<Generator> Load(const std::string& path, const GeneratorOptions& options = {});
  static Result<Generator> Create(const Model& model, const GeneratorOptions& options = {});
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  // Errors: kInvalidArgument (invalid UTF-8; a character that the vocabulary lacks and that has no
  // unknown token; an empty prompt); kCapacity (longer than max_text_tokens or the model takes, and
  // truncate is off); kUnsupported (the model has no tokenizer).
  Result<Generation> Generate(std::string_view text);
  Result<std::vector<Generation>> GenerateBatch(std::span<const std::string_view> texts);

  // The same for token ids. Errors: kInvalidArgument (an id out of range: says which).
  Result<std::vector<Generation>> GenerateIds(std::span<const GenerationInput> inputs);

  // Sets what later calls use: `settings`, over those that Create was given. Takes more memory if
  // they need it. Errors: as Create's; after one all is as before.
  Status Set(const GenerationSettings& settings);

  // What is used, nothing left open.
  const GenerationSettings& settings() const;
  const Model& model() const;
  const Telemetry* telemetry() const;  // as Tagger's
  size_t memory_bytes() const;

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attend

#endif  // ATTEND_TEXT_H_
