// The C interface to text gives what the C++ one gives: tokenizers, taggers, classifiers,
// embedders, rerankers, generators.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "attend/text.h"
#include "tests/c_api_testing.h"

namespace attend::testing {
namespace {

constexpr const char* kTagger = ATTEND_SOURCE_DIR "/models/pos-en.attend";
constexpr const char* kSentiment = ATTEND_SOURCE_DIR "/models/sentiment-en.attend";
constexpr const char* kSounds = ATTEND_SOURCE_DIR "/models/g2p-en.attend";

attend_text TextOfView(std::string_view text) { return {text.data(), text.size()}; }

std::vector<attend_text> TextsOf(const std::vector<std::string_view>& texts) {
  std::vector<attend_text> all;
  for (const std::string_view text : texts) all.push_back(TextOfView(text));
  return all;
}

CModel Load(const char* path, int32_t mode = ATTEND_LOAD_MAP) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_load_options options = ATTEND_LOAD_OPTIONS_INIT;
  options.mode = mode;
  attend_model* model = nullptr;
  EXPECT_EQ(attend_model_load_with(path, &options, &model, &error), ATTEND_OK) << TextOf(error);
  return CModel(model);
}

CBuffer NewBuffer() {
  attend_buffer* buffer = nullptr;
  EXPECT_EQ(attend_buffer_create(&buffer, nullptr), ATTEND_OK);
  return CBuffer(buffer);
}

void ExpectTokens(const attend_tokens& tokens, const Encoding& want) {
  ASSERT_EQ(static_cast<size_t>(tokens.num_tokens), want.ids.size());
  for (size_t i = 0; i < want.ids.size(); ++i) {
    EXPECT_EQ(tokens.ids[i], want.ids[i]);
    EXPECT_EQ(tokens.type_ids[i], want.type_ids[i]);
    EXPECT_EQ(tokens.sequence_ids[i], want.sequence_ids[i]);
    EXPECT_EQ(tokens.offsets[i].begin, want.offsets[i].begin);
    EXPECT_EQ(tokens.offsets[i].end, want.offsets[i].end);
    EXPECT_EQ(std::string(tokens.tokens[i].data, tokens.tokens[i].size), want.tokens[i]);
  }
  EXPECT_EQ(tokens.truncated != 0, want.truncated);
}

TEST(CApiText, Tokenizer) {
  attend_error error = ATTEND_ERROR_INIT;
  attend_tokenizer* made = nullptr;
  ASSERT_EQ(attend_tokenizer_load(kTagger, &made, &error), ATTEND_OK) << TextOf(error);
  const CTokenizer tokenizer(made);
  const Result<Tokenizer> twin = Tokenizer::Load(kTagger);
  const CBuffer buffer = NewBuffer();
  attend_tokens tokens = ATTEND_TOKENS_INIT;
  const attend_text text = TextOfView("Caf\xc3\xa9 prices rose unbelievably");
  const attend_text pair = TextOfView("again");
  ASSERT_EQ(attend_tokenizer_encode(tokenizer.get(), &text, nullptr, nullptr, buffer.get(), &tokens,
                                    &error),
            ATTEND_OK);
  ExpectTokens(tokens, *twin->Encode({text.data, text.size}));
  ASSERT_EQ(attend_tokenizer_encode(tokenizer.get(), &text, &pair, nullptr, buffer.get(), &tokens,
                                    &error),
            ATTEND_OK);
  ExpectTokens(tokens, *twin->EncodePair({text.data, text.size}, "again"));
  attend_encode_options options = ATTEND_ENCODE_OPTIONS_INIT;
  options.no_special_tokens = 1;
  options.offset_unit = ATTEND_OFFSETS_CODEPOINTS;
  options.max_tokens = 3;
  ASSERT_EQ(attend_tokenizer_encode(tokenizer.get(), &text, nullptr, &options, buffer.get(),
                                    &tokens, &error),
            ATTEND_OK);
  ExpectTokens(tokens,
               *twin->Encode({text.data, text.size}, {.add_special_tokens = false,
                                                      .offset_unit = OffsetUnit::kCodePoints,
                                                      .max_tokens = 3}));
  const std::vector<int32_t> ids(tokens.ids, tokens.ids + tokens.num_tokens);
  attend_text decoded = {nullptr, 0};
  ASSERT_EQ(
      attend_tokenizer_decode(tokenizer.get(), ids.data(), 3, 0, buffer.get(), &decoded, &error),
      ATTEND_OK);
  EXPECT_EQ(decoded.data, *twin->Decode(ids));
  options.offset_unit = 3;
  EXPECT_EQ(attend_tokenizer_encode(tokenizer.get(), &text, nullptr, &options, buffer.get(),
                                    &tokens, &error),
            ATTEND_INVALID_ARGUMENT);
  const attend_text bad = TextOfView("ab\xff");
  EXPECT_EQ(attend_tokenizer_encode(tokenizer.get(), &bad, nullptr, nullptr, buffer.get(), &tokens,
                                    &error),
            ATTEND_INVALID_ARGUMENT);
  EXPECT_STREQ(error.where, "text, byte 2");
  const attend_text null_text = {nullptr, 5};
  EXPECT_EQ(attend_tokenizer_encode(tokenizer.get(), &null_text, nullptr, nullptr, buffer.get(),
                                    &tokens, &error),
            ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(
      attend_tokenizer_decode(tokenizer.get(), ids.data(), -1, 0, buffer.get(), &decoded, &error),
      ATTEND_INVALID_ARGUMENT);
}

TEST(CApiText, TokenizerInfo) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kTokens);
  attend_error error = ATTEND_ERROR_INIT;
  attend_tokenizer* made = nullptr;
  ASSERT_EQ(attend_tokenizer_from_bytes(bytes.data(), bytes.size(), &made, &error), ATTEND_OK)
      << TextOf(error);
  const CTokenizer tokenizer(made);
  const Result<Tokenizer> twin = Tokenizer::FromModel(*Model::FromBytes(bytes));
  attend_tokenizer_info info = ATTEND_TOKENIZER_INFO_INIT;
  ASSERT_EQ(attend_tokenizer_get_info(tokenizer.get(), &info, &error), ATTEND_OK);
  EXPECT_EQ(info.kind, twin->kind());
  EXPECT_EQ(info.vocab_size, twin->vocab_size());
  EXPECT_EQ(info.bos_id, twin->bos_id());
  EXPECT_EQ(info.eos_id, twin->eos_id());
  EXPECT_EQ(info.num_added, twin->num_added_tokens(false));
  EXPECT_EQ(info.num_added_to_pair, twin->num_added_tokens(true));
  EXPECT_EQ(attend_tokenizer_token_id(tokenizer.get(), "[CLS]", 5), twin->TokenId("[CLS]"));
  EXPECT_EQ(attend_tokenizer_token_id(tokenizer.get(), "no such", 7), -1);
  EXPECT_EQ(attend_tokenizer_token_id(nullptr, "x", 1), -1);
  const attend_text token = attend_tokenizer_token_text(tokenizer.get(), info.bos_id);
  EXPECT_EQ(std::string(token.data, token.size), "[CLS]");
  EXPECT_EQ(attend_tokenizer_token_text(tokenizer.get(), -1).data, nullptr);
  const CModel model = LoadTiny(bytes);
  EXPECT_EQ(attend_tokenizer_of_model(model.get(), 0, &made, &error), ATTEND_OK);
  attend_tokenizer_free(made);
  EXPECT_EQ(attend_tokenizer_of_model(model.get(), 1, &made, &error), ATTEND_NOT_FOUND);
}

