// attend convert, inspect and run for models of the family: vectors and graphs as JSON Lines and as
// .npy, numbers that read back as the same floats, and what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/child.h"
#include "tests/testing.h"

namespace attend {
namespace {

using nlohmann::json;
using testing::Attend;
using testing::Golden;
using testing::Has;
using testing::Outcome;
using testing::TemporaryFolder;

// Models of tests/data/family, converted once.
class FamilyFiles {
 public:
  static const FamilyFiles& Get() {
    static const FamilyFiles files;
    return files;
  }
  std::string File(const std::string& name) const { return folder_ / (name + ".attend"); }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  FamilyFiles() {
    for (const char* name : {"edges_softmax", "relu_length_edges", "softmax1_edges_sequence",
                             "learned_vectors_projection_max", "minimal_dot_softmax", "defaults"}) {
      const Outcome outcome =
          Attend({"convert", std::string(ATTEND_TEST_DATA "/family/") + name, "-o", File(name)});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
    }
  }
  TemporaryFolder folder_;
};

std::string Text(float value) { return json(static_cast<double>(value)).dump(); }

// Case `k` as a line of JSON.
std::string LineOf(const Golden& golden, int k) {
  const std::string prefix = std::to_string(k) + ".";
  std::string line = "{";
  if (const auto ids = golden.tensors.find(prefix + "input_ids"); ids != golden.tensors.end()) {
    line += "\"ids\": " + json(ids->second.i64).dump();
  } else {
    const Golden::Tensor& input = golden.tensors.at(prefix + "input");
    const size_t width = static_cast<size_t>(input.shape[1]);
    line += "\"input\": [";
    for (size_t i = 0; i < input.f32.size(); ++i) {
      line += (i % width > 0 ? ", " : i > 0 ? "], [" : "[") + Text(input.f32[i]);
    }
    line += "]]";
  }
  if (const auto edges = golden.tensors.find(prefix + "edges"); edges != golden.tensors.end()) {
    json list = json::array();
    for (size_t e = 0; e + 1 < edges->second.i64.size(); e += 2) {
      list.push_back({edges->second.i64[e], edges->second.i64[e + 1]});
    }
    line += ", \"edges\": " + list.dump();
  }
  return line + "}\n";
}

std::vector<float> Flat(const json& value) {
  std::vector<float> all;
  for (const json& item : value) {
    if (item.is_array()) {
      for (const json& number : item) all.push_back(number.get<float>());
    } else {
      all.push_back(item.get<float>());
    }
  }
  return all;
}

Golden ReadFamily(const std::string& name) {
  return testing::ReadGolden(std::string(ATTEND_TEST_DATA "/family/") + name +
                             "/golden.safetensors");
}

TEST(RunFamily, CasesAsJsonLines) {
  for (const char* name : {"edges_softmax", "relu_length_edges", "softmax1_edges_sequence",
                           "learned_vectors_projection_max", "minimal_dot_softmax"}) {
    SCOPED_TRACE(name);
    const Golden golden = ReadFamily(name);
    const int cases = std::stoi(golden.metadata.at("cases"));
    std::string input;
    for (int k = 0; k < cases; ++k) input += LineOf(golden, k);
    const bool logits = golden.tensors.contains("0.logits");
    const Outcome outcome = Attend(
        {"run", FamilyFiles::Get().File(name), "--want", logits ? "hidden,logits" : "hidden"},
        input);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::vector<json> objects = outcome.objects();
    ASSERT_EQ(objects.size(), static_cast<size_t>(cases));
    for (int k = 0; k < cases; ++k) {
      const std::string prefix = std::to_string(k) + ".";
      for (const char* what : {"hidden", "logits"}) {
        if (std::strcmp(what, "logits") == 0 && !logits) continue;
        const std::vector<float> want = golden.tensors.at(prefix + what).f32;
        testing::ExpectNear(Flat(objects[static_cast<size_t>(k)].at(what)), testing::ToDouble(want),
                            5e-5, 0, prefix + what);
      }
    }
  }
}

// The file of a matrix, as numpy.save writes it.
std::string NpyBytes(const Golden::Tensor& tensor) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(tensor.shape[0]) + ", " + std::to_string(tensor.shape[1]) +
                       "), }";
  header.resize(117, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(tensor.f32.data()), tensor.f32.size() * sizeof(float));
  return bytes;
}

TEST(RunFamily, NpyGivesTheSameBitsAsJson) {
  const std::string model = FamilyFiles::Get().File("learned_vectors_projection_max");
  const Golden golden = ReadFamily("learned_vectors_projection_max");
  const TemporaryFolder& folder = FamilyFiles::Get().folder();
  for (int k = 0; k < 6; ++k) {
    const std::string file =
        folder.Write("x.npy", NpyBytes(golden.tensors.at(std::to_string(k) + ".input")));
    const Outcome npy = Attend({"run", model, "--want", "hidden,pooled,logits", "--input", file});
    ASSERT_EQ(npy.code, 0) << npy.err;
    const Outcome lines =
        Attend({"run", model, "--want", "hidden,pooled,logits"}, LineOf(golden, k));
    EXPECT_EQ(npy.out, lines.out);
  }
}

TEST(RunFamily, NumbersReadBackAsTheSameFloats) {
  const std::string file = FamilyFiles::Get().File("edges_softmax");
  const Golden golden = ReadFamily("edges_softmax");
  Result<Model> model = Model::Load(file);
  ASSERT_TRUE(model.ok());
  Result<Session> session = Session::Create(*model);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const Golden::Tensor& input = golden.tensors.at("3.input");
  std::vector<Edge> edges;
  const std::vector<int64_t>& pairs = golden.tensors.at("3.edges").i64;
  for (size_t e = 0; e + 1 < pairs.size(); e += 2) {
    edges.push_back({static_cast<int32_t>(pairs[e]), static_cast<int32_t>(pairs[e + 1])});
  }
  const int32_t offsets[] = {0, static_cast<int32_t>(input.shape[0])};
  const int32_t edge_offsets[] = {0, static_cast<int32_t>(edges.size())};
  Result<Output> output = session->Run(VectorBatch{
      .rows = input.f32, .offsets = offsets, .edges = edges, .edge_offsets = edge_offsets});
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  const Outcome outcome = Attend({"run", file, "--want", "hidden"}, LineOf(golden, 3));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  testing::ExpectSameBits(Flat(outcome.objects()[0].at("hidden")),
                          {output->hidden.begin(), output->hidden.end()}, "hidden");
}

struct BadLine {
  const char* model;
  const char* line;
  std::vector<std::string> parts;
};

TEST(RunFamily, BadLines) {
  const std::string row = "[1,2,3,4,5,6,7,8,9,0]";  // input_size 10
  const std::vector<BadLine> cases = {
      {"edges_softmax", "{\"ids\": [1], \"edges\": []}", {"ids", "vectors"}},
      {"edges_softmax", "{\"input\": [ROW]}", {"needs the edges"}},
      {"edges_softmax", "{\"input\": [ROW], \"edges\": [[0, 1]]}", {"(0, 1)", "0 to 0"}},
      {"edges_softmax", "{\"input\": [ROW], \"edges\": [[-1, 0]]}", {"(-1, 0)"}},
      {"edges_softmax", "{\"input\": [ROW], \"edges\": [[0]]}", {"edges[0]", "pair"}},
      {"edges_softmax", "{\"input\": [ROW], \"edges\": [[0, 0.5]]}", {"edges[0]", "0.5"}},
      {"edges_softmax", "{\"input\": [ROW], \"edges\": 1}", {"edges", "list of pairs"}},
      {"edges_softmax", "{\"input\": [[1, 2]], \"edges\": []}", {"input[0]", "2 numbers", "10"}},
      {"edges_softmax", "{\"input\": [ROW, 5], \"edges\": []}", {"input[1]", "vector"}},
      {"edges_softmax",
       "{\"input\": [[1,2,3,4,5,6,7,8,9,\"0\"]], \"edges\": []}",
       {"input[0][9]", "string"}},
      {"edges_softmax",
       "{\"input\": [[1,2,3,4,5,6,7,8,9,1e39]], \"edges\": []}",
       {"input[0][9]", "32-bit float"}},
      {"edges_softmax", "{\"input\": [[1,2,3,4,5,6,7,8,9,NaN]], \"edges\": []}", {"JSON"}},
      {"edges_softmax", "{\"input\": [], \"edges\": []}", {"empty"}},
      {"edges_softmax", "{\"input\": [ROW], \"edges\": [], \"type_ids\": [0]}", {"type_ids"}},
      {"defaults", "{\"ids\": [1], \"edges\": []}", {"edges", "takes none"}},
      {"defaults", "{\"ids\": [61]}", {"61", "0 to 60"}},
  };
  for (const BadLine& bad : cases) {
    std::string line = bad.line;
    for (size_t at = line.find("ROW"); at != std::string::npos; at = line.find("ROW")) {
      line.replace(at, 3, row);
    }
    const Outcome outcome =
        Attend({"run", "--json", FamilyFiles::Get().File(bad.model)}, line + "\n");
    EXPECT_EQ(outcome.code, 3) << line << ": " << outcome.err;
    EXPECT_TRUE(Has(outcome.error().at("where").get<std::string>(), "line 1")) << outcome.err;
    for (const std::string& part : bad.parts) {
      EXPECT_TRUE(Has(outcome.err, part)) << line << ": " << outcome.err;
    }
  }
  const Outcome longer = [&] {
    std::string vectors = "[1,2,3,4,5,6,7,8,9,0,1,2,3]";
    std::string line = "{\"input\": [" + vectors;
    for (int i = 0; i < 200; ++i) line += "," + vectors;
    return Attend({"run", "--json", FamilyFiles::Get().File("learned_vectors_projection_max")},
                  line + "]}\n");
  }();
  EXPECT_EQ(longer.code, 5) << longer.err;
  EXPECT_TRUE(Has(longer.err, "201 vectors, the model takes 200")) << longer.err;
}

TEST(RunFamily, BadFiles) {
  const TemporaryFolder& folder = FamilyFiles::Get().folder();
  const std::string vectors = FamilyFiles::Get().File("learned_vectors_projection_max");
  const auto run = [&](const std::string& model, const std::string& file) {
    return Attend({"run", "--json", model, "--input", file});
  };
  Golden::Tensor tensor{.shape = {2, 12}, .f32 = std::vector<float>(24, 1.0f), .i64 = {}};
  Outcome outcome = run(vectors, folder.Write("width.npy", NpyBytes(tensor)));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(Has(outcome.err, "12 numbers; the model takes 13")) << outcome.err;
  tensor = {.shape = {2, 13}, .f32 = std::vector<float>(26, 1.0f), .i64 = {}};
  tensor.f32[20] = std::numeric_limits<float>::infinity();
  outcome = run(vectors, folder.Write("infinite.npy", NpyBytes(tensor)));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(Has(outcome.err, "infinite.npy, rows[1]")) << outcome.err;
  tensor = {.shape = {0, 13}, .f32 = {}, .i64 = {}};
  outcome = run(vectors, folder.Write("empty.npy", NpyBytes(tensor)));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(Has(outcome.err, "empty")) << outcome.err;
  EXPECT_EQ(run(vectors, folder / "none.npy").code, 4);
  outcome = run(FamilyFiles::Get().File("defaults"), folder / "width.npy");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(Has(outcome.err, "token ids, not vectors")) << outcome.err;
  tensor = {.shape = {2, 10}, .f32 = std::vector<float>(20, 1.0f), .i64 = {}};
  outcome =
      run(FamilyFiles::Get().File("edges_softmax"), folder.Write("graph.npy", NpyBytes(tensor)));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(Has(outcome.err, "needs the edges")) << outcome.err;
}

TEST(RunFamily, TooManyEdges) {
  const std::string model = FamilyFiles::Get().File("relu_length_edges");
  const std::string line = "{\"ids\": [1, 2], \"edges\": [[0, 0], [0, 1], [1, 0]]}\n";
  EXPECT_EQ(Attend({"run", model, "--max-edges", "3"}, line + line).code, 0);
  const Outcome outcome = Attend({"run", "--json", model, "--max-edges", "2"}, line);
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_TRUE(Has(outcome.err, "max_edges")) << outcome.err;
}

TEST(InspectFamily, SaysWhatTheModelIs) {
  const std::string file = FamilyFiles::Get().File("relu_length_edges");
  const Outcome outcome = Attend({"inspect", "--json", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json object = outcome.objects()[0];
  EXPECT_EQ(object.at("source"), "attend_encoder");
  EXPECT_EQ(object.at("edges"), true);
  EXPECT_EQ(object.at("normalizer"), "relu");
  EXPECT_EQ(object.at("normalizer_scale"), "length");
  EXPECT_EQ(object.at("position"), "none");
  EXPECT_GT(object.at("session_bytes"), 0);
  const Outcome people = Attend({"inspect", file});
  EXPECT_TRUE(Has(people.out, "edges of a graph")) << people.out;
  EXPECT_TRUE(Has(people.out, "relu, divided by length")) << people.out;
}

TEST(ConvertFamily, BadFoldersGiveExitCode3AndNoFile) {
  const TemporaryFolder& folder = FamilyFiles::Get().folder();
  for (const auto& entry : std::filesystem::directory_iterator(ATTEND_TEST_DATA "/family_bad")) {
    if (!entry.is_directory()) continue;
    const std::string file = folder / "bad.attend";
    const Outcome outcome = Attend({"convert", "--json", entry.path(), "-o", file});
    EXPECT_EQ(outcome.code, 3) << entry.path() << ": " << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(file)) << entry.path();
    EXPECT_FALSE(outcome.error().at("what").get<std::string>().empty());
  }
}

}  // namespace
}  // namespace attend
