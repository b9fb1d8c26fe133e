// The part of attend's C interface that has to do with text: tokenizers, and the pipelines over
// them. Comes with attend_c.h, whose rules hold here.
#include "attend/attend_c.h"  // before the guard: it brings in this file, and what builds on it

#ifndef ATTEND_ATTEND_C_TEXT_H_
#define ATTEND_ATTEND_C_TEXT_H_

#ifdef __cplusplus
extern "C" {
#endif

// ------------------------------------------------------------------------------------ tokenizers
// These are in libattend_text as well, which needs no oneDNN.

typedef struct attend_tokenizer attend_tokenizer;

// The tokenizer of an .attend file. Errors: as attend_model_load; ATTEND_NOT_FOUND (it has none).
// Threads: shared.
ATTEND_API attend_status attend_tokenizer_load(const char* path, attend_tokenizer** out,
                                               attend_error* error);
// The same with options; NULL: the defaults. Threads: shared.
ATTEND_API attend_status attend_tokenizer_load_with(const char* path,
                                                    const attend_load_options* options,
                                                    attend_tokenizer** out, attend_error* error);
// The same of a file in memory. Threads: shared.
ATTEND_API attend_status attend_tokenizer_from_bytes(const void* bytes, size_t size,
                                                     attend_tokenizer** out, attend_error* error);
// The same with options; the mode does not matter. Threads: shared.
ATTEND_API attend_status attend_tokenizer_from_bytes_with(const void* bytes, size_t size,
                                                          const attend_load_options* options,
                                                          attend_tokenizer** out,
                                                          attend_error* error);
// That of a model; `target` 1: of what it writes, where it has one of its own. Not in
// libattend_text. Threads: shared.
ATTEND_API attend_status attend_tokenizer_of_model(const attend_model* model, int32_t target,
                                                   attend_tokenizer** out, attend_error* error);
ATTEND_API void attend_tokenizer_free(attend_tokenizer* tokenizer);

enum { ATTEND_OFFSETS_BYTES = 0, ATTEND_OFFSETS_CODEPOINTS = 1, ATTEND_OFFSETS_UTF16 = 2 };

typedef struct attend_encode_options {
  size_t struct_size;
  int32_t no_special_tokens;   // 1: without [CLS] ... [SEP] and the like
  int32_t no_special_parsing;  // 1: "[MASK]" in the text is text
  int32_t offset_unit;         // ATTEND_OFFSETS_...
  int64_t max_tokens;          // longer is cut to this many; 0: never
} attend_encode_options;
#define ATTEND_ENCODE_OPTIONS_INIT \
  { sizeof(attend_encode_options), 0, 0, 0, 0 }

// Where in the text: [begin, end).
typedef struct attend_range {
  uint32_t begin;
  uint32_t end;
} attend_range;

typedef struct attend_tokens {
  size_t struct_size;
  int64_t num_tokens;           // T
  const int32_t* ids;           // [T]
  const int32_t* type_ids;      // [T]
  const int32_t* sequence_ids;  // [T] which text; -1 for tokens that were added
  const attend_range* offsets;  // [T] in the original text
  const attend_text* tokens;    // [T] the entries' texts
  int32_t truncated;
  int32_t reserved;
} attend_tokens;
#define ATTEND_TOKENS_INIT \
  { sizeof(attend_tokens), 0, NULL, NULL, NULL, NULL, NULL, 0, 0 }

// Encodes a text, or a pair of texts (`pair` NULL: none); `options` may be NULL. Errors:
// ATTEND_INVALID_ARGUMENT (invalid UTF-8: names the byte), ATTEND_CAPACITY. Threads: shared, each
// caller with a buffer of its own.
ATTEND_API attend_status attend_tokenizer_encode(const attend_tokenizer* tokenizer,
                                                 const attend_text* text, const attend_text* pair,
                                                 const attend_encode_options* options,
                                                 attend_buffer* buffer, attend_tokens* out,
                                                 attend_error* error);

// The text of ids; `keep_special` 1: with special tokens. Errors: ATTEND_INVALID_ARGUMENT (an id
// out of range), ATTEND_CAPACITY. Threads: shared, each caller with a buffer of its own.
ATTEND_API attend_status attend_tokenizer_decode(const attend_tokenizer* tokenizer,
                                                 const int32_t* ids, int64_t num_ids,
                                                 int32_t keep_special, attend_buffer* buffer,
                                                 attend_text* out, attend_error* error);

typedef struct attend_tokenizer_info {
  size_t struct_size;
  const char* kind;  // "wordpiece", "characters", ...
  int64_t vocab_size;
  int32_t bos_id;             // the token in front ([CLS]), or -1
  int32_t eos_id;             // the token behind ([SEP]), or -1
  int64_t num_added;          // tokens that are added to a text,
  int64_t num_added_to_pair;  // and to a pair
} attend_tokenizer_info;
#define ATTEND_TOKENIZER_INFO_INIT \
  { sizeof(attend_tokenizer_info), NULL, 0, -1, -1, 0, 0 }

// Threads: shared.
ATTEND_API attend_status attend_tokenizer_get_info(const attend_tokenizer* tokenizer,
                                                   attend_tokenizer_info* out, attend_error* error);
// The id of an entry, or -1; -1 for a NULL tokenizer. Threads: shared.
ATTEND_API int32_t attend_tokenizer_token_id(const attend_tokenizer* tokenizer, const char* text,
                                             size_t size);
// The text of an entry, not NUL-terminated; NULL and 0 if there is none. It lives as long as the
// tokenizer. Threads: shared.
ATTEND_API attend_text attend_tokenizer_token_text(const attend_tokenizer* tokenizer, int32_t id);

// ------------------------------------------------------------------------------------- pipelines

typedef struct attend_pipeline_options {
  size_t struct_size;
  const attend_session_options* session;  // or NULL
  int32_t offset_unit;                    // ATTEND_OFFSETS_...
  int32_t truncate;    // 1: cut texts that are too long instead of giving an error
  int64_t max_length;  // tokens; 0: what the model takes
} attend_pipeline_options;
#define ATTEND_PIPELINE_OPTIONS_INIT \
  { sizeof(attend_pipeline_options), NULL, 0, 0, 0 }

// n -> n: a label for every word. Errors of ..._create, here and below: as attend_session_create;
// ATTEND_UNSUPPORTED (a model of another task, or without a tokenizer). `options` may be NULL.
typedef struct attend_tagger attend_tagger;

// Threads: shared.
ATTEND_API attend_status attend_tagger_create(const attend_model* model,
                                              const attend_pipeline_options* options,
                                              attend_tagger** out, attend_error* error);
ATTEND_API void attend_tagger_free(attend_tagger* tagger);

typedef struct attend_word {
  const char* text;
  size_t text_size;
  attend_range range;  // in its text, in the unit asked for
  const char* label;
  float score;  // the label's probability
} attend_word;

typedef struct attend_tags {
  size_t struct_size;
  int64_t num_texts;
  int64_t num_words;         // of all texts
  const attend_word* words;  // [num_words]
  const int64_t* offsets;    // [num_texts+1]: the words of text t are offsets[t] .. offsets[t+1]
  const uint8_t* windowed;   // [num_texts] 1: longer than the model takes, and read in windows
  const attend_telemetry* telemetry;  // of the call, if the session options ask for it, or NULL
} attend_tags;
#define ATTEND_TAGS_INIT \
  { sizeof(attend_tags), 0, 0, NULL, NULL, NULL, NULL }

// Cuts a text of any length into words and labels each. Errors: ATTEND_INVALID_ARGUMENT (invalid
// UTF-8), ATTEND_CAPACITY (memory). Threads: one at a time.
ATTEND_API attend_status attend_tag(attend_tagger* tagger, const char* text, size_t size,
                                    attend_tags* out, attend_error* error);
// Threads: one at a time.
ATTEND_API attend_status attend_tag_batch(attend_tagger* tagger, const attend_text* texts,
                                          int64_t num_texts, attend_tags* out, attend_error* error);
// The words of one text are given: exactly one label a word. Threads: one at a time.
ATTEND_API attend_status attend_tag_words(attend_tagger* tagger, const attend_text* words,
                                          int64_t num_words, attend_tags* out, attend_error* error);

// n -> 1: a label for every text or pair of texts.
typedef struct attend_classifier attend_classifier;

// Threads: shared.
ATTEND_API attend_status attend_classifier_create(const attend_model* model,
                                                  const attend_pipeline_options* options,
                                                  attend_classifier** out, attend_error* error);
ATTEND_API void attend_classifier_free(attend_classifier* classifier);

typedef struct attend_classes {
  size_t struct_size;
  int64_t num_texts;
  int64_t num_labels;                 // C
  const char* const* labels;          // [C]
  const int32_t* best;                // [num_texts] the most probable label, an index into labels
  const float* scores;                // [num_texts, C] probabilities
  const uint8_t* truncated;           // [num_texts]
  const attend_telemetry* telemetry;  // of the call, if the session options ask for it, or NULL
} attend_classes;
#define ATTEND_CLASSES_INIT \
  { sizeof(attend_classes), 0, 0, NULL, NULL, NULL, NULL, NULL }

// Errors: ATTEND_INVALID_ARGUMENT (invalid UTF-8), ATTEND_CAPACITY (longer than the model takes,
// and truncate is off). Threads: one at a time.
ATTEND_API attend_status attend_classify(attend_classifier* classifier, const char* text,
                                         size_t size, attend_classes* out, attend_error* error);
// `pairs` [num_texts], or NULL for texts alone. Threads: one at a time.
ATTEND_API attend_status attend_classify_batch(attend_classifier* classifier,
                                               const attend_text* texts, const attend_text* pairs,
                                               int64_t num_texts, attend_classes* out,
                                               attend_error* error);

// A vector for every text.
typedef struct attend_embedder attend_embedder;

// Threads: shared.
ATTEND_API attend_status attend_embedder_create(const attend_model* model,
                                                const attend_pipeline_options* options,
                                                attend_embedder** out, attend_error* error);
ATTEND_API void attend_embedder_free(attend_embedder* embedder);

typedef struct attend_embeddings {
  size_t struct_size;
  int64_t num_texts;
  int64_t dimensions;                 // D
  const float* values;                // [num_texts, D]
  const uint8_t* truncated;           // [num_texts]
  const attend_telemetry* telemetry;  // of the call, if the session options ask for it, or NULL
} attend_embeddings;
#define ATTEND_EMBEDDINGS_INIT \
  { sizeof(attend_embeddings), 0, 0, NULL, NULL, NULL }

// Errors: as attend_classify. Threads: one at a time.
ATTEND_API attend_status attend_embed(attend_embedder* embedder, const char* text, size_t size,
                                      attend_embeddings* out, attend_error* error);
// Threads: one at a time.
ATTEND_API attend_status attend_embed_batch(attend_embedder* embedder, const attend_text* texts,
                                            int64_t num_texts, attend_embeddings* out,
                                            attend_error* error);

// Texts by relevance to a query.
typedef struct attend_reranker attend_reranker;

// Threads: shared.
ATTEND_API attend_status attend_reranker_create(const attend_model* model,
                                                const attend_pipeline_options* options,
                                                attend_reranker** out, attend_error* error);
ATTEND_API void attend_reranker_free(attend_reranker* reranker);

typedef struct attend_ranking {
  size_t struct_size;
  int64_t num_texts;
  const int64_t* indices;             // [num_texts] into the texts, best first
  const float* scores;                // [num_texts] in that order
  const uint8_t* truncated;           // [num_texts] in that order
  const attend_telemetry* telemetry;  // of the call, if the session options ask for it, or NULL
} attend_ranking;
#define ATTEND_RANKING_INIT \
  { sizeof(attend_ranking), 0, NULL, NULL, NULL, NULL }

// Errors: as attend_classify. Threads: one at a time.
ATTEND_API attend_status attend_rank(attend_reranker* reranker, const attend_text* query,
                                     const attend_text* texts, int64_t num_texts,
                                     attend_ranking* out, attend_error* error);

// ------------------------------------------------------------------------------------ generation

// A list of token ids; count -1: not set, 0: none.
typedef struct attend_ids {
  const int32_t* ids;
  int64_t count;
} attend_ids;
// A list of lists: list k is ids[offsets[k]] .. ids[offsets[k+1]]; count -1: not set, 0: none.
typedef struct attend_id_lists {
  const int32_t* ids;
  const int64_t* offsets;  // [count+1]
  int64_t count;
} attend_id_lists;

#define ATTEND_UNSET INT64_MIN  // of integers; real numbers are not set while they are NAN

enum {
  ATTEND_EARLY_STOPPING_NO = 0,
  ATTEND_EARLY_STOPPING_YES = 1,
  ATTEND_EARLY_STOPPING_NEVER = 2
};

// GenerationSettings of text.h, field by field. What is not set is as the model file says, else as
// text.h says.
typedef struct attend_generation_settings {
  size_t struct_size;
  int64_t num_beams;
  int64_t num_return_sequences;
  int64_t max_new_tokens;
  int64_t max_length;
  int64_t min_length;
  int64_t min_new_tokens;
  int64_t early_stopping;  // ATTEND_EARLY_STOPPING_...
  double length_penalty;
  int64_t no_repeat_ngram_size;
  double repetition_penalty;
  int64_t renormalize_logits;  // 0 or 1
  int64_t do_sample;           // 0 or 1
  double temperature;
  int64_t top_k;
  double top_p;
  double min_p;
  uint64_t seed;  // read if seed_is_set is 1
  int64_t seed_is_set;
  attend_ids eos_token_id;
  int64_t bos_token_id;
  int64_t pad_token_id;
  int64_t decoder_start_token_id;
  int64_t forced_bos_token_id;
  attend_ids forced_eos_token_id;
  attend_ids suppress_tokens;
  attend_ids begin_suppress_tokens;
  attend_id_lists bad_words_ids;
} attend_generation_settings;
#define ATTEND_GENERATION_SETTINGS_INIT                                                          \
  {                                                                                              \
    sizeof(attend_generation_settings), ATTEND_UNSET, ATTEND_UNSET, ATTEND_UNSET, ATTEND_UNSET,  \
        ATTEND_UNSET, ATTEND_UNSET, ATTEND_UNSET, NAN, ATTEND_UNSET, NAN, ATTEND_UNSET,          \
        ATTEND_UNSET, NAN, ATTEND_UNSET, NAN, NAN, 0, 0, {NULL, -1}, ATTEND_UNSET, ATTEND_UNSET, \
        ATTEND_UNSET, ATTEND_UNSET, {NULL, -1}, {NULL, -1}, {NULL, -1}, {                        \
      NULL, NULL, -1                                                                             \
    }                                                                                            \
  }

typedef struct attend_generator_options {
  size_t struct_size;
  const attend_session_options* session;       // or NULL
  const attend_generation_settings* settings;  // or NULL: the defaults of every call
  int64_t max_text_tokens;     // of a text or prompt; 0: 512, less if the model takes less
  int64_t max_decoder_tokens;  // encoder-decoder: of what an output begins with; 0: 1
  int32_t truncate;            // 1: cut texts that are too long instead of giving an error
  int32_t reserved;            // 0
} attend_generator_options;
#define ATTEND_GENERATOR_OPTIONS_INIT \
  { sizeof(attend_generator_options), NULL, NULL, 0, 0, 0, 0 }

// n -> unknown: text out of text.
typedef struct attend_generator attend_generator;

// Takes all memory. Errors: ATTEND_UNSUPPORTED (a model of another task), ATTEND_INVALID_ARGUMENT
// (a setting), ATTEND_CAPACITY. Threads: shared.
ATTEND_API attend_status attend_generator_create(const attend_model* model,
                                                 const attend_generator_options* options,
                                                 attend_generator** out, attend_error* error);
ATTEND_API void attend_generator_free(attend_generator* generator);

// One output.
typedef struct attend_generated {
  const char* text;  // empty if the model has no tokenizer
  size_t text_size;
  const int32_t* ids;  // new ones only
  int64_t num_ids;
  double score;
} attend_generated;

typedef struct attend_generations {
  size_t struct_size;
  int64_t num_texts;
  int64_t num_outputs;                // of all texts
  const attend_generated* outputs;    // [num_outputs]
  const int64_t* offsets;             // [num_texts+1]: those of text t, best first
  const uint8_t* truncated;           // [num_texts]
  const attend_telemetry* telemetry;  // of the call, if the session options ask for it, or NULL
} attend_generations;
#define ATTEND_GENERATIONS_INIT \
  { sizeof(attend_generations), 0, 0, NULL, NULL, NULL, NULL }

// Errors: ATTEND_INVALID_ARGUMENT (invalid UTF-8, an empty prompt), ATTEND_CAPACITY (too long),
// ATTEND_UNSUPPORTED (no tokenizer). Threads: one at a time.
ATTEND_API attend_status attend_generate(attend_generator* generator, const char* text, size_t size,
                                         attend_generations* out, attend_error* error);
// Threads: one at a time.
ATTEND_API attend_status attend_generate_batch(attend_generator* generator,
                                               const attend_text* texts, int64_t num_texts,
                                               attend_generations* out, attend_error* error);
// Token ids in: `inputs` [num_inputs] what the encoder reads, or the prompts; `begins` [num_inputs]
// what the outputs of an encoder-decoder begin with, or NULL. Threads: one at a time.
ATTEND_API attend_status attend_generate_ids(attend_generator* generator, const attend_ids* inputs,
                                             const attend_ids* begins, int64_t num_inputs,
                                             attend_generations* out, attend_error* error);

// Sets what later calls use, over what attend_generator_create was given. Threads: one at a time.
ATTEND_API attend_status attend_generator_set(attend_generator* generator,
                                              const attend_generation_settings* settings,
                                              attend_error* error);
// What is used, nothing left open but the lengths. Threads: one at a time.
ATTEND_API attend_status attend_generator_get(attend_generator* generator,
                                              attend_generation_settings* out, attend_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ATTEND_ATTEND_C_TEXT_H_
