#include "kernels/gemm.h"

#include <dnnl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "kernels/aligned.h"
#include "kernels/gemm_highway.h"

namespace attend {
namespace {

#ifdef ATTEND_GEMM_FREE_ROWS
// A test build only: oneDNN runs every count as it comes on every ISA, to show that the test of the
// row rule can fail.
bool UsesOneDnn() { return true; }
std::vector<int64_t> RowCounts() {
  std::vector<int64_t> counts;
  for (int64_t rows = 64; rows >= 1; --rows) counts.push_back(rows);
  return counts;
}
#else
constinit bool g_one_dnn_for_test = false;

// Below AVX-512 oneDNN's gemm:jit packs nothing and keeps the bits of a row for multiples of 16
// rows only. On AVX-512 it does both, and is used where it was measured to be ahead: on Intel's. On
// AMD's the kernel of our own is as fast for 64 rows and faster for fewer (docs/performance.md).
bool UsesOneDnn() {
  __builtin_cpu_init();
  return BoundIsa() >= Isa::kAvx512 && (g_one_dnn_for_test || __builtin_cpu_is("amd") == 0);
}
// The row counts that oneDNN is asked for, largest first. On AVX-512 it keeps the bits of a row for
// every count (docs/performance.md, "The row rule"); four are enough.
std::span<const int64_t> RowCounts() {
  static constexpr int64_t kRows[] = {64, 16, 4, 1};
  return kRows;
}
#endif

Status DnnlError(const char* call, dnnl_status_t status) {
  const ErrorCode code = status == dnnl_out_of_memory ? ErrorCode::kCapacity : ErrorCode::kInternal;
  return Status(code, std::string("oneDNN's ") + call + " gave status " + std::to_string(status));
}

#define ATTEND_DNNL(call, ...)                                                         \
  do {                                                                                 \
    const dnnl_status_t dnnl_status_value = call(__VA_ARGS__);                         \
    if (dnnl_status_value != dnnl_success) return DnnlError(#call, dnnl_status_value); \
  } while (false)

struct EngineDeleter {
  void operator()(dnnl_engine_t engine) const { dnnl_engine_destroy(engine); }
};
using Engine = std::unique_ptr<dnnl_engine, EngineDeleter>;

Status MakeEngine(Engine* engine) {
  dnnl_engine_t raw = nullptr;
  ATTEND_DNNL(dnnl_engine_create, &raw, dnnl_cpu, 0);
  engine->reset(raw);
  return Status();
}

// One oneDNN matmul [rows, K] x [K, columns] + bias.
struct Matmul {
  int64_t rows = 0;
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_desc_t source, weights, bias, destination, scratchpad;
  ~Matmul() {
    if (primitive != nullptr) dnnl_primitive_destroy(primitive);
  }
};

dnnl_memory_desc_t QueryDesc(const_dnnl_primitive_desc_t desc, dnnl_query_t what) {
  return *dnnl_primitive_desc_query_md(desc, what, 0);
}

Status DenseDesc(dnnl_memory_desc_t* desc, int64_t rows, int64_t columns) {
  const dnnl_dims_t dims = {rows, columns};
  const dnnl_dims_t strides = {columns, 1};
  ATTEND_DNNL(dnnl_memory_desc_init_by_strides, desc, 2, dims, dnnl_f32, strides);
  return Status();
}

Status MakeDescriptor(dnnl_engine_t engine, int64_t rows, int64_t columns, int64_t k,
                      dnnl_primitive_desc_t* out) {
  dnnl_memory_desc_t source, weights, bias, destination;
  ATTEND_RETURN_IF_ERROR(DenseDesc(&source, rows, k));
  ATTEND_RETURN_IF_ERROR(DenseDesc(&bias, 1, columns));
  ATTEND_RETURN_IF_ERROR(DenseDesc(&destination, rows, columns));
  const dnnl_dims_t weight_dims = {k, columns};
  ATTEND_DNNL(dnnl_memory_desc_init_by_tag, &weights, 2, weight_dims, dnnl_f32,
              dnnl_format_tag_any);
  dnnl_matmul_desc_t desc;
  ATTEND_DNNL(dnnl_matmul_desc_init, &desc, &source, &weights, &bias, &destination);
  // The library's own scratchpad belongs to the primitive and is corrupted by a second thread.
  dnnl_primitive_attr_t attributes = nullptr;
  ATTEND_DNNL(dnnl_primitive_attr_create, &attributes);
  dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
  const dnnl_status_t status = dnnl_primitive_desc_create(out, &desc, attributes, engine, nullptr);
  dnnl_primitive_attr_destroy(attributes);
  return status == dnnl_success ? Status() : DnnlError("dnnl_primitive_desc_create", status);
}

Status MakeMatmul(dnnl_engine_t engine, int64_t rows, int64_t columns, int64_t k, Matmul* out,
                  std::string* implementation) {
  dnnl_primitive_desc_t desc = nullptr;
  ATTEND_RETURN_IF_ERROR(MakeDescriptor(engine, rows, columns, k, &desc));
  out->rows = rows;
  out->source = QueryDesc(desc, dnnl_query_src_md);
  out->weights = QueryDesc(desc, dnnl_query_weights_md);
  out->destination = QueryDesc(desc, dnnl_query_dst_md);
  out->scratchpad = QueryDesc(desc, dnnl_query_scratchpad_md);
  out->bias = *dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 1);
  const char* name = nullptr;
  dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
  if (name != nullptr) *implementation = name;
  const dnnl_status_t status = dnnl_primitive_create(&out->primitive, desc);
  dnnl_primitive_desc_destroy(desc);
  return status == dnnl_success ? Status() : DnnlError("dnnl_primitive_create", status);
}

dnnl_cpu_isa_t DnnlIsa(Isa isa) {
  switch (isa) {
    case Isa::kSse4:
      return dnnl_cpu_isa_sse41;
    case Isa::kAvx2:
      return dnnl_cpu_isa_avx2;
    case Isa::kAvx512:
      return dnnl_cpu_isa_avx512_core;
    case Isa::kAvx512Vnni:
      return dnnl_cpu_isa_avx512_core_vnni;
    case Isa::kAvx512Bf16:
      return dnnl_cpu_isa_avx512_core_bf16;
    case Isa::kAmx:
      return dnnl_cpu_isa_avx512_core_amx;
  }
  return dnnl_cpu_isa_all;
}

}  // namespace

// Our own kernel, or matmuls of full panels and, when N is no multiple of the width, of the last
// one.
struct LinearKernel::Impl {
  GemmKernels own;  // own.run null: oneDNN's
  Engine engine;
  std::vector<Matmul> full;
  std::vector<Matmul> last;
  std::string implementation;

