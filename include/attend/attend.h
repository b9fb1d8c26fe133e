// attend: runs self-attention models on CPUs. This header is the manual of the engine: a Model is a
// file, a Session runs it. For text in and labels out, see text.h.
//
//   auto model = attend::Model::Load("encoder.attend");
//   if (!model.ok()) return Report(model.status());
//   auto session = attend::Session::Create(*model, {.num_threads = 2});
//   const int32_t ids[] = {101, 1045, 2387, 1037, 2387, 102}, offsets[] = {0, 6};
//   auto output = session->Run(attend::TokenBatch{.ids = ids, .offsets = offsets});
//   // output->hidden: [6, hidden_size] f32
//
// Letters: B sequences in the batch, T tokens in the batch, D model width, C classes.
#ifndef ATTEND_ATTEND_H_
#define ATTEND_ATTEND_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/log.h"
#include "attend/status.h"

namespace attend {

// The arithmetic of the linear layers. The caller chooses; the hardware never does.
enum class Precision : int32_t {
  kFile = 0,  // what the model file says
  kF32 = 1,
  kBf16 = 2,
  kInt8 = 3,
};

// What a model answers with.
enum class Task : int32_t {
  kHidden = 0,     // hidden states only
  kTokens = 1,     // a label for every position (n -> n)
  kSequence = 2,   // a label for every sequence (n -> 1)
  kEmbedding = 3,  // a vector for every sequence
  kGenerate = 4,   // the next token after every position: text out of text (n -> unknown)
};

// What is known of a model before any weight is touched.
struct ModelInfo {
  std::string architecture;  // "encoder"
  std::string source;        // what it was converted from: "bert", "distilbert", ...
  std::string description;   // free text of the file: training data, licence
  Task task = Task::kHidden;
  Precision precision = Precision::kF32;  // what the file asks for
  int32_t hidden_size = 0;                // D
  int32_t num_layers = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t intermediate_size = 0;
  int32_t vocab_size = 0;           // 0: the model takes vectors
  int32_t input_size = 0;           // width of an input vector; 0: the model takes tokens
  int32_t type_vocab_size = 0;      // 0: the model takes no type ids
  int32_t max_length = 0;           // the longest sequence; 0: no limit of the model's
  std::vector<std::string> labels;  // [C]
  std::string pooling;              // "", "first", "mean", "max", "last"
  bool normalized = false;          // embeddings have length 1
  std::string tokenizer;            // "wordpiece", ... or empty: the model takes ids only
  int64_t file_bytes = 0;
  int64_t num_parameters = 0;
};

// How a Model holds the bytes of its file.
enum class LoadMode : int32_t {
  kMap = 0,   // mapped: loads at once, and processes share the memory. The file must not be
              // truncated or overwritten in place while it is in use (SIGBUS, or wrong numbers);
              // replacing it by renaming another over it is safe
  kRead = 1,  // read into memory: whatever becomes of the file afterwards. Takes the file's size in
              // memory beside the packed weights
};

struct LoadOptions {
  LoadMode mode = LoadMode::kMap;
  Logger* logger = nullptr;  // who is told of it (log.h); not owned; not kept
};

struct ModelData;  // the inside of a Model
struct SessionData;
struct AttentionRecorder;
class Trace;  // trace.h

// A model file, read-only once loaded. Copies are cheap and share everything. Any number of threads
// and Sessions may use one Model at the same time. Moving copies: no Model is ever empty.
class ATTEND_EXPORT Model {
 public:
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;

  // Maps or reads `path` and checks all of its structure and its header checksum.
  // Errors: kNotFound, kIo; kCorrupt (damaged, or not an .attend file: says what it seems to be);
  // kUnsupported (a newer version, an architecture or feature this build does not know); kCapacity.
  static Result<Model> Load(const std::string& path, const LoadOptions& options = {});

  // The same for bytes in memory, which are copied, whatever the mode.
  static Result<Model> FromBytes(std::span<const std::byte> bytes, const LoadOptions& options = {});

  const ModelInfo& info() const;

  // Inside: for the engine and the pipelines.
  const ModelData& data() const { return *data_; }
  explicit Model(std::shared_ptr<ModelData> data) : data_(std::move(data)) {}
  const std::shared_ptr<ModelData>& shared() const { return data_; }

