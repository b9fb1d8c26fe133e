// The public headers stand alone: each compiles by itself without a warning, and none of them
// brings in what attend is made of.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/process.h"

namespace attend {
namespace {

// Compiles a file of `text` with the flags, and returns as RunCommand does.
std::pair<int, std::string> Compile(const std::string& text, const std::string& flags,
                                    const std::string& language = "c++") {
  return testing::RunCommand("printf '%s\\n' '" + text + "' | '" ATTEND_CXX_COMPILER "' -x " +
                             language + " " + flags + " -I '" ATTEND_SOURCE_DIR "/include' -");
}

std::vector<std::string> PublicHeaders() {
  std::vector<std::string> headers;
  const std::filesystem::path root = ATTEND_SOURCE_DIR "/include";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".h") continue;
    headers.push_back(std::filesystem::relative(entry.path(), root).generic_string());
  }
  return headers;
}

constexpr const char* kStrict =
    "-std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion "
    "-Werror -fno-exceptions -fno-rtti";

TEST(Headers, EachCompilesAloneWithoutWarnings) {
  EXPECT_GE(PublicHeaders().size(), 3u);
  for (const std::string& header : PublicHeaders()) {
    // Twice: the guard works.
    const std::string include = "#include <" + header + ">";
    const auto [status, output] = Compile(include + "\n" + include + "\nint main() {}", kStrict);
    EXPECT_EQ(status, 0) << header << "\n" << output;
  }
}

// The C header is C99 without extensions, and any C++.
constexpr const char* kPedantic =
    " -fsyntax-only -Wall -Wextra -pedantic -Wshadow -Wconversion -Werror";

TEST(Headers, TheCInterfaceIsC99AndAnyCpp) {
  const std::string uses =
      "#include <attend/attend_c_batcher.h>\n#include <attend/attend_c.h>\n"
      "int main(void) {\n"
      "  attend_error error = ATTEND_ERROR_INIT; attend_machine machine = ATTEND_MACHINE_INIT;\n"
      "  attend_load_options load = ATTEND_LOAD_OPTIONS_INIT; attend_tags tags = "
      "ATTEND_TAGS_INIT;\n"
      "  attend_model_info info = ATTEND_MODEL_INFO_INIT; attend_batch batch = ATTEND_BATCH_INIT;\n"
      "  attend_executor executor = ATTEND_EXECUTOR_INIT; attend_output output = "
      "ATTEND_OUTPUT_INIT;\n"
      "  attend_session_options options = ATTEND_SESSION_OPTIONS_INIT;\n"
      "  attend_session_info session = ATTEND_SESSION_INFO_INIT;\n"
      "  attend_attention_options looking = ATTEND_ATTENTION_OPTIONS_INIT;\n"
      "  attend_attention attention = ATTEND_ATTENTION_INIT;\n"
      "  attend_encode_options encode = ATTEND_ENCODE_OPTIONS_INIT;\n"
      "  attend_tokens tokens = ATTEND_TOKENS_INIT; attend_classes classes = ATTEND_CLASSES_INIT;\n"
      "  attend_tokenizer_info tokenizer = ATTEND_TOKENIZER_INFO_INIT;\n"
      "  attend_pipeline_options pipeline = ATTEND_PIPELINE_OPTIONS_INIT;\n"
      "  attend_embeddings embeddings = ATTEND_EMBEDDINGS_INIT;\n"
      "  attend_ranking ranking = ATTEND_RANKING_INIT;\n"
      "  attend_generation_settings settings = ATTEND_GENERATION_SETTINGS_INIT;\n"
      "  attend_generator_options generator = ATTEND_GENERATOR_OPTIONS_INIT;\n"
      "  attend_generations generations = ATTEND_GENERATIONS_INIT;\n"
      "  attend_batcher_options batcher = ATTEND_BATCHER_OPTIONS_INIT;\n"
      "  attend_answer answer = ATTEND_ANSWER_INIT; attend_request request = ATTEND_REQUEST_INIT;\n"
      "  attend_batcher_statistics statistics = ATTEND_BATCHER_STATISTICS_INIT;\n"
      "  attend_logger logger = ATTEND_LOGGER_INIT; attend_trace_info trace = "
      "ATTEND_TRACE_INFO_INIT;\n"
      "  return (int)(batcher.truncate + answer.num_tokens + request.want + statistics.bytes +\n"
      "      error.code + machine.num_isas + load.mode + tags.num_words + info.task +\n"
      "      batch.num_edges + (executor.user != NULL) + output.share + options.share +\n"
      "      session.num_threads + looking.max_tokens + attention.self.keys + encode.max_tokens +\n"
      "      tokens.num_tokens + classes.num_texts + tokenizer.bos_id + pipeline.truncate +\n"
      "      embeddings.num_texts + ranking.num_texts + settings.top_k + generator.truncate +\n"
      "      generations.num_texts + logger.least + trace.num_events);\n"
      "}";
  for (const char* standard : {"c99", "c11", "c17"}) {
    const auto [status, output] =
        Compile(uses, std::string("-std=") + standard + kPedantic + " -Wstrict-prototypes", "c");
    EXPECT_EQ(status, 0) << standard << "\n" << output;
  }
  for (const char* standard : {"c++11", "c++17", "c++20"}) {
    const auto [status, output] = Compile(uses, std::string("-std=") + standard + kPedantic);
    EXPECT_EQ(status, 0) << standard << "\n" << output;
  }
}

TEST(Headers, OlderCppIsToldWhatToInclude) {
  const auto [status, output] = Compile("#include <attend/text.h>", "-std=c++17 -fsyntax-only");
  EXPECT_NE(status, 0);
  EXPECT_NE(output.find("include attend/attend_c.h"), std::string::npos) << output;
}

TEST(Headers, AWarningIsFound) {
  EXPECT_NE(Compile("inline int F(int unused) { return 0; }", kStrict).first, 0);
}

TEST(Headers, NothingOfTheInsideShows) {
  for (const std::string& header : PublicHeaders()) {
    const auto [status, files] = Compile("#include <" + header + ">", "-std=c++20 -M");
    EXPECT_EQ(status, 0) << files;
    for (const char* foreign :
         {"hwy", "dnnl", "omp.h", "nlohmann", "xxhash", "/engine/", "/kernels/"}) {
      EXPECT_EQ(files.find(foreign), std::string::npos) << header << " brings in " << foreign;
    }
  }
}

}  // namespace
}  // namespace attend
