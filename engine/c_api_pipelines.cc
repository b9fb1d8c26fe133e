// The C interface: taggers, classifiers, embedders, rerankers. Each handle keeps its answers, flat,
// until its next use.
#include "engine/c_api.h"

using attend::c::Guarded;

// The callbacks are first: they outlive what uses them.
struct attend_tagger {
  attend::c::Callbacks callbacks;
  attend::Tagger pipeline;
  std::vector<attend::Tags> tags = {};
  std::vector<attend_word> words = {};  // of tags
  std::vector<int64_t> offsets = {};
  std::vector<uint8_t> windowed = {};
  attend_telemetry telemetry = {};
};

struct attend_classifier {
  attend::c::Callbacks callbacks;
  attend::Classifier pipeline;
  std::vector<const char*> labels = {};  // of the model's info
  std::vector<int32_t> best = {};
  std::vector<float> scores = {};
  std::vector<uint8_t> truncated = {};
  attend_telemetry telemetry = {};
};

struct attend_embedder {
  attend::c::Callbacks callbacks;
  attend::Embedder pipeline;
  std::vector<float> values = {};
  std::vector<uint8_t> truncated = {};
  attend_telemetry telemetry = {};
};

struct attend_reranker {
  attend::c::Callbacks callbacks;
  attend::Reranker pipeline;
  std::vector<int64_t> indices = {};
  std::vector<float> scores = {};
  std::vector<uint8_t> truncated = {};
  attend_telemetry telemetry = {};
};

namespace attend {

Status c::ReadPipelineOptions(const attend_pipeline_options* given, SessionSetup* setup,
                              PipelineOptions* out) {
  constexpr const char* kName = "attend_pipeline_options";
  attend_pipeline_options read = ATTEND_PIPELINE_OPTIONS_INIT;
  ATTEND_RETURN_IF_ERROR(ReadStruct(given, kName, &read));
  ATTEND_RETURN_IF_ERROR(ReadSessionOptions(read.session, setup));
  ATTEND_RETURN_IF_ERROR(CheckEnum(read.offset_unit, 2, kName, "offset_unit"));
  out->session = setup->options;
  out->offset_unit = static_cast<OffsetUnit>(read.offset_unit);
  out->truncate = read.truncate != 0;
  return Narrow(read.max_length, kName, "max_length", &out->max_length);
}

namespace {

// Makes a pipeline and its handle; `rest` are the members of the handle behind the pipeline.
template <typename Pipeline, typename Handle, typename... Rest>
attend_status CreatePipeline(const attend_model* model, const attend_pipeline_options* options,
                             Handle** out, attend_error* error, const Rest&... rest) {
  return Guarded("pipeline", error, [&]() -> Status {
    ATTEND_RETURN_IF_ERROR(c::RequirePointer(model, "model"));
    ATTEND_RETURN_IF_ERROR(c::RequirePointer(out, "out"));
    c::SessionSetup setup;
    PipelineOptions use;
    ATTEND_RETURN_IF_ERROR(c::ReadPipelineOptions(options, &setup, &use));
    Result<Pipeline> pipeline = Pipeline::Create(model->model, use);
    if (!pipeline.ok()) return pipeline.status();
    auto handle = std::make_unique<Handle>(
        Handle{std::move(setup.callbacks), *std::move(pipeline), rest(*model)...});
    *out = handle.release();
    return {};
  });
}

// All that is to be kept is allocated before anything of the handle changes.
Status KeepTags(Result<std::vector<Tags>> answers, attend_tagger* tagger, attend_tags* out) {
  if (!answers.ok()) return answers.status();
  std::vector<attend_word> words;
  std::vector<int64_t> offsets = {0};
  std::vector<uint8_t> windowed;
  for (const Tags& tags : *answers) {
    for (const TaggedWord& word : tags.words) {
      words.push_back({word.text.c_str(),
                       word.text.size(),
                       {word.range.begin, word.range.end},
                       word.label.c_str(),
                       word.score});
    }
    offsets.push_back(static_cast<int64_t>(words.size()));
    windowed.push_back(tags.windowed ? 1 : 0);
  }
  tagger->tags = *std::move(answers);  // which leaves each word where it is
  tagger->words = std::move(words);
  tagger->offsets = std::move(offsets);
  tagger->windowed = std::move(windowed);
  attend_tags tags = ATTEND_TAGS_INIT;
  tags.num_texts = static_cast<int64_t>(tagger->windowed.size());
  tags.num_words = static_cast<int64_t>(tagger->words.size());
  tags.words = tagger->words.data();
  tags.offsets = tagger->offsets.data();
  tags.windowed = tagger->windowed.data();
  tags.telemetry = c::KeepTelemetry(tagger->pipeline.telemetry(), &tagger->telemetry);
  c::WriteStruct(tags, out);
  return {};
}

Status KeepClasses(const Result<std::vector<Classification>>& answers,
                   attend_classifier* classifier, attend_classes* out) {
  if (!answers.ok()) return answers.status();
  classifier->best.clear();
  classifier->scores.clear();
  classifier->truncated.clear();
  for (const Classification& answer : *answers) {
    const std::vector<float>& scores = answer.scores;
    size_t best = 0;
    while (best + 1 < classifier->labels.size() && answer.label != classifier->labels[best]) ++best;
    classifier->best.push_back(static_cast<int32_t>(best));
    classifier->scores.insert(classifier->scores.end(), scores.begin(), scores.end());
    classifier->truncated.push_back(answer.truncated ? 1 : 0);
  }
  attend_classes classes = ATTEND_CLASSES_INIT;
  classes.num_texts = static_cast<int64_t>(answers->size());
  classes.num_labels = static_cast<int64_t>(classifier->labels.size());
  classes.labels = classifier->labels.data();
  classes.best = classifier->best.data();
  classes.scores = classifier->scores.data();
  classes.truncated = classifier->truncated.data();
  classes.telemetry = c::KeepTelemetry(classifier->pipeline.telemetry(), &classifier->telemetry);
  c::WriteStruct(classes, out);
  return {};
}

}  // namespace
}  // namespace attend

