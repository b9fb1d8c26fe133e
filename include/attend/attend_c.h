// attend for C, and for every language that calls C: the whole library behind one stable ABI (C99).
//
//   attend_error error = ATTEND_ERROR_INIT;
//   attend_model* model = NULL;
//   attend_tagger* tagger = NULL;
//   attend_tags tags = ATTEND_TAGS_INIT;
//   if (attend_model_load("pos-en.attend", &model, &error) != ATTEND_OK ||
//       attend_tagger_create(model, NULL, &tagger, &error) != ATTEND_OK ||
//       attend_tag(tagger, text, strlen(text), &tags, &error) != ATTEND_OK) {
//     fprintf(stderr, "%s: %s\n", error.where, error.message);
//   }
//   for (int64_t i = 0; i < tags.num_words; ++i) puts(tags.words[i].label);
//   attend_tagger_free(tagger);
//   attend_model_free(model);
//
// Rules, which hold for every function:
// - Handles are opaque. Each is ended by its own free function, which takes NULL and does nothing
//   then. What was made from a model may outlive it: it is freed with the last of them.
// - What can fail returns an attend_status and, if an attend_error is given (NULL: none), fills it.
//   A function that fails has set nothing but the error; its objects are as they were before. A
//   NULL where none is allowed is ATTEND_INVALID_ARGUMENT. No exception leaves the library.
// - Structs with a struct_size are made with their ..._INIT. The library reads and writes no byte
//   beyond struct_size, so that programs compiled with an older, smaller header go on working; what
//   an older library does not know of, fields called reserved included, must be 0. Structs without
//   a struct_size stand in arrays or other structs, and never change.
// - Counts are int64_t and count elements. Sizes are size_t and count bytes. Texts are UTF-8 with a
//   size, NUL bytes allowed; texts that come out are NUL-terminated as well.
// - What comes out is owned by the object that made it (a session, tagger, buffer, ...) and valid
//   until that object's next use or its end.
// - Threads: "shared" means that any number of threads may call it on the same objects at the same
//   time; "one at a time" that an object belongs to one caller at a time, and different objects may
//   be used at the same time. Freeing is one at a time.
//
// The meaning of every option, field and error is that of the C++ headers, attend.h and text.h.
// Letters: B sequences in the batch, T tokens in the batch, D model width, C classes.
#ifndef ATTEND_ATTEND_C_H_
#define ATTEND_ATTEND_C_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define ATTEND_API __attribute__((visibility("default")))
#else
#define ATTEND_API
#endif
#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------------------- errors

// What kind of thing went wrong (docs/errors.md). The numbers never change.
typedef enum attend_status {
  ATTEND_OK = 0,
  ATTEND_INVALID_ARGUMENT = 1,
  ATTEND_NOT_FOUND = 2,
  ATTEND_CORRUPT = 3,
  ATTEND_UNSUPPORTED = 4,
  ATTEND_CAPACITY = 5,  // more than a limit, or than there is memory
  ATTEND_IO = 6,
  ATTEND_DEADLINE = 7,
  ATTEND_CANCELLED = 8,
  ATTEND_BUSY = 9,
  ATTEND_INTERNAL = 10
} attend_status;

// What went wrong, for people. It owns its texts, so that reporting too little memory needs none;
// one that is too long is cut at a character and ends in "...".
typedef struct attend_error {
  size_t struct_size;
  int32_t code;       // an attend_status; after a success ATTEND_OK, and the texts are empty
  char message[512];  // one sentence: what was expected and what was found
  char where[256];    // the file, tensor, field, row or byte
  char hint[260];     // what to do about it, or empty
} attend_error;
#define ATTEND_ERROR_INIT \
  { sizeof(attend_error), 0, "", "", "" }

// The name of a status ("INVALID_ARGUMENT"). Never NULL. Threads: shared.
ATTEND_API const char* attend_status_name(attend_status status);

// "0.1.0". Threads: shared.
ATTEND_API const char* attend_version(void);

// ----------------------------------------------------------------------------- texts and buffers

// A text. NULL with size 0 is the empty text.
typedef struct attend_text {
  const char* data;
  size_t size;
} attend_text;

// Where objects that are shared by threads (a tokenizer, this machine) put what they give: one
// buffer for each caller. Its memory is used again.
typedef struct attend_buffer attend_buffer;

// Errors: ATTEND_CAPACITY. Threads: shared.
ATTEND_API attend_status attend_buffer_create(attend_buffer** out, attend_error* error);
ATTEND_API void attend_buffer_free(attend_buffer* buffer);