  const std::vector<Matmul>& matmuls(const Panels& panels, int64_t panel) const {
    return panels.columns(panel) == panels.width ? full : last;
  }
};

Status LimitGemmIsa(Isa isa) {
  const dnnl_status_t status = dnnl_set_max_cpu_isa(DnnlIsa(isa));
  if (status == dnnl_success) return Status();
  if (dnnl_get_effective_cpu_isa() == DnnlIsa(isa)) return Status();
  return Status(ErrorCode::kBusy, "oneDNN is already in use with another instruction set", "ISA",
                "choose the ISA before the first Session and before other uses of oneDNN");
}

void UseOneDnnForTest() {
#ifndef ATTEND_GEMM_FREE_ROWS
  g_one_dnn_for_test = true;
#endif
}

const char* GemmLibraryVersion() {
  static const std::string version = [] {
    const dnnl_version_t* v = dnnl_version();
    return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch);
  }();
  return version.c_str();
}

Panels CutPanels(int64_t n, int64_t k, int64_t width) {
  if (width <= 0) {
    // Narrow layers and long K: 64 columns, so that there are panels for every thread and a panel
    // stays in L2; wide ones 192, where a call's overhead is 2 % less.
    width = 64;
    if (n >= 768 && k < 1024) width = n % 192 == 0 ? 192 : n % 128 == 0 ? 128 : 64;
    width = std::min(width, n);
  }
  Panels panels;
  panels.width = width;
  panels.count = (n + width - 1) / width;
  panels.last = n - (panels.count - 1) * width;
  return panels;
}

int64_t PaddedRows(int64_t rows) {
#ifdef ATTEND_GEMM_FREE_ROWS
  return rows;
#else
  if (!UsesOneDnn() || rows == 1) return rows;
  return (rows + 3) / 4 * 4;
#endif
}

namespace {

// What a kernel of our own is called.
std::string OwnName(GemmType type) {
  const Isa isa = BoundIsa();
  const std::string own = std::string(" attend:") + IsaName(isa);
  if (type == GemmType::kF32) return "f32" + own;
  if (type == GemmType::kInt8) return "int8" + own;
  if (isa >= Isa::kAvx512Bf16) return "bf16" + own;
  return "bf16" + own + " widened to f32, the CPU has no bf16 unit";
}

}  // namespace