void ExpectTags(const attend_tags& tags, const std::vector<Tags>& want) {
  ASSERT_EQ(static_cast<size_t>(tags.num_texts), want.size());
  EXPECT_EQ(tags.offsets[0], 0);
  for (size_t t = 0; t < want.size(); ++t) {
    const attend_word* words = tags.words + tags.offsets[t];
    ASSERT_EQ(static_cast<size_t>(tags.offsets[t + 1] - tags.offsets[t]), want[t].words.size());
    EXPECT_EQ(tags.windowed[t] != 0, want[t].windowed);
    for (size_t w = 0; w < want[t].words.size(); ++w) {
      EXPECT_EQ(std::string(words[w].text, words[w].text_size), want[t].words[w].text);
      EXPECT_EQ(words[w].text[words[w].text_size], '\0');
      EXPECT_EQ(words[w].range.begin, want[t].words[w].range.begin);
      EXPECT_EQ(words[w].range.end, want[t].words[w].range.end);
      EXPECT_EQ(words[w].label, want[t].words[w].label);
      EXPECT_EQ(words[w].score, want[t].words[w].score);
    }
  }
}

TEST(CApiText, Tagger) {
  const CModel model = Load(kTagger, ATTEND_LOAD_READ);
  attend_error error = ATTEND_ERROR_INIT;
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.max_tokens = 600;
  attend_pipeline_options options = ATTEND_PIPELINE_OPTIONS_INIT;
  options.session = &session;
  options.offset_unit = ATTEND_OFFSETS_UTF16;
  attend_tagger* made = nullptr;
  ASSERT_EQ(attend_tagger_create(model.get(), &options, &made, &error), ATTEND_OK) << TextOf(error);
  const CTagger tagger(made);
  Result<Tagger> twin =
      Tagger::Load(kTagger, {.session = {.max_tokens = 600}, .offset_unit = OffsetUnit::kUtf16});
  std::string text;
  for (int i = 0; i < 150; ++i) text += "I saw the caf\xc3\xa9. ";
  const std::vector<std::string_view> texts = {"I saw a saw", "", text};
  const std::vector<attend_text> c_texts = TextsOf(texts);
  attend_tags tags = ATTEND_TAGS_INIT;
  ASSERT_EQ(attend_tag_batch(tagger.get(), c_texts.data(), 3, &tags, &error), ATTEND_OK)
      << TextOf(error);
  ExpectTags(tags, *twin->TagBatch(texts));
  EXPECT_NE(tags.windowed[2], 0);
  ASSERT_EQ(attend_tag(tagger.get(), "I saw", 5, &tags, &error), ATTEND_OK);
  ExpectTags(tags, {*twin->Tag("I saw")});
  const std::vector<std::string_view> words = {"I", "", "don't"};
  const std::vector<attend_text> c_words = TextsOf(words);
  ASSERT_EQ(attend_tag_words(tagger.get(), c_words.data(), 3, &tags, &error), ATTEND_OK);
  ExpectTags(tags, {*twin->TagWords(words)});
  EXPECT_EQ(attend_tag(tagger.get(), "\xff", 1, &tags, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_tag(tagger.get(), nullptr, 1, &tags, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_tag_batch(tagger.get(), nullptr, 2, &tags, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_EQ(attend_tag_batch(tagger.get(), nullptr, 0, &tags, &error), ATTEND_OK);
  EXPECT_EQ(tags.num_texts, 0);
  attend_classifier* none = nullptr;
  EXPECT_EQ(attend_classifier_create(model.get(), nullptr, &none, &error), ATTEND_UNSUPPORTED);
}

TEST(CApiText, Classifier) {
  const CModel model = Load(kSentiment);
  attend_error error = ATTEND_ERROR_INIT;
  attend_classifier* made = nullptr;
  ASSERT_EQ(attend_classifier_create(model.get(), nullptr, &made, &error), ATTEND_OK);
  const CClassifier classifier(made);
  Result<Classifier> twin = Classifier::Load(kSentiment);
  const std::vector<std::string_view> texts = {"You are very good", "It is a chair.",
                                               "This is not good."};
  const std::vector<attend_text> c_texts = TextsOf(texts);
  attend_classes classes = ATTEND_CLASSES_INIT;
  const auto expect = [&](const std::vector<Classification>& want) {
    ASSERT_EQ(static_cast<size_t>(classes.num_texts), want.size());
    ASSERT_EQ(classes.num_labels, 3);
    for (size_t t = 0; t < want.size(); ++t) {
      EXPECT_EQ(classes.labels[classes.best[t]], want[t].label);
      EXPECT_EQ(classes.truncated[t], 0);
      for (size_t c = 0; c < 3; ++c) EXPECT_EQ(classes.scores[3 * t + c], want[t].scores[c]);
    }
  };
  ASSERT_EQ(attend_classify_batch(classifier.get(), c_texts.data(), nullptr, 3, &classes, &error),
            ATTEND_OK);
  expect(*twin->ClassifyBatch(texts));
  const std::vector<std::string_view> pairs = {"yes", "no", ""};
  const std::vector<attend_text> c_pairs = TextsOf(pairs);
  ASSERT_EQ(
      attend_classify_batch(classifier.get(), c_texts.data(), c_pairs.data(), 3, &classes, &error),
      ATTEND_OK);
  expect(*twin->ClassifyPairBatch(texts, pairs));
  ASSERT_EQ(attend_classify(classifier.get(), "good", 4, &classes, &error), ATTEND_OK);
  expect({*twin->Classify("good")});
}

TEST(CApiText, EmbedderAndReranker) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kEmbedding);
  const CModel model = LoadTiny(bytes);
  const Result<Model> same = Model::FromBytes(bytes);
  attend_error error = ATTEND_ERROR_INIT;
  attend_pipeline_options options = ATTEND_PIPELINE_OPTIONS_INIT;
  options.truncate = 1;
  options.max_length = 8;
  const PipelineOptions twin_options{.truncate = true, .max_length = 8};
  attend_embedder* made = nullptr;
  ASSERT_EQ(attend_embedder_create(model.get(), &options, &made, &error), ATTEND_OK)
      << TextOf(error);
  const CEmbedder embedder(made);
  Result<Embedder> twin = Embedder::Create(*same, twin_options);
  const std::vector<std::string_view> texts = {
      "some text", "quite another text that is longer than eight tokens", ""};
  const std::vector<attend_text> c_texts = TextsOf(texts);
  attend_embeddings embeddings = ATTEND_EMBEDDINGS_INIT;
  ASSERT_EQ(attend_embed_batch(embedder.get(), c_texts.data(), 3, &embeddings, &error), ATTEND_OK);
  ASSERT_EQ(embeddings.dimensions, 32);
  const std::vector<Embedding> want = *twin->EmbedBatch(texts);
  for (size_t t = 0; t < 3; ++t) {
    EXPECT_EQ(embeddings.truncated[t] != 0, want[t].truncated);
    for (size_t d = 0; d < 32; ++d) EXPECT_EQ(embeddings.values[32 * t + d], want[t].values[d]);
  }
  EXPECT_NE(embeddings.truncated[1], 0);
  ASSERT_EQ(attend_embed(embedder.get(), "some text", 9, &embeddings, &error), ATTEND_OK);
  EXPECT_EQ(embeddings.num_texts, 1);
  EXPECT_EQ(embeddings.values[31], want[0].values[31]);

  attend_reranker* ranker = nullptr;
  ASSERT_EQ(attend_reranker_create(model.get(), &options, &ranker, &error), ATTEND_OK);
  const CReranker reranker(ranker);
  Result<Reranker> twin_ranker = Reranker::Create(*same, twin_options);
  const attend_text query = TextOfView("another");
  attend_ranking ranking = ATTEND_RANKING_INIT;
  ASSERT_EQ(attend_rank(reranker.get(), &query, c_texts.data(), 3, &ranking, &error), ATTEND_OK);
  const std::vector<Ranked> best = *twin_ranker->Rank("another", texts);
  ASSERT_EQ(ranking.num_texts, 3);
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(static_cast<size_t>(ranking.indices[r]), best[r].index);
    EXPECT_EQ(ranking.scores[r], best[r].score);
    EXPECT_EQ(ranking.truncated[r] != 0, best[r].truncated);
  }
}

void ExpectGenerations(const attend_generations& got, const std::vector<Generation>& want) {
  ASSERT_EQ(static_cast<size_t>(got.num_texts), want.size());
  for (size_t t = 0; t < want.size(); ++t) {
    const attend_generated* outputs = got.outputs + got.offsets[t];
    ASSERT_EQ(static_cast<size_t>(got.offsets[t + 1] - got.offsets[t]), want[t].outputs.size());
    for (size_t k = 0; k < want[t].outputs.size(); ++k) {
      EXPECT_EQ(std::string(outputs[k].text, outputs[k].text_size), want[t].outputs[k].text);
      EXPECT_EQ(std::vector<int32_t>(outputs[k].ids, outputs[k].ids + outputs[k].num_ids),
                want[t].outputs[k].ids);
      EXPECT_EQ(outputs[k].score, want[t].outputs[k].score);
    }
  }
}

TEST(CApiText, Generator) {
  const CModel model = Load(kSounds);
  attend_error error = ATTEND_ERROR_INIT;
  attend_generation_settings settings = ATTEND_GENERATION_SETTINGS_INIT;
  settings.num_beams = 4;
  settings.num_return_sequences = 2;
  attend_generator_options options = ATTEND_GENERATOR_OPTIONS_INIT;
  options.settings = &settings;
  options.max_text_tokens = 32;
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.max_tokens = 1024;
  session.max_sequences = 2;
  options.session = &session;
  attend_generator* made = nullptr;
  ASSERT_EQ(attend_generator_create(model.get(), &options, &made, &error), ATTEND_OK)
      << TextOf(error);
  const CGenerator generator(made);
  Result<Generator> twin =
      Generator::Load(kSounds, {.session = {.max_tokens = 1024, .max_sequences = 2},
                                .settings = {.num_beams = 4, .num_return_sequences = 2},
                                .max_text_tokens = 32});
  const std::vector<std::string_view> texts = {"hello", "xylophone", "attendify"};
  const std::vector<attend_text> c_texts = TextsOf(texts);
  attend_generations out = ATTEND_GENERATIONS_INIT;
  ASSERT_EQ(attend_generate_batch(generator.get(), c_texts.data(), 3, &out, &error), ATTEND_OK);
  ExpectGenerations(out, *twin->GenerateBatch(texts));
  // Samples, by settings that are all set here.
  settings = ATTEND_GENERATION_SETTINGS_INIT;
  const int32_t ends[] = {1};
  const int32_t bad[] = {7, 8, 9};
  const int64_t bad_offsets[] = {0, 1, 3};
  settings.num_beams = 1;
  settings.num_return_sequences = 2;
  settings.do_sample = 1;
  settings.temperature = 1.5;
  settings.top_k = 0;
  settings.top_p = 0.9;
  settings.seed = 12345;
  settings.seed_is_set = 1;
  settings.eos_token_id = {ends, 1};
  settings.suppress_tokens = {nullptr, 0};
  settings.bad_words_ids = {bad, bad_offsets, 2};
  ASSERT_EQ(attend_generator_set(generator.get(), &settings, &error), ATTEND_OK) << TextOf(error);
  ASSERT_TRUE(twin->Set({.num_beams = 1,
                         .num_return_sequences = 2,
                         .do_sample = true,
                         .temperature = 1.5,
                         .top_k = 0,
                         .top_p = 0.9,
                         .seed = 12345,
                         .eos_token_id = {{1}},
                         .suppress_tokens = std::vector<int32_t>(),
                         .bad_words_ids = {{{7}, {8, 9}}}})
                  .ok());
  ASSERT_EQ(attend_generate(generator.get(), "hello", 5, &out, &error), ATTEND_OK);
  ExpectGenerations(out, {*twin->Generate("hello")});
  attend_generation_settings used = ATTEND_GENERATION_SETTINGS_INIT;
  ASSERT_EQ(attend_generator_get(generator.get(), &used, &error), ATTEND_OK);
  EXPECT_EQ(used.do_sample, 1);
  EXPECT_EQ(used.temperature, 1.5);
  EXPECT_EQ(used.length_penalty, *twin->settings().length_penalty);
  EXPECT_EQ(used.seed, 12345u);
  EXPECT_EQ(used.suppress_tokens.count, 0);
  ASSERT_EQ(used.bad_words_ids.count, 2);
  EXPECT_EQ(used.bad_words_ids.ids[used.bad_words_ids.offsets[2] - 1], 9);
  // What it says can be given back.
  ASSERT_EQ(attend_generator_set(generator.get(), &used, &error), ATTEND_OK) << TextOf(error);
  settings = ATTEND_GENERATION_SETTINGS_INIT;
  settings.do_sample = 2;
  EXPECT_EQ(attend_generator_set(generator.get(), &settings, &error), ATTEND_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("do_sample"), std::string::npos) << error.message;
}

TEST(CApiText, GeneratorOfIds) {
  const std::vector<std::byte> bytes = TinyModelBytes(Task::kGenerate);
  const CModel model = LoadTiny(bytes);
  attend_error error = ATTEND_ERROR_INIT;
  attend_generation_settings settings = ATTEND_GENERATION_SETTINGS_INIT;
  settings.max_new_tokens = 5;
  attend_session_options session = ATTEND_SESSION_OPTIONS_INIT;
  session.max_tokens = 256;
  session.max_sequences = 2;
  attend_generator_options options = ATTEND_GENERATOR_OPTIONS_INIT;
  options.settings = &settings;
  options.session = &session;
  options.max_text_tokens = 16;
  attend_generator* made = nullptr;
  ASSERT_EQ(attend_generator_create(model.get(), &options, &made, &error), ATTEND_OK)
      << TextOf(error);
  const CGenerator generator(made);
  Result<Generator> twin = Generator::Create(*Model::FromBytes(bytes),
                                             {.session = {.max_tokens = 256, .max_sequences = 2},
                                              .settings = {.max_new_tokens = 5},
                                              .max_text_tokens = 16});
  ASSERT_TRUE(twin.ok()) << twin.status().ToString();
  const std::vector<int32_t> first = {3, 1, 4}, second = {1, 5};
  const attend_ids inputs[] = {{first.data(), 3}, {second.data(), 2}};
  attend_generations out = ATTEND_GENERATIONS_INIT;
  ASSERT_EQ(attend_generate_ids(generator.get(), inputs, nullptr, 2, &out, &error), ATTEND_OK)
      << TextOf(error);
  const std::vector<GenerationInput> twin_inputs = {{.ids = first}, {.ids = second}};
  ExpectGenerations(out, *twin->GenerateIds(twin_inputs));
  const attend_ids wrong[] = {{first.data(), -2}};
  EXPECT_EQ(attend_generate_ids(generator.get(), wrong, nullptr, 1, &out, &error),
            ATTEND_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace attend::testing
