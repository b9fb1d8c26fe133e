// The C interface: generation. The settings of both interfaces have the same names, so that one
// visit reads or writes them all.
#include <cmath>
#include <optional>

#include "engine/c_api.h"
#include "engine/generate_settings.h"

using attend::c::Guarded;

struct attend_generator {
  attend::c::Callbacks callbacks;  // outlive what uses them
  attend::Generator pipeline;
  std::vector<attend::Generation> answers = {};
  std::vector<attend_generated> outputs = {};  // of answers
  std::vector<int64_t> offsets = {};
  std::vector<uint8_t> truncated = {};
  attend_telemetry telemetry = {};
  std::vector<int32_t> bad_ids = {};  // of settings that were asked for, flat
  std::vector<int64_t> bad_offsets = {};
};

namespace attend {
namespace {

constexpr const char* kSettings = "attend_generation_settings";

// From a field of the C struct to one of GenerationSettings; the first error stays.
struct SettingReader {
  Status status;

  void operator()(const char* name, const int64_t& from, std::optional<int32_t>& to) {
    int32_t value = 0;
    if (from == ATTEND_UNSET || !Keep(c::Narrow(from, kSettings, name, &value))) return;
    to = value;
  }
  void operator()(const char* name, const int64_t& from, std::optional<bool>& to) {
    if (from == ATTEND_UNSET || !Keep(c::CheckEnum(from, 1, kSettings, name))) return;
    to = from != 0;
  }
  void operator()(const char* name, const int64_t& from, std::optional<EarlyStopping>& to) {
    if (from == ATTEND_UNSET || !Keep(c::CheckEnum(from, 2, kSettings, name))) return;
    to = static_cast<EarlyStopping>(from);
  }
  void operator()(const char*, const double& from, std::optional<double>& to) {
    if (!std::isnan(from)) to = from;
  }
  void operator()(const char*, const uint64_t&, std::optional<uint64_t>&) {}  // seed_is_set says
  void operator()(const char* name, const attend_ids& from,
                  std::optional<std::vector<int32_t>>& to) {
    if (from.count == -1 || !Keep(c::CheckArray(from.ids, from.count, name))) return;
    to.emplace(from.ids, from.ids + from.count);
  }
  void operator()(const char* name, const attend_id_lists& from,
                  std::optional<std::vector<std::vector<int32_t>>>& to) {
    if (from.count == -1 || !Keep(c::CheckArray(from.offsets, from.count, name))) return;
    to.emplace();
    for (int64_t k = 0; k < from.count; ++k) {
      const int64_t begin = from.offsets[k], end = from.offsets[k + 1];
      if (begin < 0 || !Keep(c::CheckArray(from.ids, end - begin, name))) return;
      to->emplace_back(from.ids + begin, from.ids + end);
    }
  }

 private:
  bool Keep(Status found) {
    if (status.ok()) status = std::move(found);
    return status.ok();
  }
};

// And back; lists point into the settings, which the generator keeps.
struct SettingWriter {
  attend_generator* generator;

  template <typename From>
  void operator()(const char*, int64_t& to, const std::optional<From>& from) {
    to = from.has_value() ? static_cast<int64_t>(*from) : ATTEND_UNSET;
  }
  void operator()(const char*, double& to, const std::optional<double>& from) {
    to = from.value_or(NAN);
  }
  void operator()(const char*, uint64_t& to, const std::optional<uint64_t>& from) {
    to = from.value_or(0);
  }
  void operator()(const char*, attend_ids& to, const std::optional<std::vector<int32_t>>& from) {
    to = {nullptr, -1};
    if (from.has_value()) to = {from->data(), static_cast<int64_t>(from->size())};
  }
  void operator()(const char*, attend_id_lists& to,
                  const std::optional<std::vector<std::vector<int32_t>>>& from) {
    to = {nullptr, nullptr, -1};
    if (!from.has_value()) return;
    generator->bad_ids.clear();
    generator->bad_offsets = {0};
    for (const std::vector<int32_t>& ids : *from) {
      generator->bad_ids.insert(generator->bad_ids.end(), ids.begin(), ids.end());
      generator->bad_offsets.push_back(static_cast<int64_t>(generator->bad_ids.size()));
    }
    to = {generator->bad_ids.data(), generator->bad_offsets.data(),
          static_cast<int64_t>(from->size())};
  }
};

Status ReadSettings(const attend_generation_settings* given, GenerationSettings* out) {
  attend_generation_settings read = ATTEND_GENERATION_SETTINGS_INIT;
  ATTEND_RETURN_IF_ERROR(c::ReadStruct(given, kSettings, &read));
  SettingReader reader;
  VisitSettings(reader, std::as_const(read), *out);
  if (read.seed_is_set != 0) out->seed = read.seed;
  return reader.status;
}

Status ReadOptions(const attend_generator_options* given, c::SessionSetup* setup,
                   GeneratorOptions* out) {
  constexpr const char* kName = "attend_generator_options";
  attend_generator_options read = ATTEND_GENERATOR_OPTIONS_INIT;
  ATTEND_RETURN_IF_ERROR(c::ReadStruct(given, kName, &read));
  ATTEND_RETURN_IF_ERROR(c::CheckEnum(read.reserved, 0, kName, "reserved"));
  ATTEND_RETURN_IF_ERROR(c::ReadSessionOptions(read.session, setup));
  ATTEND_RETURN_IF_ERROR(ReadSettings(read.settings, &out->settings));
  out->session = setup->options;
  out->truncate = read.truncate != 0;
  if (read.max_text_tokens == 0) read.max_text_tokens = out->max_text_tokens;
  if (read.max_decoder_tokens == 0) read.max_decoder_tokens = out->max_decoder_tokens;
  ATTEND_RETURN_IF_ERROR(
      c::Narrow(read.max_text_tokens, kName, "max_text_tokens", &out->max_text_tokens));
  return c::Narrow(read.max_decoder_tokens, kName, "max_decoder_tokens", &out->max_decoder_tokens);
}

// All that is to be kept is allocated before anything of the handle changes.
Status KeepGenerations(Result<std::vector<Generation>> answers, attend_generator* generator,
                       attend_generations* out) {
  if (!answers.ok()) return answers.status();
  std::vector<attend_generated> outputs;
  std::vector<int64_t> offsets = {0};
  std::vector<uint8_t> truncated;
  for (const Generation& answer : *answers) {
    for (const GeneratedText& one : answer.outputs) {
      outputs.push_back({one.text.c_str(), one.text.size(), one.ids.data(),
                         static_cast<int64_t>(one.ids.size()), one.score});
    }
    offsets.push_back(static_cast<int64_t>(outputs.size()));
    truncated.push_back(answer.truncated ? 1 : 0);
  }
  generator->answers = *std::move(answers);  // which leaves each output where it is
  generator->outputs = std::move(outputs);
  generator->offsets = std::move(offsets);
  generator->truncated = std::move(truncated);
  attend_generations all = ATTEND_GENERATIONS_INIT;
  all.num_texts = static_cast<int64_t>(generator->truncated.size());
  all.num_outputs = static_cast<int64_t>(generator->outputs.size());
  all.outputs = generator->outputs.data();
  all.offsets = generator->offsets.data();
  all.truncated = generator->truncated.data();
  all.telemetry = c::KeepTelemetry(generator->pipeline.telemetry(), &generator->telemetry);
  c::WriteStruct(all, out);
  return {};
}

Status ReadIds(const attend_ids* ids, int64_t count, const char* name,
               std::vector<std::span<const int32_t>>* out) {
  ATTEND_RETURN_IF_ERROR(c::CheckArray(ids, count, name));
  for (int64_t i = 0; i < count; ++i) {
    ATTEND_RETURN_IF_ERROR(c::CheckArray(ids[i].ids, ids[i].count, name));
    out->emplace_back(ids[i].ids, static_cast<size_t>(ids[i].count));
  }
  return Status();
}

}  // namespace
}  // namespace attend