attend_status attend_tagger_create(const attend_model* model,
                                   const attend_pipeline_options* options, attend_tagger** out,
                                   attend_error* error) {
  return attend::CreatePipeline<attend::Tagger>(model, options, out, error);
}

void attend_tagger_free(attend_tagger* tagger) { delete tagger; }

attend_status attend_tag(attend_tagger* tagger, const char* text, size_t size, attend_tags* out,
                         attend_error* error) {
  const attend_text one = {text, size};
  return attend_tag_batch(tagger, &one, 1, out, error);
}

attend_status attend_tag_batch(attend_tagger* tagger, const attend_text* texts, int64_t num_texts,
                               attend_tags* out, attend_error* error) {
  return Guarded("tagger", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(tagger, "tagger"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_tags"));
    std::vector<std::string_view> views;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadTexts(texts, num_texts, "texts", &views));
    return attend::KeepTags(tagger->pipeline.TagBatch(views), tagger, out);
  });
}

attend_status attend_tag_words(attend_tagger* tagger, const attend_text* words, int64_t num_words,
                               attend_tags* out, attend_error* error) {
  return Guarded("tagger", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(tagger, "tagger"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_tags"));
    std::vector<std::vector<std::string_view>> texts(1);
    ATTEND_RETURN_IF_ERROR(attend::c::ReadTexts(words, num_words, "words", &texts[0]));
    return attend::KeepTags(tagger->pipeline.TagWordsBatch(texts), tagger, out);
  });
}

attend_status attend_classifier_create(const attend_model* model,
                                       const attend_pipeline_options* options,
                                       attend_classifier** out, attend_error* error) {
  return attend::CreatePipeline<attend::Classifier>(
      model, options, out, error, [](const attend_model& from) { return from.labels; });
}

void attend_classifier_free(attend_classifier* classifier) { delete classifier; }

attend_status attend_classify(attend_classifier* classifier, const char* text, size_t size,
                              attend_classes* out, attend_error* error) {
  const attend_text one = {text, size};
  return attend_classify_batch(classifier, &one, nullptr, 1, out, error);
}

