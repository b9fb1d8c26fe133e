// NumPy's .npy files: one array of 32-bit floats with two dimensions.
#ifndef ATTEND_TOOLS_NPY_READER_H_
#define ATTEND_TOOLS_NPY_READER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "attend/status.h"

namespace attend::tools {

struct NpyMatrix {
  size_t rows = 0, columns = 0;
  std::vector<float> values;  // [rows, columns], row-major
};

// Reads the file of format 1, 2 or 3 at `path`, whose array must be '<f4', in C order, [rows,
// columns]; nothing is allocated that the file does not have the bytes for.
// Errors: kNotFound, kIo; kCorrupt (no .npy file, a header that cannot be read, data of another
// size); kUnsupported (another type, order or number of dimensions: says which).
Result<NpyMatrix> ReadNpy(const std::string& path);

// What the header of a .npy file says of its array.
struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<size_t> shape;
};

// Reads the dictionary of a header, as NumPy writes it: three keys, each once, in any order.
// Errors: kCorrupt.
Result<NpyHeader> ParseNpyHeader(std::string_view text, const std::string& where);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_NPY_READER_H_