Result<std::shared_ptr<const LinearKernel>> LinearKernel::Create(int64_t n, int64_t k,
                                                                 Panels panels, GemmType type) {
  std::shared_ptr<LinearKernel> kernel(new LinearKernel);
  kernel->n_ = n;
  kernel->k_ = k;
  kernel->type_ = type;
  kernel->panels_ = panels;
  kernel->impl_ = std::make_unique<Impl>();
  Impl& impl = *kernel->impl_;
  if (type != GemmType::kF32 || !UsesOneDnn()) {
    impl.own = BindGemm(type);
    impl.implementation = OwnName(type);
    return std::shared_ptr<const LinearKernel>(std::move(kernel));
  }
  ATTEND_RETURN_IF_ERROR(MakeEngine(&impl.engine));
  const auto counts = RowCounts();
  const bool has_full = panels.count > 1 || panels.last == panels.width;
  const bool has_last = panels.last != panels.width;
  impl.full = std::vector<Matmul>(has_full ? counts.size() : 0);
  impl.last = std::vector<Matmul>(has_last ? counts.size() : 0);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (has_last) {
      ATTEND_RETURN_IF_ERROR(MakeMatmul(impl.engine.get(), counts[i], panels.last, k, &impl.last[i],
                                        &impl.implementation));
    }
    if (has_full) {
      ATTEND_RETURN_IF_ERROR(MakeMatmul(impl.engine.get(), counts[i], panels.width, k,
                                        &impl.full[i], &impl.implementation));
    }
  }
  impl.implementation = "f32 " + impl.implementation;
  // One pack must serve every row count.
  for (const std::vector<Matmul>* matmuls : {&impl.full, &impl.last}) {
    for (const Matmul& matmul : *matmuls) {
      if (!dnnl_memory_desc_equal(&matmul.weights, &matmuls->front().weights)) {
        return Status(ErrorCode::kInternal, "oneDNN packs the weights differently for " +
                                                std::to_string(matmul.rows) + " rows");
      }
    }
  }
  return std::shared_ptr<const LinearKernel>(std::move(kernel));
}

LinearKernel::~LinearKernel() = default;

const char* LinearKernel::implementation() const { return impl_->implementation.c_str(); }

int64_t LinearKernel::prepared_floats() const { return PreparedRowFloats(type_, k_); }

const float* LinearKernel::Prepare(int64_t rows, const float* x, float* prepared) const {
  if (impl_->own.prepare == nullptr) return x;
  impl_->own.prepare({.x = x, .out = prepared, .rows = rows, .k = k_});
  return prepared;
}

void LinearKernel::PrepareColumns(int64_t rows, const float* x, int64_t ldx, int64_t begin,
                                  int64_t columns, float* prepared) const {
  impl_->own.prepare({.x = x,
                      .out = prepared,
                      .rows = rows,
                      .k = k_,
                      .begin = begin,
                      .columns = columns,
                      .ldx = ldx});
}

namespace {

Status ReorderPanel(dnnl_engine_t engine, dnnl_stream_t stream, const Matmul& matmul,
                    int64_t columns, int64_t k, float* rows, float* packed) {
  dnnl_memory_desc_t plain;  // W is [columns, K] row-major: a transposed [K, columns]
  const dnnl_dims_t dims = {k, columns};
  const dnnl_dims_t strides = {1, k};
  ATTEND_DNNL(dnnl_memory_desc_init_by_strides, &plain, 2, dims, dnnl_f32, strides);
  dnnl_memory_t from = nullptr, to = nullptr;
  dnnl_primitive_desc_t desc = nullptr;
  dnnl_primitive_t reorder = nullptr;
  dnnl_status_t status = dnnl_memory_create(&from, &plain, engine, rows);
  if (status == dnnl_success) status = dnnl_memory_create(&to, &matmul.weights, engine, packed);
  if (status == dnnl_success) {
    status =
        dnnl_reorder_primitive_desc_create(&desc, &plain, engine, &matmul.weights, engine, nullptr);
  }
  if (status == dnnl_success) status = dnnl_primitive_create(&reorder, desc);
  if (status == dnnl_success) {
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    status = dnnl_primitive_execute(reorder, stream, 2, arguments);
  }
  if (status == dnnl_success) status = dnnl_stream_wait(stream);
  if (reorder != nullptr) dnnl_primitive_destroy(reorder);
  if (desc != nullptr) dnnl_primitive_desc_destroy(desc);
  if (to != nullptr) dnnl_memory_destroy(to);
  if (from != nullptr) dnnl_memory_destroy(from);
  return status == dnnl_success ? Status() : DnnlError("reorder of weights", status);
}

// Every panel gets the room of the largest, so that a panel is found by one multiplication.
size_t PanelBytes(const LinearKernel& kernel) {
  const LinearKernel::Impl& impl = kernel.impl();
  if (impl.own.run != nullptr) {
    return static_cast<size_t>(PackedPanelBytes(kernel.type(), kernel.panels().width, kernel.k()));
  }
  size_t bytes = 0;
  for (const std::vector<Matmul>* matmuls : {&impl.full, &impl.last}) {
    if (!matmuls->empty()) {
      bytes = std::max(bytes, dnnl_memory_desc_get_size(&matmuls->front().weights));
    }
  }
  return RoundUp(bytes, size_t{64});
}

// Packs every panel into `packed`; `rows` has room for the rows of one panel.
Status PackPanels(const LinearKernel& kernel, const PackedLinear::FillRows& fill, float* rows,
                  int64_t panel_stride, float* packed) {
  const Panels& panels = kernel.panels();
  const LinearKernel::Impl& impl = kernel.impl();
  dnnl_stream_t stream = nullptr;
  if (impl.own.run == nullptr) {
    ATTEND_DNNL(dnnl_stream_create, &stream, impl.engine.get(), dnnl_stream_default_flags);
  }
  Status status;
  for (int64_t panel = 0; panel < panels.count && status.ok(); ++panel) {
    const int64_t columns = panels.columns(panel);
    float* const to = packed + panel * panel_stride;
    fill(panels.begin(panel), columns, rows);
    if (impl.own.pack != nullptr) {
      impl.own.pack({.w = rows, .packed = to, .columns = columns, .k = kernel.k()});
    } else {
      status = ReorderPanel(impl.engine.get(), stream, impl.matmuls(panels, panel).front(), columns,
                            kernel.k(), rows, to);
    }
  }
  if (stream != nullptr) dnnl_stream_destroy(stream);
  return status;
}

}  // namespace