 private:
  std::shared_ptr<ModelData> data_;
};

// Limits the instruction set of this process: "sse4", "avx2", "avx512", "avx512_vnni",
// "avx512_bf16" or "amx". Call it before the first Session::Create.
// Errors: kInvalidArgument (no such name); kUnsupported (this CPU lacks it); kBusy (another one is
// already in use: there is one per process).
ATTEND_EXPORT Status LimitIsa(std::string_view name);

// The instruction sets this CPU has, worst first, by the names that LimitIsa takes.
ATTEND_EXPORT std::vector<std::string> AvailableIsas();

// The instruction set in use, or that would be if a Session were made now.
ATTEND_EXPORT std::string CurrentIsa();

// Somebody else's threads. attend starts none of its own when given one.
class ATTEND_EXPORT Executor {
 public:
  virtual ~Executor() = default;
  // Calls task(argument, i) for i = 0 .. n-1 at the same time, each on a thread of its own, and
  // returns when all have returned. If fewer than n can run at once, say so by concurrency().
  virtual void Run(int n, void (*task)(void* argument, int index), void* argument) = 0;
  // How many tasks really run at the same time; at least 1.
  virtual int concurrency() const = 0;
};

// Where the threads of a Session come from.
enum class ThreadBackend : int32_t {
  kDefault = 0,  // OpenMP where attend was built with it, else kThread
  kOpenMp = 1,   // in a child after fork, where OpenMP's threads are gone, kThread
  kThread = 2,   // a pool of std::threads of the Session's own
  kSerial = 3,   // no threads
};

// How the rows of a batch are shared among threads. Results do not depend on it, bit by bit.
enum class Share : int32_t {
  kAuto = 0,       // the one with the least predicted time
  kSequences = 1,  // every thread takes whole sequences
  kRows = 2,       // every thread takes a range of rows
  kColumns = 3,    // every thread takes columns of the weights, and heads
};

struct SessionOptions {
  int32_t num_threads = 1;     // 0: what affinity and the cgroup quota allow
  int32_t max_tokens = 8192;   // the largest T of a run
  int32_t max_sequences = 64;  // the largest B of a run
  // The most edges of a run, of models that take a graph. 0: every pair of max_tokens positions,
  // but at most 4,194,304 (16 MiB) or 64 for each of max_tokens, whichever is more.
  int32_t max_edges = 0;
  Precision precision = Precision::kFile;
  Executor* executor = nullptr;  // not owned; must outlive the Session
  ThreadBackend backend = ThreadBackend::kDefault;
  Share share = Share::kAuto;
  Trace* trace = nullptr;    // where to note what runs when (trace.h); not owned; must outlive the
                             // Session
  Logger* logger = nullptr;  // who is told what was chosen (log.h); not owned; must outlive the
                             // Session
  bool telemetry = false;    // whether runs take their times: Output::telemetry, and telemetry() of
                             // the pipelines
};

// Position i of a sequence sees position j of the same sequence. In a model with edges no other
// pair is seen, not even a position itself; a pair that is there twice counts once.
struct Edge {
  int32_t i;
  int32_t j;
};

// Sequences of token ids, end to end; nothing is padded.
struct TokenBatch {
  std::span<const int32_t> ids = {};       // [T], each in [0, vocab_size)
  std::span<const int32_t> offsets = {};   // [B+1]: sequence b is ids[offsets[b] .. offsets[b+1])
  std::span<const int32_t> type_ids = {};  // [T] or empty (all 0)
  // Of an encoder-decoder: what has been written so far, its start token first; sequence b answers
  // to sequence b of ids. Each token sees those before it.
  std::span<const int32_t> decoder_ids = {};      // [T'], or empty for other models
  std::span<const int32_t> decoder_offsets = {};  // [B+1], or empty
  // Edges of all sequences, end to end: those of sequence b are edges[edge_offsets[b] ..
  // edge_offsets[b+1]), i and j counted from the start of the sequence, in any order.
  std::span<const Edge> edges = {};
  std::span<const int32_t> edge_offsets = {};  // [B+1]; empty: no edges were given. A model needs
                                               // them, all 0 if need be, or takes none
};

// The same for models whose input is vectors.
struct VectorBatch {
  std::span<const float> rows = {};       // [T, input_size], row-major; finite
  std::span<const int32_t> offsets = {};  // [B+1]
  std::span<const Edge> edges = {};
  std::span<const int32_t> edge_offsets = {};
};

// What threads did, and how long: their times together, in nanoseconds (ns).
struct WorkTimes {
  int64_t embedding_ns = 0;  // embeddings, positions, vectors that came in
  int64_t attention_ns = 0;  // scores, softmax, weighted sums; the projections are linear
  int64_t linear_ns = 0;     // linear layers, with the activations behind them
  int64_t pooling_ns = 0;
  int64_t other_ns = 0;  // norms, residuals

