// What the tests of the C interface share: handles that free themselves, and small models.
#ifndef ATTEND_TESTS_C_API_TESTING_H_
#define ATTEND_TESTS_C_API_TESTING_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attend/attend_c.h"
#include "tests/tiny_text_model.h"

namespace attend::testing {

// A handle with its free function.
template <typename T, void (*kFree)(T*)>
struct FreeHandle {
  void operator()(T* handle) const { kFree(handle); }
};
template <typename T, void (*kFree)(T*)>
using Handle = std::unique_ptr<T, FreeHandle<T, kFree>>;
using CModel = Handle<attend_model, attend_model_free>;
using CSession = Handle<attend_session, attend_session_free>;
using CBuffer = Handle<attend_buffer, attend_buffer_free>;
using CTokenizer = Handle<attend_tokenizer, attend_tokenizer_free>;
using CTagger = Handle<attend_tagger, attend_tagger_free>;
using CClassifier = Handle<attend_classifier, attend_classifier_free>;
using CEmbedder = Handle<attend_embedder, attend_embedder_free>;
using CReranker = Handle<attend_reranker, attend_reranker_free>;
using CGenerator = Handle<attend_generator, attend_generator_free>;
using CAttentionMap = Handle<attend_attention_map, attend_attention_map_free>;

// The error of a call, printed by gtest when it is not the one expected.
inline std::string TextOf(const attend_error& error) {
  return std::string(attend_status_name(static_cast<attend_status>(error.code))) + " " +
         error.where + ": " + error.message;
}

inline CModel LoadTiny(const std::vector<std::byte>& bytes) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_model* model = nullptr;
  EXPECT_EQ(attend_model_from_bytes(bytes.data(), bytes.size(), &model, &error), ATTEND_OK)
      << TextOf(error);
  return CModel(model);
}

// Sequences of ids end to end.
inline attend_batch BatchOf(std::span<const int32_t> ids, std::span<const int32_t> offsets) {
  attend_batch batch = ATTEND_BATCH_INIT;
  batch.ids = ids.data();
  batch.num_tokens = static_cast<int64_t>(ids.size());
  batch.offsets = offsets.data();
  batch.num_sequences = static_cast<int64_t>(offsets.size()) - 1;
  return batch;
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_C_API_TESTING_H_
