// A vector whose first N elements live inside it: the scratch of encoding, which must not allocate
// for ordinary words.
#ifndef ATTEND_ENGINE_TEXT_INLINE_VECTOR_H_
#define ATTEND_ENGINE_TEXT_INLINE_VECTOR_H_

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

namespace attend {

template <typename T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() {}  // NOLINT: leaves the N elements as they are, on purpose
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return size_ <= N ? reinterpret_cast<const T*>(inline_) : heap_.data(); }
  const T& operator[](size_t i) const { return data()[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

  // Keeps the memory.
  void clear() {
    size_ = 0;
    heap_.clear();
  }

  void push_back(const T& value) {
    if (size_ < N) {
      std::memcpy(inline_ + size_ * sizeof(T), &value, sizeof(T));
    } else {
      if (size_ == N) {
        const T* first = reinterpret_cast<const T*>(inline_);
        heap_.assign(first, first + N);
      }
      heap_.push_back(value);
    }
    ++size_;
  }

 private:
  size_t size_ = 0;
  std::vector<T> heap_;
  alignas(T) unsigned char inline_[N * sizeof(T)];
};

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_INLINE_VECTOR_H_
