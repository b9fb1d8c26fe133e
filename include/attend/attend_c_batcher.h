// The part of attend's C interface for many callers of one model (batcher.h): requests from any
// thread are put into batches, which a pool of sessions runs. Comes with attend_c.h, whose rules
// hold here. Times are microseconds (us).
#ifndef ATTEND_ATTEND_C_BATCHER_H_
#define ATTEND_ATTEND_C_BATCHER_H_

#include "attend/attend_c_text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attend_batcher attend_batcher;
typedef struct attend_pending attend_pending;  // a request on its way

typedef struct attend_batcher_options {
  size_t struct_size;
  const attend_session_options* session;  // of each worker's session, or NULL; its max_tokens is
                                          // the budget of a batch, 0: 512
  int64_t num_workers;                    // 0: as many as fit into what affinity and quota allow
  int64_t max_queued_requests;            // 0: 1024
  int64_t max_queued_tokens;              // 0: 65536
  int64_t max_bytes;                      // 0: 64 MiB
  int64_t linger_us;   // how long an idle worker waits to fill a batch; 0: not at all
  int64_t max_length;  // tokens of a text; 0: what the model takes
  int32_t truncate;    // 1: cut texts that are too long instead of giving an error
  int32_t no_threads;  // 1: threads of the program call attend_batcher_serve
} attend_batcher_options;
#define ATTEND_BATCHER_OPTIONS_INIT \
  { sizeof(attend_batcher_options), NULL, 0, 0, 0, 0, 0, 0, 0, 0 }

// Makes the sessions and starts the threads. Errors: as attend_session_create. Threads: shared.
ATTEND_API attend_status attend_batcher_create(const attend_model* model,
                                               const attend_batcher_options* options,
                                               attend_batcher** out, attend_error* error);
// Cancels all that is not answered, and waits for the workers, at most one layer of a batch.
ATTEND_API void attend_batcher_free(attend_batcher* batcher);

// One answer; NULL and 0 where there is nothing.
typedef struct attend_answer {
  size_t struct_size;
  const float* hidden;  // [L, D]
  int64_t num_hidden;
  const float* pooled;  // [D']
  int64_t num_pooled;
  const float* logits;  // [L, C] or [C]
  int64_t num_logits;
  const float* encoder_hidden;  // [L, D] of an encoder-decoder
  int64_t num_encoder_hidden;
  const int32_t* ids;           // [num_tokens] of a text: what the model read,
  const attend_range* offsets;  // [num_tokens] and where in the text, in bytes
  int64_t num_tokens;
  int64_t queued_us;  // until its batch started
  int64_t run_us;     // what the batch took
  int64_t batch_tokens;
  int64_t batch_sequences;
  int32_t truncated;
  int32_t reserved;
  // If the session options ask for it, or NULL: of the whole batch, but for encode_ns and queue_ns.
  const attend_telemetry* telemetry;
} attend_answer;
#define ATTEND_ANSWER_INIT                                                                      \
  {                                                                                             \
    sizeof(attend_answer), NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, \
        NULL                                                                                    \
  }

enum {
  ATTEND_WANT_HIDDEN = 1,
  ATTEND_WANT_POOLED = 2,
  ATTEND_WANT_LOGITS = 4,
  ATTEND_WANT_ENCODER_HIDDEN = 8
};

// One sequence: a text, ids or rows. All is copied by attend_batcher_submit.
typedef struct attend_request {
  size_t struct_size;
  const attend_text* text;  // or NULL
  const attend_text* pair;  // the second text, or NULL
  const int32_t* ids;       // [num_tokens], or NULL
  const float* rows;        // [num_tokens, input_size], or NULL
  int64_t num_tokens;       // L
  const int32_t* type_ids;  // [L] with ids, or NULL
  const int32_t* decoder_ids;
  int64_t num_decoder_ids;
  const attend_edge* edges;
  int64_t num_edges;    // -1: no edges are given
  int64_t deadline_us;  // from attend_batcher_submit on; 0: none
  int64_t priority;     // the highest first
  int64_t block_us;     // how long it may wait for room in a full queue; 0: not at all
  int64_t want;         // ATTEND_WANT_..., added; 0: pooled and logits
  // NULL, or who is given the answer, exactly once, if attend_batcher_submit returned ATTEND_OK, by
  // the thread that brings it. `answer` is NULL if status is not ATTEND_OK; both pointers are valid
  // during the call. It may not throw, wait for its own request, drain, serve or free the batcher.
  void (*done)(void* user, attend_status status, const attend_answer* answer,
               const attend_error* error);
  void* user;
} attend_request;
#define ATTEND_REQUEST_INIT                                                                       \
  {                                                                                               \
    sizeof(attend_request), NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, -1, 0, 0, 0, 0, NULL, \
        NULL                                                                                      \
  }