// ---------------------------------------------------------------------------------- this machine

typedef struct attend_machine {
  size_t struct_size;
  const char* const* isas;  // [num_isas] instruction sets of this CPU, worst first
  int64_t num_isas;
  const char* isa;           // the one in use, or that would be if a session were made now
  int64_t num_threads;       // what affinity and the cgroup quota allow
  const char* threads_rule;  // which rule gave the number
  const char* libraries;     // what attend stands on: "oneDNN 2.6.3, Highway 1.0.3"
} attend_machine;
#define ATTEND_MACHINE_INIT \
  { sizeof(attend_machine), NULL, 0, NULL, 0, NULL, NULL }

// Threads: shared, each caller with a buffer of its own.
ATTEND_API attend_status attend_machine_get(attend_buffer* buffer, attend_machine* out,
                                            attend_error* error);

// Limits the instruction set of this process; before the first session. Errors:
// ATTEND_INVALID_ARGUMENT (no such name); ATTEND_UNSUPPORTED (this CPU lacks it); ATTEND_BUSY
// (another one is in use). Threads: shared.
ATTEND_API attend_status attend_limit_isa(const char* name, attend_error* error);

// ------------------------------------------------------------------------------------------- log

// How much an entry matters, in ascending order.
enum { ATTEND_LOG_DEBUG = -1, ATTEND_LOG_INFO = 0, ATTEND_LOG_WARNING = 1 };

// What an entry is about; log.h says more. The numbers never change.
enum {
  ATTEND_LOG_MODEL_LOADED = 1,
  ATTEND_LOG_NOT_MAPPED = 2,
  ATTEND_LOG_INSTRUCTION_SET = 3,
  ATTEND_LOG_OTHER_INSTRUCTION_SET = 4,
  ATTEND_LOG_PRECISION = 5,
  ATTEND_LOG_THREADS = 6,
  ATTEND_LOG_MANY_THREADS = 7,
  ATTEND_LOG_FEW_THREADS = 8,
  ATTEND_LOG_MEMORY = 9,
  ATTEND_LOG_BATCHER = 10,
  ATTEND_LOG_REFUSED = 11,
  ATTEND_LOG_EXPIRED = 12
};

// Who is told what no status says: what was loaded, chosen, refused. The struct is copied; what
// `user` points to must outlive every object that was made with it. Called by any thread that uses
// those objects, several at once; `message` is NUL-terminated and valid during the call. It may not
// throw, jump out, or use the object that is being made or run.
typedef struct attend_logger {
  size_t struct_size;
  void* user;
  void (*log)(void* user, int32_t level, int32_t code, const char* message, size_t size);
  int32_t least;     // entries below this level are not made; 0: ATTEND_LOG_INFO
  int32_t reserved;  // 0
} attend_logger;
#define ATTEND_LOGGER_INIT \
  { sizeof(attend_logger), NULL, NULL, 0, 0 }

// ----------------------------------------------------------------------------------------- traces

// What ran when, as a file that ui.perfetto.dev and chrome://tracing open (trace.h). Objects note
// into the one that is in their options, which must outlive them.
typedef struct attend_trace attend_trace;

// Takes room for `max_events` spans, 32 bytes each, 0: 1,000,000; further ones are dropped and
// counted. Errors: ATTEND_INVALID_ARGUMENT (max_events), ATTEND_CAPACITY. Threads: shared.
ATTEND_API attend_status attend_trace_create(int64_t max_events, attend_trace** out,
                                             attend_error* error);
ATTEND_API void attend_trace_free(attend_trace* trace);

typedef struct attend_trace_info {
  size_t struct_size;
  int64_t num_events;
  int64_t num_dropped;
} attend_trace_info;
#define ATTEND_TRACE_INFO_INIT \
  { sizeof(attend_trace_info), 0, 0 }

// Threads: shared, also with runs that note into it.
ATTEND_API attend_status attend_trace_get_info(const attend_trace* trace, attend_trace_info* out,
                                               attend_error* error);
// All spans in the trace event format (JSON): what a file of it has in it. Errors: ATTEND_CAPACITY.
// Threads: one at a time, while no run notes into it.
ATTEND_API attend_status attend_trace_write_json(const attend_trace* trace, attend_buffer* buffer,
                                                 attend_text* out, attend_error* error);