attend_status attend_classify_batch(attend_classifier* classifier, const attend_text* texts,
                                    const attend_text* pairs, int64_t num_texts,
                                    attend_classes* out, attend_error* error) {
  return Guarded("classifier", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(classifier, "classifier"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_classes"));
    std::vector<std::string_view> views, second;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadTexts(texts, num_texts, "texts", &views));
    if (pairs == nullptr) {
      return attend::KeepClasses(classifier->pipeline.ClassifyBatch(views), classifier, out);
    }
    ATTEND_RETURN_IF_ERROR(attend::c::ReadTexts(pairs, num_texts, "pairs", &second));
    return attend::KeepClasses(classifier->pipeline.ClassifyPairBatch(views, second), classifier,
                               out);
  });
}

attend_status attend_embedder_create(const attend_model* model,
                                     const attend_pipeline_options* options, attend_embedder** out,
                                     attend_error* error) {
  return attend::CreatePipeline<attend::Embedder>(model, options, out, error);
}

void attend_embedder_free(attend_embedder* embedder) { delete embedder; }

attend_status attend_embed(attend_embedder* embedder, const char* text, size_t size,
                           attend_embeddings* out, attend_error* error) {
  const attend_text one = {text, size};
  return attend_embed_batch(embedder, &one, 1, out, error);
}

attend_status attend_embed_batch(attend_embedder* embedder, const attend_text* texts,
                                 int64_t num_texts, attend_embeddings* out, attend_error* error) {
  return Guarded("embedder", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(embedder, "embedder"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_embeddings"));
    std::vector<std::string_view> views;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadTexts(texts, num_texts, "texts", &views));
    const attend::Result<std::vector<attend::Embedding>> answers =
        embedder->pipeline.EmbedBatch(views);
    if (!answers.ok()) return answers.status();
    embedder->values.clear();
    embedder->truncated.clear();
    for (const attend::Embedding& answer : *answers) {
      const std::vector<float>& values = answer.values;
      embedder->values.insert(embedder->values.end(), values.begin(), values.end());
      embedder->truncated.push_back(answer.truncated ? 1 : 0);
    }
    attend_embeddings embeddings = ATTEND_EMBEDDINGS_INIT;
    embeddings.num_texts = num_texts;
    embeddings.dimensions = embedder->pipeline.dimensions();
    embeddings.values = embedder->values.data();
    embeddings.truncated = embedder->truncated.data();
    embeddings.telemetry =
        attend::c::KeepTelemetry(embedder->pipeline.telemetry(), &embedder->telemetry);
    attend::c::WriteStruct(embeddings, out);
    return {};
  });
}

attend_status attend_reranker_create(const attend_model* model,
                                     const attend_pipeline_options* options, attend_reranker** out,
                                     attend_error* error) {
  return attend::CreatePipeline<attend::Reranker>(model, options, out, error);
}

void attend_reranker_free(attend_reranker* reranker) { delete reranker; }

attend_status attend_rank(attend_reranker* reranker, const attend_text* query,
                          const attend_text* texts, int64_t num_texts, attend_ranking* out,
                          attend_error* error) {
  return Guarded("reranker", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(reranker, "reranker"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(query, "query"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_ranking"));
    std::string_view question;
    std::vector<std::string_view> views;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadText(*query, "query", &question));
    ATTEND_RETURN_IF_ERROR(attend::c::ReadTexts(texts, num_texts, "texts", &views));
    const attend::Result<std::vector<attend::Ranked>> answers =
        reranker->pipeline.Rank(question, views);
    if (!answers.ok()) return answers.status();
    reranker->indices.clear();
    reranker->scores.clear();
    reranker->truncated.clear();
    for (const attend::Ranked& answer : *answers) {
      reranker->indices.push_back(static_cast<int64_t>(answer.index));
      reranker->scores.push_back(answer.score);
      reranker->truncated.push_back(answer.truncated ? 1 : 0);
    }
    attend_ranking ranking = ATTEND_RANKING_INIT;
    ranking.num_texts = num_texts;
    ranking.indices = reranker->indices.data();
    ranking.scores = reranker->scores.data();
    ranking.truncated = reranker->truncated.data();
    ranking.telemetry =
        attend::c::KeepTelemetry(reranker->pipeline.telemetry(), &reranker->telemetry);
    attend::c::WriteStruct(ranking, out);
    return {};
  });
}
