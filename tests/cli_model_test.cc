// The commands that take files and raw ids: run, convert, inspect, verify.
#include <gtest/gtest.h>

#include "attend/attend.h"
#include "tests/child.h"

namespace attend::testing {
namespace {

using nlohmann::json;

TEST(Run, RoundTripsFloats) {
  const Models& models = Models::Get();
  const std::string input =
      "{\"ids\": [2, 7, 9, 3]}\n{\"ids\": [5], \"type_ids\": [1], \"other\": {}}\n";
  const Outcome outcome = Attend({"run", models.tagger, "--want", "hidden,logits"}, input);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 2u);
  Result<Model> model = Model::Load(models.tagger);
  ASSERT_TRUE(model.ok());
  Result<Session> session = Session::Create(*model);
  ASSERT_TRUE(session.ok());
  const std::vector<int32_t> ids = {2, 7, 9, 3, 5}, types = {0, 0, 0, 0, 1}, offsets = {0, 4, 5};
  TokenBatch batch;
  batch.ids = ids, batch.type_ids = types, batch.offsets = offsets;
  Result<Output> output = session->Run(batch);
  ASSERT_TRUE(output.ok());
  size_t hidden = 0, logits = 0;
  for (const json& object : objects) {
    EXPECT_FALSE(object.contains("pooled"));
    for (const json& row : object.at("hidden")) {
      for (const json& value : row) EXPECT_EQ(value.get<float>(), output->hidden[hidden++]);
    }
    for (const json& row : object.at("logits")) {
      for (const json& value : row) EXPECT_EQ(value.get<float>(), output->logits[logits++]);
    }
  }
  EXPECT_EQ(hidden, output->hidden.size());
  EXPECT_EQ(logits, output->logits.size());
}

TEST(Run, BadLines) {
  struct Case {
    const char* line;
    int code;
    const char* message;
  };
  const Case cases[] = {{"{\"ids\": [2, 300]}", 3, "300"},
                        {"{\"ids\": [-1]}", 3, "-1"},
                        {"{\"ids\": [1.5]}", 3, "ids[0]"},
                        {"{\"ids\": [4294967296]}", 3, "ids[0]"},
                        {"{\"ids\": []}", 3, ""},
                        {"{\"ids\": 5}", 3, "list"},
                        {"{\"ids\": [5], \"type_ids\": [0, 0]}", 3, "type_ids"},
                        {"{\"ids\": [5], \"type_ids\": [9]}", 3, "9"},
                        {"{\"input\": [[1.0]]}", 3, "token ids"},
                        {"{\"text\": \"x\"}", 3, "ids"},
                        {"{\"ids\": [5], \"decoder_ids\": [1]}", 3, "decoder_ids"},
                        {"nonsense", 3, ""}};
  for (const Case& bad : cases) {
    const Outcome outcome =
        Attend({"run", "--json", Models::Get().tagger},
               std::string("{\"ids\": [5]}\n") + bad.line + "\n{\"ids\": [5]}\n");
    EXPECT_EQ(outcome.code, bad.code) << bad.line << ": " << outcome.err;
    EXPECT_EQ(outcome.objects().size(), 1u) << bad.line;
    EXPECT_TRUE(Has(outcome.error().at("where").get<std::string>(), "line 2")) << outcome.err;
    EXPECT_TRUE(Has(outcome.err, bad.message)) << bad.line << ": " << outcome.err;
  }
  std::string ids = "1";
  for (int i = 0; i < 64; ++i) ids += ",1";
  const Outcome too_long =
      Attend({"run", "--json", Models::Get().tagger}, "{\"ids\": [" + ids + "]}\n");
  EXPECT_EQ(too_long.code, 5) << too_long.err;
  EXPECT_TRUE(Has(too_long.err, "64")) << too_long.err;
  const Outcome want =
      Attend({"run", "--json", "--want", "pooled", Models::Get().tagger}, "{\"ids\": [5]}\n");
  EXPECT_EQ(want.code, 3) << want.err;
  EXPECT_EQ(Attend({"run", Models::Get().tagger, "--input", "x.npy"}).code, 3);
}

TEST(Inspect, Objects) {
  const Outcome outcome = Attend({"inspect", "--json", Models::Get().tagger});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json object = outcome.objects()[0];
  EXPECT_EQ(object.at("task"), "tokens");
  EXPECT_EQ(object.at("source"), "bert");
  EXPECT_EQ(object.at("hidden_size"), 48);
  EXPECT_EQ(object.at("max_length"), 64);
  EXPECT_EQ(object.at("tokenizer"), "wordpiece");
  EXPECT_EQ(object.at("labels").size(), 7u);
  EXPECT_EQ(object.at("file_bytes"), std::filesystem::file_size(Models::Get().tagger));
  EXPECT_GT(object.at("session_bytes"), 0);
  EXPECT_GT(object.at("tensors").size(), 30u);
  const Outcome people = Attend({"inspect", "--tensors", Models::Get().tagger});
  EXPECT_TRUE(Has(people.out, "embeddings.tokens.weight")) << people.out;
  EXPECT_TRUE(Has(people.out, "B-MISC")) << people.out;
}

TEST(Verify, SaysNoToADamagedFile) {
  const Outcome whole = Attend({"verify", "--json", Models::Get().tagger});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(whole.objects()[0].at("ok"), true);
  std::string bytes = ReadFile(Models::Get().tagger);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  TemporaryFolder folder;
  const std::string path = folder.Write("damaged.attend", bytes);
  const Outcome damaged = Attend({"verify", "--json", path});
  EXPECT_EQ(damaged.code, 6) << damaged.err;
  EXPECT_EQ(damaged.objects()[0].at("ok"), false);
  EXPECT_EQ(damaged.error().at("code"), "CORRUPT");
  bytes.resize(bytes.size() / 2);
  EXPECT_EQ(Attend({"verify", folder.Write("half.attend", bytes)}).code, 6);
}

TEST(Convert, SaysWhatItUnderstoodAndIsDeterministic) {
  TemporaryFolder folder;
  const std::string source = ATTEND_TEST_DATA "/hf/bert_token_classification";
  const Outcome a = Attend({"convert", "--json", source, "-o", folder / "a.attend"});
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.objects()[0].at("task"), "tokens");
  EXPECT_EQ(a.objects()[0].at("tokenizer"), "wordpiece");
  EXPECT_FALSE(a.objects()[0].at("understood").empty());
  EXPECT_EQ(ReadFile(folder / "a.attend"), ReadFile(Models::Get().tagger));
  const Outcome bad = Attend({"convert", "--json", folder.path(), "-o", folder / "b.attend"});
  EXPECT_NE(bad.code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "b.attend"));
}

}  // namespace
}  // namespace attend::testing
