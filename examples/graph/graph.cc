// Vectors in, and a graph of who sees whom: a node of a ring sees itself and its two neighbours,
// and gets a score for every class. For models that are converted from a config.json of attend's
// own kind, as of any that takes vectors.
#include <attend/attend.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: graph_example MODEL\n"), 2;
  attend::Result<attend::Model> model = attend::Model::Load(argv[1]);
  if (!model.ok()) return std::puts(model.status().ToString().c_str()), 1;
  const int32_t width = model->info().input_size;  // 0: the model takes token ids
  attend::Result<attend::Session> session =
      attend::Session::Create(*model, {.max_tokens = 64, .max_edges = 256});
  if (!session.ok()) return std::puts(session.status().ToString().c_str()), 1;

  constexpr int32_t kNodes = 5;
  std::vector<float> rows;          // [kNodes, width]
  std::vector<attend::Edge> edges;  // (i, j): i sees j
  for (int32_t i = 0; i < kNodes; ++i) {
    for (int32_t d = 0; d < width; ++d) rows.push_back(std::sin(static_cast<float>(i * width + d)));
    for (const int32_t step : {kNodes - 1, 0, 1}) edges.push_back({i, (i + step) % kNodes});
  }
  const int32_t offsets[] = {0, kNodes};  // one graph; several are put end to end
  const int32_t edge_offsets[] = {0, static_cast<int32_t>(edges.size())};
  attend::Result<attend::Output> output = session->Run(attend::VectorBatch{
      .rows = rows, .offsets = offsets, .edges = edges, .edge_offsets = edge_offsets});
  if (!output.ok()) return std::puts(output.status().ToString().c_str()), 1;
  const size_t classes = output->logits.size() / kNodes;  // [kNodes, classes], valid until next Run
  for (size_t node = 0; node < kNodes; ++node) {
    std::printf("node %zu:", node);
    for (size_t c = 0; c < classes; ++c) std::printf(" %.3f", output->logits[node * classes + c]);
    std::printf("\n");
  }
}