// Forgets all spans. NULL does nothing. Threads: as attend_trace_write_json.
ATTEND_API void attend_trace_clear(attend_trace* trace);

// ---------------------------------------------------------------------------------------- models

// A model file, read-only.
typedef struct attend_model attend_model;

enum { ATTEND_LOAD_MAP = 0, ATTEND_LOAD_READ = 1 };

typedef struct attend_load_options {
  size_t struct_size;
  int32_t mode;      // ATTEND_LOAD_MAP: the file must not be changed in place while it is in use;
                     // ATTEND_LOAD_READ: a copy in memory, whatever becomes of the file
  int32_t reserved;  // 0
  const attend_logger* logger;  // or NULL
} attend_load_options;
#define ATTEND_LOAD_OPTIONS_INIT \
  { sizeof(attend_load_options), ATTEND_LOAD_MAP, 0, NULL }

// Errors: ATTEND_NOT_FOUND, ATTEND_IO, ATTEND_CORRUPT, ATTEND_UNSUPPORTED, ATTEND_CAPACITY.
// Threads: shared.
ATTEND_API attend_status attend_model_load(const char* path, attend_model** out,
                                           attend_error* error);
// The same with options; NULL: the defaults. Threads: shared.
ATTEND_API attend_status attend_model_load_with(const char* path,
                                                const attend_load_options* options,
                                                attend_model** out, attend_error* error);
// The same for bytes in memory, which are copied. Threads: shared.
ATTEND_API attend_status attend_model_from_bytes(const void* bytes, size_t size, attend_model** out,
                                                 attend_error* error);
// The same with options; the mode does not matter. Threads: shared.
ATTEND_API attend_status attend_model_from_bytes_with(const void* bytes, size_t size,
                                                      const attend_load_options* options,
                                                      attend_model** out, attend_error* error);
ATTEND_API void attend_model_free(attend_model* model);

enum {
  ATTEND_PRECISION_FILE = 0,
  ATTEND_PRECISION_F32 = 1,
  ATTEND_PRECISION_BF16 = 2,
  ATTEND_PRECISION_INT8 = 3
};
enum {
  ATTEND_TASK_HIDDEN = 0,
  ATTEND_TASK_TOKENS = 1,
  ATTEND_TASK_SEQUENCE = 2,
  ATTEND_TASK_EMBEDDING = 3,
  ATTEND_TASK_GENERATE = 4
};

// What is known of a model. The texts live as long as the handle.
typedef struct attend_model_info {
  size_t struct_size;
  const char* architecture;
  const char* source;         // what it was converted from: "bert", ...
  const char* description;    // free text of the file: training data, licence
  const char* pooling;        // "", "first", "mean", "max", "last"
  const char* tokenizer;      // "wordpiece", ... or "": the model takes ids only
  const char* const* labels;  // [num_labels]
  int64_t num_labels;         // C
  int32_t task;               // ATTEND_TASK_...
  int32_t precision;          // ATTEND_PRECISION_...: what the file asks for
  int32_t normalized;         // 1: embeddings have length 1
  int64_t hidden_size;        // D
  int64_t num_layers;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
  int64_t intermediate_size;
  int64_t vocab_size;       // 0: the model takes vectors
  int64_t input_size;       // width of an input vector; 0: the model takes tokens
  int64_t type_vocab_size;  // 0: the model takes no type ids
  int64_t max_length;       // the longest sequence; 0: no limit of the model's
  int64_t num_parameters;
  size_t file_bytes;
} attend_model_info;
#define ATTEND_MODEL_INFO_INIT                                                                   \
  {                                                                                              \
    sizeof(attend_model_info), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0                                                                         \
  }

// Threads: shared.
ATTEND_API attend_status attend_model_get_info(const attend_model* model, attend_model_info* out,
                                               attend_error* error);

// -------------------------------------------------------------------------------------- sessions

// Runs a model over token ids or vectors.
typedef struct attend_session attend_session;

// Your threads in place of attend's. Neither function may throw, or jump out. The struct is copied;
// what `user` points to must outlive every object that was made with it.
typedef struct attend_executor {
  size_t struct_size;
  void* user;
  // Calls task(argument, i) for i = 0 .. n-1 at the same time, each on a thread of its own, and
  // returns when all have returned.
  void (*run)(void* user, int n, void (*task)(void* argument, int index), void* argument);
  // How many tasks really run at the same time; at least 1.
  int (*concurrency)(void* user);
} attend_executor;
#define ATTEND_EXECUTOR_INIT \
  { sizeof(attend_executor), NULL, NULL, NULL }