attend_status attend_generator_create(const attend_model* model,
                                      const attend_generator_options* options,
                                      attend_generator** out, attend_error* error) {
  return Guarded("generator", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(model, "model"));
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(out, "out"));
    attend::c::SessionSetup setup;
    attend::GeneratorOptions use;
    ATTEND_RETURN_IF_ERROR(attend::ReadOptions(options, &setup, &use));
    attend::Result<attend::Generator> generator = attend::Generator::Create(model->model, use);
    if (!generator.ok()) return generator.status();
    *out = new attend_generator{std::move(setup.callbacks), *std::move(generator)};
    return {};
  });
}

void attend_generator_free(attend_generator* generator) { delete generator; }

attend_status attend_generate(attend_generator* generator, const char* text, size_t size,
                              attend_generations* out, attend_error* error) {
  const attend_text one = {text, size};
  return attend_generate_batch(generator, &one, 1, out, error);
}

attend_status attend_generate_batch(attend_generator* generator, const attend_text* texts,
                                    int64_t num_texts, attend_generations* out,
                                    attend_error* error) {
  return Guarded("generator", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(generator, "generator"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_generations"));
    std::vector<std::string_view> views;
    ATTEND_RETURN_IF_ERROR(attend::c::ReadTexts(texts, num_texts, "texts", &views));
    return attend::KeepGenerations(generator->pipeline.GenerateBatch(views), generator, out);
  });
}

attend_status attend_generate_ids(attend_generator* generator, const attend_ids* inputs,
                                  const attend_ids* begins, int64_t num_inputs,
                                  attend_generations* out, attend_error* error) {
  return Guarded("generator", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(generator, "generator"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, "attend_generations"));
    std::vector<std::span<const int32_t>> ids, decoder_ids;
    ATTEND_RETURN_IF_ERROR(attend::ReadIds(inputs, num_inputs, "inputs", &ids));
    if (begins != nullptr) {
      ATTEND_RETURN_IF_ERROR(attend::ReadIds(begins, num_inputs, "begins", &decoder_ids));
    }
    std::vector<attend::GenerationInput> all(ids.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].ids = ids[i];
      if (begins != nullptr) all[i].decoder_ids = decoder_ids[i];
    }
    return attend::KeepGenerations(generator->pipeline.GenerateIds(all), generator, out);
  });
}

attend_status attend_generator_set(attend_generator* generator,
                                   const attend_generation_settings* settings,
                                   attend_error* error) {
  return Guarded("generator", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(generator, "generator"));
    attend::GenerationSettings read;
    ATTEND_RETURN_IF_ERROR(attend::ReadSettings(settings, &read));
    return generator->pipeline.Set(read);
  });
}

attend_status attend_generator_get(attend_generator* generator, attend_generation_settings* out,
                                   attend_error* error) {
  return Guarded("generator", error, [&]() -> attend::Status {
    ATTEND_RETURN_IF_ERROR(attend::c::RequirePointer(generator, "generator"));
    ATTEND_RETURN_IF_ERROR(attend::c::CheckResult(out, attend::kSettings));
    const attend::GenerationSettings& settings = generator->pipeline.settings();
    attend_generation_settings written = ATTEND_GENERATION_SETTINGS_INIT;
    attend::SettingWriter writer{generator};
    attend::VisitSettings(writer, written, settings);
    written.seed_is_set = settings.seed.has_value() ? 1 : 0;
    attend::c::WriteStruct(written, out);
    return {};
  });
}