  int64_t total_ns() const {
    return embedding_ns + attention_ns + linear_ns + pooling_ns + other_ns;
  }
};

// Where one run's time went, or that of all runs of a pipeline's call together. A run takes it with
// a clock's call (some 30 ns) for each step of 64 rows; its bits are the same.
struct Telemetry {
  int64_t runs = 0;    // 1; of a pipeline's call all it took: those of a Generator begin texts, or
                       // write a token of each
  int64_t tokens = 0;  // T, without those of a decoder; of a Generator those of texts and prompts
  int64_t decoder_tokens = 0;  // T' of an encoder-decoder; of a Generator all that went through its
                               // decoder, for every beam
  int64_t sequences = 0;       // B
  int32_t num_threads = 1;     // that took part; of several runs the most
  Share share = Share::kAuto;  // of several runs kAuto if they differ in it
  int64_t encode_ns = 0;       // of a pipeline's call, or a Batcher's text: making tokens of text
  int64_t queue_ns = 0;        // of a Batcher's request: from Submit until its batch started
  int64_t run_ns = 0;   // from one end of the run to the other, without the check of the batch
  int64_t wait_ns = 0;  // of all threads together, for each other. work and it together are at
                        // most num_threads * run_ns; the rest is starting and ending
  WorkTimes work;       // of all segments together
  // By segment: what runs from one look at other rows to the next, as Session::Describe lists them,
  // those of an encoder-decoder's decoder last. The first is the embedding with the first queries,
  // keys and values; then there is one for each layer.
  std::vector<WorkTimes> segments;
};

// Views of what a run computed. They belong to the Session and are valid until its next Run.
struct Output {
  std::span<const float> hidden = {};  // [T, D]; of an encoder-decoder the decoder's, [T', D]
  std::span<const float> pooled = {};  // [B, D'] or empty: the pooler's, the sentence embedding, or
                                       // what the logits of a sequence are made of
  // [T, C] or [B, C] or empty, as the task says. Of models that generate [T, V] or [T', V]: row t
  // scores the token that follows token t.
  std::span<const float> logits = {};
  std::span<const float> encoder_hidden = {};  // [T, D] of an encoder-decoder
  Share share = Share::kAuto;                  // how the rows were shared
  const Telemetry* telemetry = nullptr;        // of this run, if the options ask for it
};

// Runs a model. Belongs to one caller at a time; different Sessions may run at the same time.
// All memory is taken in Create; Run allocates nothing.
class ATTEND_EXPORT Session {
 public:
  // Compiles the plan and takes the memory.
  // Errors: kInvalidArgument (an option out of its range); kCapacity (more memory than there is);
  // kUnsupported (a part of the model that this build does not run).
  static Result<Session> Create(const Model& model, const SessionOptions& options = {});

  // The bytes that Create would take for itself, and for weights if it is the Model's first. Packs
  // those, which stay with the Model; takes nothing else. Errors: as Create's, but for kCapacity.
  static Result<size_t> PredictMemoryBytes(const Model& model, const SessionOptions& options = {});

  // A Session that was moved from answers Run with kInvalidArgument, and is else only to be
  // destroyed or assigned to.
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Computes the outputs of all sequences of `batch`. The result of a sequence is bit-identical
  // whatever else is in the batch, in whatever order, and on however many threads.
  // Errors: kInvalidArgument (an id, offset, type id or edge out of range, an empty batch or
  // sequence, rows of another width, NaN or infinity in a row, edges where the model takes none or
  // none where it needs them: says which); kCapacity (more than max_tokens, max_sequences or
  // max_edges, or a sequence longer than the model takes); kCancelled (`cancel`, which any thread
  // may set at any time, was true before the last layer: the run ends within one layer; null: never
  // looked at). After an error the Session is as before.
  Result<Output> Run(const TokenBatch& batch, const std::atomic<bool>* cancel = nullptr);
  Result<Output> Run(const VectorBatch& batch, const std::atomic<bool>* cancel = nullptr);

  // The bytes this Session holds (arena, scratch, bound primitives' memory); packed weights belong
  // to the Model and are counted by weight_bytes().
  size_t memory_bytes() const;
  size_t weight_bytes() const;

  int num_threads() const;

  // A line per step of the plan: name, shape, kernel, ISA, bytes, FLOPs a token.
  std::string Describe() const;

  SessionData& data() { return *data_; }

 private:
  friend class AttentionMap;
  static Result<Session> Create(const Model& model, const SessionOptions& options,
                                std::unique_ptr<AttentionRecorder> recorder);
  explicit Session(std::unique_ptr<SessionData> data);
  std::unique_ptr<SessionData> data_;
};

// How many threads affinity and the cgroup quota allow, and which rule gave the number.
struct ThreadAdvice {
  int num_threads = 1;
  std::string reason;
};
ATTEND_EXPORT ThreadAdvice AdviseThreads();

// "0.1.0", and the versions of what attend stands on ("oneDNN 2.6.3, Highway 1.0.3").
ATTEND_EXPORT const char* Version();
ATTEND_EXPORT std::string LibraryVersions();

}  // namespace attend

#endif  // ATTEND_ATTEND_H_
