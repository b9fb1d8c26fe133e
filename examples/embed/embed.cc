// Two texts become vectors; the cosine says how alike they are.
#include <attend/text.h>

#include <cmath>
#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: embed_example MODEL TEXT TEXT\n"), 2;
  attend::Result<attend::Embedder> embedder = attend::Embedder::Load(argv[1]);
  if (!embedder.ok()) return std::puts(embedder.status().ToString().c_str()), 1;
  const std::string_view texts[] = {argv[2], argv[3]};
  const auto vectors = embedder->EmbedBatch(texts);
  if (!vectors.ok()) return std::puts(vectors.status().ToString().c_str()), 1;
  const std::vector<float>&a = (*vectors)[0].values, &b = (*vectors)[1].values;
  double aa = 0, bb = 0, ab = 0;
  for (size_t d = 0; d < a.size(); ++d) {
    aa += a[d] * a[d], bb += b[d] * b[d], ab += a[d] * b[d];
  }
  std::printf("%zu numbers each, cosine %.3f\n", a.size(), ab / std::sqrt(aa * bb));
}