Result<std::shared_ptr<const PackedLinear>> PackedLinear::Pack(const LinearKernel& kernel,
                                                               const FillRows& fill,
                                                               std::span<const float> bias,
                                                               std::shared_ptr<AlignedPool> pool) {
  const Panels& panels = kernel.panels();
  const size_t panel_bytes = PanelBytes(kernel);
  std::shared_ptr<PackedLinear> packed(new PackedLinear);
  packed->panel_stride_ = static_cast<int64_t>(panel_bytes / sizeof(float));
  packed->panel_width_ = panels.width;
  const size_t bias_bytes =
      RoundUp(static_cast<size_t>(panels.count * panels.width) * 4, size_t{64});
  packed->bytes_ = panel_bytes * static_cast<size_t>(panels.count) + bias_bytes;
  packed->pool_ = pool == nullptr ? std::make_shared<AlignedPool>(packed->bytes_) : std::move(pool);
  packed->data_ = static_cast<float*>(packed->pool_->Take(packed->bytes_));
  AlignedFloats rows(static_cast<size_t>(panels.width * kernel.k()));
  if (packed->data_ == nullptr || rows.data() == nullptr) {
    return Status(ErrorCode::kCapacity,
                  "no memory for " + std::to_string(packed->bytes_) + " bytes of packed weights");
  }
  float* packed_bias = packed->data_ + packed->panel_stride_ * panels.count;
  std::memset(packed_bias, 0, bias_bytes);
  if (!bias.empty()) std::memcpy(packed_bias, bias.data(), bias.size_bytes());
  packed->bias_ = packed_bias;

  ATTEND_RETURN_IF_ERROR(
      PackPanels(kernel, fill, rows.data(), packed->panel_stride_, packed->data_));
  return std::shared_ptr<const PackedLinear>(std::move(packed));
}

PackedLinear::~PackedLinear() = default;

namespace {

// The argument objects of one matmul, reused by every call: only the pointers change.
struct Bound {
  const Matmul* matmul = nullptr;
  dnnl_memory_t source = nullptr, weights = nullptr, bias = nullptr, destination = nullptr;
  dnnl_memory_t scratchpad = nullptr;
  dnnl_exec_arg_t arguments[5];

