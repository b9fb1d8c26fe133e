#include "bench/harness/onednn_gemm.h"

#include <dnnl.hpp>
#include <utility>
#include <vector>

namespace attend::bench {
namespace {

using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

Type TypeOf(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return Type::bf16;
    case Precision::kInt8:
      return Type::s8;
    default:
      return Type::f32;
  }
}

// Of a memory of any type: the bytes 0 to 3 in turn are small integers, and as floats and bf16
// denormals; those are made one.
void Fill(const dnnl::memory& memory, Type type) {
  const size_t bytes = memory.get_desc().get_size();
  auto* const data = static_cast<unsigned char*>(memory.get_data_handle());
  const unsigned char one[4] = {0, 0, 0x80, 0x3F};  // of f32; its upper half is that of bf16
  for (size_t i = 0; i < bytes; ++i) {
    data[i] = type == Type::s8     ? static_cast<unsigned char>(i % 4)
              : type == Type::bf16 ? one[2 + i % 2]
                                   : one[i % 4];
  }
}

class Matmul final : public OneDnnGemm {
 public:
  Matmul(Type type, int64_t rows, int64_t n, int64_t k)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    dnnl::primitive_attr attributes;
    if (type == Type::s8) {
      attributes.set_output_scales(2, std::vector<float>(static_cast<size_t>(n), 0.01f));
    }
    const dnnl::matmul::primitive_desc desc(
        {Desc({rows, k}, type, Tag::ab), Desc({k, n}, type, Tag::any),
         Desc({rows, n}, Type::f32, Tag::ab)},
        attributes, engine_);
    name_ = desc.impl_info_str();
    matmul_ = dnnl::matmul(desc);
    const dnnl::memory a(desc.src_desc(), engine_), w(desc.weights_desc(), engine_),
        c(desc.dst_desc(), engine_);
    Fill(a, type);
    Fill(w, type);
    arguments_ = {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, c}};
  }

  void Run() override { matmul_.execute(stream_, arguments_); }
  std::string name() const override { return "oneDNN " + name_; }
  bool fast() const { return name_.find("ref") == std::string::npos; }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::string name_;
};

}  // namespace

std::unique_ptr<OneDnnGemm> OneDnnGemm::Create(Precision precision, int64_t rows, int64_t n,
                                               int64_t k) {
  try {
    auto made = std::make_unique<Matmul>(TypeOf(precision), rows, n, k);
    if (!made->fast()) return nullptr;
    return made;
  } catch (const dnnl::error&) {
    return nullptr;  // this CPU, or this oneDNN, has none
  }
}

}  // namespace attend::bench