enum {
  ATTEND_THREADS_DEFAULT = 0,
  ATTEND_THREADS_OPENMP = 1,
  ATTEND_THREADS_OWN = 2,
  ATTEND_THREADS_NONE = 3
};
enum {
  ATTEND_SHARE_AUTO = 0,
  ATTEND_SHARE_SEQUENCES = 1,
  ATTEND_SHARE_ROWS = 2,
  ATTEND_SHARE_COLUMNS = 3
};

typedef struct attend_session_options {
  size_t struct_size;
  int64_t num_threads;              // 1; 0: what affinity and the cgroup quota allow
  int64_t max_tokens;               // the largest T of a run; 0: 8192
  int64_t max_sequences;            // the largest B of a run; 0: 64
  int64_t max_edges;                // of models with edges; 0: see SessionOptions in attend.h
  int32_t precision;                // ATTEND_PRECISION_...
  int32_t backend;                  // ATTEND_THREADS_...
  int32_t share;                    // ATTEND_SHARE_...
  const attend_executor* executor;  // or NULL
  const attend_logger* logger;      // or NULL
  attend_trace* trace;              // or NULL
  int32_t telemetry;                // 1: runs take their times, attend_telemetry
  int32_t reserved;                 // 0
} attend_session_options;
#define ATTEND_SESSION_OPTIONS_INIT \
  { sizeof(attend_session_options), 1, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0 }

// Compiles the plan and takes all memory. `options` may be NULL. Errors: ATTEND_INVALID_ARGUMENT,
// ATTEND_CAPACITY, ATTEND_UNSUPPORTED. Threads: shared.
ATTEND_API attend_status attend_session_create(const attend_model* model,
                                               const attend_session_options* options,
                                               attend_session** out, attend_error* error);
ATTEND_API void attend_session_free(attend_session* session);

// The bytes that attend_session_create would take. Threads: shared.
ATTEND_API attend_status attend_session_predict_memory(const attend_model* model,
                                                       const attend_session_options* options,
                                                       size_t* out_bytes, attend_error* error);

// Position i of a sequence sees position j of the same sequence.
typedef struct attend_edge {
  int32_t i;
  int32_t j;
} attend_edge;

// Sequences, end to end; nothing is padded. Either ids or rows are given.
typedef struct attend_batch {
  size_t struct_size;
  const int32_t* ids;       // [num_tokens], or NULL
  const float* rows;        // [num_tokens, input_size], or NULL
  int64_t num_tokens;       // T
  const int32_t* offsets;   // [B+1]: sequence b is offsets[b] .. offsets[b+1]
  int64_t num_sequences;    // B
  const int32_t* type_ids;  // [T], or NULL: all 0
  // Of an encoder-decoder: what has been written so far.
  const int32_t* decoder_ids;  // [num_decoder_ids], or NULL
  int64_t num_decoder_ids;
  const int32_t* decoder_offsets;  // [B+1], or NULL
  // Of a model with edges.
  const attend_edge* edges;  // [num_edges]
  int64_t num_edges;
  const int32_t* edge_offsets;  // [B+1]; NULL: no edges were given
} attend_batch;
#define ATTEND_BATCH_INIT \
  { sizeof(attend_batch), NULL, NULL, 0, NULL, 0, NULL, NULL, 0, NULL, NULL, 0, NULL }

// What threads did, and how long: their times together, in nanoseconds.
typedef struct attend_work_times {
  int64_t embedding_ns;
  int64_t attention_ns;
  int64_t linear_ns;
  int64_t pooling_ns;
  int64_t other_ns;
} attend_work_times;

// Where one run's time went, or that of all runs of a pipeline's call; Telemetry in attend.h says
// more. The library sets struct_size to what it fills.
typedef struct attend_telemetry {
  size_t struct_size;
  int64_t num_tokens;     // T
  int64_t num_sequences;  // B
  int64_t num_threads;    // that took part
  int64_t queue_ns;       // of a batcher's request: until its batch started
  int64_t run_ns;         // from one end of the run to the other
  int64_t wait_ns;        // of all threads together, for each other
  attend_work_times work;
  const attend_work_times* segments;  // [num_segments]
  int64_t num_segments;
  int32_t share;  // ATTEND_SHARE_...
  int32_t reserved;
  int64_t num_runs;            // 1; of a pipeline's call all it took
  int64_t num_decoder_tokens;  // of a decoder
  int64_t encode_ns;           // of a pipeline's call, or a batcher's text: making tokens of text
} attend_telemetry;