  ~Bound() {
    for (dnnl_memory_t memory : {source, weights, bias, destination, scratchpad}) {
      if (memory != nullptr) dnnl_memory_destroy(memory);
    }
  }
};

Status Bind(dnnl_engine_t engine, const Matmul& matmul, void* scratchpad, Bound* bound) {
  bound->matmul = &matmul;
  ATTEND_DNNL(dnnl_memory_create, &bound->source, &matmul.source, engine, DNNL_MEMORY_NONE);
  ATTEND_DNNL(dnnl_memory_create, &bound->weights, &matmul.weights, engine, DNNL_MEMORY_NONE);
  ATTEND_DNNL(dnnl_memory_create, &bound->bias, &matmul.bias, engine, DNNL_MEMORY_NONE);
  ATTEND_DNNL(dnnl_memory_create, &bound->destination, &matmul.destination, engine,
              DNNL_MEMORY_NONE);
  ATTEND_DNNL(dnnl_memory_create, &bound->scratchpad, &matmul.scratchpad, engine, scratchpad);
  bound->arguments[0] = {DNNL_ARG_SRC, bound->source};
  bound->arguments[1] = {DNNL_ARG_WEIGHTS, bound->weights};
  bound->arguments[2] = {DNNL_ARG_BIAS, bound->bias};
  bound->arguments[3] = {DNNL_ARG_DST, bound->destination};
  bound->arguments[4] = {DNNL_ARG_SCRATCHPAD, bound->scratchpad};
  return Status();
}

}  // namespace

struct LinearRunner::Impl {
  std::shared_ptr<const LinearKernel> kernel;
  dnnl_stream_t stream = nullptr;
  AlignedFloats scratchpad;
  std::vector<Bound> full, last;
  ~Impl() {
    if (stream != nullptr) dnnl_stream_destroy(stream);
  }
};

Result<std::unique_ptr<LinearRunner>> LinearRunner::Create(
    std::shared_ptr<const LinearKernel> kernel) {
  std::unique_ptr<LinearRunner> runner(new LinearRunner);
  runner->impl_ = std::make_unique<Impl>();
  Impl& impl = *runner->impl_;
  impl.kernel = std::move(kernel);
  const LinearKernel::Impl& shape = impl.kernel->impl();
  if (shape.own.run != nullptr) return runner;
  ATTEND_DNNL(dnnl_stream_create, &impl.stream, shape.engine.get(), dnnl_stream_default_flags);
  size_t scratch_bytes = 64;
  for (const std::vector<Matmul>* matmuls : {&shape.full, &shape.last}) {
    for (const Matmul& matmul : *matmuls) {
      scratch_bytes = std::max(scratch_bytes, dnnl_memory_desc_get_size(&matmul.scratchpad));
    }
  }
  impl.scratchpad = AlignedFloats(scratch_bytes / sizeof(float) + 1);
  impl.full = std::vector<Bound>(shape.full.size());
  impl.last = std::vector<Bound>(shape.last.size());
  for (size_t i = 0; i < shape.full.size(); ++i) {
    ATTEND_RETURN_IF_ERROR(
        Bind(shape.engine.get(), shape.full[i], impl.scratchpad.data(), &impl.full[i]));
  }
  for (size_t i = 0; i < shape.last.size(); ++i) {
    ATTEND_RETURN_IF_ERROR(
        Bind(shape.engine.get(), shape.last[i], impl.scratchpad.data(), &impl.last[i]));
  }
  return runner;
}

LinearRunner::~LinearRunner() = default;

size_t LinearRunner::bytes() const { return sizeof(Impl) + impl_->scratchpad.size() * 4; }

void LinearRunner::RunPanel(const PackedLinear& weights, int64_t panel, int64_t rows,
                            const float* a, float* c) {
  Impl& impl = *impl_;
  const Panels& panels = impl.kernel->panels();
  const int64_t columns = panels.columns(panel);
  const int64_t k = impl.kernel->k();
  if (const GemmPanelFn own = impl.kernel->impl().own.run) {
    own({.a = a,
         .packed = weights.weights(panel),
         .bias = weights.bias(panel),
         .c = c,
         .rows = rows,
         .columns = columns,
         .k = k});
    return;
  }
  std::vector<Bound>& bound = columns == panels.width ? impl.full : impl.last;
  int64_t left = rows;
  size_t i = 0;
  while (left > 0) {
    // The largest count that is full; a tail takes the smallest count that holds it, unless several
    // of the next smaller ones waste less.
    while (i + 1 < bound.size() && PaddedRows(left) < bound[i].matmul->rows) ++i;
    Bound& call = bound[i];
    dnnl_memory_set_data_handle(call.source, const_cast<float*>(a));
    dnnl_memory_set_data_handle(call.weights, const_cast<float*>(weights.weights(panel)));
    dnnl_memory_set_data_handle(call.bias, const_cast<float*>(weights.bias(panel)));
    dnnl_memory_set_data_handle(call.destination, c);
    dnnl_primitive_execute(call.matmul->primitive, impl.stream, 5, call.arguments);
    a += call.matmul->rows * k;
    c += call.matmul->rows * columns;
    left -= call.matmul->rows;
  }
}

}  // namespace attend