// Puts a request in the queue. `out` may be NULL if `done` is given. Errors: ATTEND_BUSY (no room),
// ATTEND_DEADLINE, ATTEND_CANCELLED (closed), ATTEND_INVALID_ARGUMENT, ATTEND_CAPACITY. Threads:
// shared.
ATTEND_API attend_status attend_batcher_submit(attend_batcher* batcher,
                                               const attend_request* request, attend_pending** out,
                                               attend_error* error);

// Waits for the answer, no longer than until the deadline, and takes it; it is valid until
// `pending` is freed. Errors: ATTEND_DEADLINE, ATTEND_CANCELLED, ATTEND_CAPACITY,
// ATTEND_INVALID_ARGUMENT (it was taken before, or went to `done`). Threads: one at a time.
ATTEND_API attend_status attend_pending_wait(attend_pending* pending, attend_answer* out,
                                             attend_error* error);
// Whether the answer is there; waits at most `timeout_us` (less than 0: without end). 1 or 0; 0 for
// NULL. Threads: shared.
ATTEND_API int32_t attend_pending_wait_for(const attend_pending* pending, int64_t timeout_us);
// The request is answered with ATTEND_CANCELLED, unless it is answered already. NULL does nothing.
// Threads: shared.
ATTEND_API void attend_pending_cancel(attend_pending* pending);
// Lets go of the request, which goes on.
ATTEND_API void attend_pending_free(attend_pending* pending);

// Accepts no more requests; what waits still runs. Threads: shared.
ATTEND_API attend_status attend_batcher_close(attend_batcher* batcher, attend_error* error);
// Closes, and waits until all is answered, at most `limit_us` (less than 0: without end). Errors:
// ATTEND_DEADLINE (not all is). Threads: shared.
ATTEND_API attend_status attend_batcher_drain(attend_batcher* batcher, int64_t limit_us,
                                              attend_error* error);
// Answers all that waits or runs with ATTEND_CANCELLED. Threads: shared.
ATTEND_API attend_status attend_batcher_cancel_all(attend_batcher* batcher, attend_error* error);

// Is a worker until all is answered after attend_batcher_close. Errors: ATTEND_BUSY (num_workers
// are inside), ATTEND_INVALID_ARGUMENT (the batcher has its own threads). Threads: shared.
ATTEND_API attend_status attend_batcher_serve(attend_batcher* batcher, attend_error* error);
// Runs what waits now, as one worker; *answered (or NULL) is how many it answered. Errors: as
// attend_batcher_serve. Threads: shared.
ATTEND_API attend_status attend_batcher_serve_waiting(attend_batcher* batcher, int64_t* answered,
                                                      attend_error* error);

typedef struct attend_batcher_statistics {
  size_t struct_size;
  int64_t queued_requests;
  int64_t queued_tokens;
  int64_t bytes;  // of requests that wait or run
  int64_t running_requests;
  int64_t idle_workers;
  // Each submit is counted by one of these, once it is decided.
  int64_t answered;
  int64_t refused;
  int64_t expired;
  int64_t cancelled;
  int64_t failed;
  int64_t batches;
  int64_t batch_tokens;
  int64_t batch_sequences;
  double batch_fill;
  int64_t queued_p50_us;
  int64_t queued_p99_us;
} attend_batcher_statistics;
#define ATTEND_BATCHER_STATISTICS_INIT \
  { sizeof(attend_batcher_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// Threads: shared.
ATTEND_API attend_status attend_batcher_get_statistics(const attend_batcher* batcher,
                                                       attend_batcher_statistics* out,
                                                       attend_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ATTEND_ATTEND_C_BATCHER_H_