// What a run computed, with the number of its elements; NULL and 0 where a model has none.
typedef struct attend_output {
  size_t struct_size;
  const float* hidden;  // [T, D]; of an encoder-decoder the decoder's
  int64_t num_hidden;
  const float* pooled;  // [B, D']
  int64_t num_pooled;
  const float* logits;  // [T, C], [B, C] or, of models that generate, [T, vocab_size]
  int64_t num_logits;
  const float* encoder_hidden;  // [T, D] of an encoder-decoder
  int64_t num_encoder_hidden;
  int32_t share;  // ATTEND_SHARE_...: how the rows were shared
  int32_t reserved;
  const attend_telemetry* telemetry;  // if the options ask for it, or NULL
} attend_output;
#define ATTEND_OUTPUT_INIT \
  { sizeof(attend_output), NULL, 0, NULL, 0, NULL, 0, NULL, 0, 0, 0, NULL }

// Computes the outputs of all sequences, bit-identical whatever else is in the batch. Allocates
// nothing. Errors: ATTEND_INVALID_ARGUMENT (says which entry), ATTEND_CAPACITY, ATTEND_CANCELLED.
// Threads: one at a time.
ATTEND_API attend_status attend_session_run(attend_session* session, const attend_batch* batch,
                                            attend_output* out, attend_error* error);

// Stops the run that is in progress, within one layer: attend_session_run returns
// ATTEND_CANCELLED. Does nothing if there is none. Threads: shared, also with attend_session_run.
ATTEND_API void attend_session_cancel(attend_session* session);

typedef struct attend_session_info {
  size_t struct_size;
  size_t memory_bytes;  // what this session holds
  size_t weight_bytes;  // packed weights, which the model holds once for all its sessions
  int64_t num_threads;
  const char* description;  // a line for each step of the plan
} attend_session_info;
#define ATTEND_SESSION_INFO_INIT \
  { sizeof(attend_session_info), 0, 0, 0, NULL }

// Threads: one at a time.
ATTEND_API attend_status attend_session_get_info(attend_session* session, attend_session_info* out,
                                                 attend_error* error);

// ------------------------------------------------------------------------------ attention weights

// Who looks at whom, of one sequence at a time (attention.h): for looking, not for speed.
typedef struct attend_attention_map attend_attention_map;

typedef struct attend_attention_options {
  size_t struct_size;
  int64_t max_tokens;           // the longest sequence; 0: 512
  int64_t max_edges;            // as in attend_session_options
  int32_t precision;            // ATTEND_PRECISION_...
  int32_t reserved;             // 0
  const attend_logger* logger;  // or NULL
  attend_trace* trace;          // or NULL
} attend_attention_options;
#define ATTEND_ATTENTION_OPTIONS_INIT \
  { sizeof(attend_attention_options), 0, 0, 0, 0, NULL, NULL }

typedef struct attend_weights {
  int64_t layers, heads, queries, keys;
  const float* values;  // [layers, heads, queries, keys], or NULL
} attend_weights;

typedef struct attend_attention {
  size_t struct_size;
  attend_weights self;     // of the sequence over itself
  attend_weights decoder;  // of an encoder-decoder: of what was written over itself,
  attend_weights cross;    // and over the source
} attend_attention;
#define ATTEND_ATTENTION_INIT                                                              \
  {                                                                                        \
    sizeof(attend_attention), {0, 0, 0, 0, NULL}, {0, 0, 0, 0, NULL}, { 0, 0, 0, 0, NULL } \
  }

// Errors: as attend_session_create. Threads: shared.
ATTEND_API attend_status attend_attention_map_create(const attend_model* model,
                                                     const attend_attention_options* options,
                                                     attend_attention_map** out,
                                                     attend_error* error);
ATTEND_API void attend_attention_map_free(attend_attention_map* map);
// Errors: as attend_session_run; ATTEND_CAPACITY (more than one sequence). Threads: one at a time.
ATTEND_API attend_status attend_attention_map_run(attend_attention_map* map,
                                                  const attend_batch* batch, attend_attention* out,
                                                  attend_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif

// Text in; labels, vectors and text out. Many callers of one model.
#include "attend/attend_c_batcher.h"
#include "attend/attend_c_text.h"

#endif  // ATTEND_ATTEND_C_H_
