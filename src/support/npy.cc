#include "support/npy.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "support/write_file.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are read and written as they lie in memory");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;      // of the data, counted from the start of the file
constexpr size_t kMostHeader = 65536;  // numpy itself distrusts longer ones
constexpr int64_t kMostElements = int64_t{1} << 40;

// The text after `'key':` in the header's dictionary, without leading blanks.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) return std::nullopt;
  const size_t colon = header.find(':', at);
  if (colon == std::string_view::npos) return std::nullopt;
  const size_t start = header.find_first_not_of(' ', colon + 1);
  if (start == std::string_view::npos) return std::nullopt;
  return header.substr(start);
}

// "(1, 3, 224)" at the start of `text`.
std::optional<Dims> parse_shape(std::string_view text) {
  const size_t close = text.find(')');
  if (!text.starts_with('(') || close == std::string_view::npos) return std::nullopt;
  Dims dims;
  int64_t elements = 1;
  const char* at = text.data() + 1;
  const char* const end = text.data() + close;
  while (true) {
    while (at != end && (*at == ' ' || *at == ',')) ++at;
    if (at == end) return dims;
    int64_t extent = 0;
    const auto [after, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 0) return std::nullopt;
    if (extent > 0 && elements > kMostElements / extent) return std::nullopt;
    elements *= extent;
    dims.push_back(extent);
    at = after;
  }
}

int64_t product(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return count;
}

size_t bytes_of(DataType type) {
  return type == DataType::kFloat32 ? sizeof(float) : sizeof(int64_t);
}

std::string_view quoted(std::string_view text) {
  const size_t close = text.size() > 1 ? text.find('\'', 1) : std::string_view::npos;
  return close == std::string_view::npos ? std::string_view() : text.substr(1, close - 1);
}

StatusOr<std::string> read_header(std::ifstream& file, const std::string& path) {
  const auto truncated = [&path] { return corrupt(path + ": the file ends inside its header"); };
  char start[8];
  if (!file.read(start, sizeof start)) {
    return corrupt(path + ": too short to be a .npy file");
  }
  if (std::string_view(start, kMagic.size()) != kMagic) {
    return corrupt(path + ": not a .npy file (it does not start with NumPy's magic bytes)");
  }
  const int version = static_cast<unsigned char>(start[6]);
  unsigned char length[4] = {};
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3) {
    return unsupported(fmt::format("{}: .npy format version {}", path, version));
  }
  if (!file.read(reinterpret_cast<char*>(length), static_cast<std::streamsize>(length_bytes))) {
    return truncated();
  }
  const size_t size =
      length[0] | size_t{length[1]} << 8 | size_t{length[2]} << 16 | size_t{length[3]} << 24;
  if (size > kMostHeader) return corrupt(fmt::format("{}: a header of {} bytes", path, size));
  std::string header(size, '\0');
  if (!file.read(header.data(), static_cast<std::streamsize>(size))) return truncated();
  return header;
}

}  // namespace

StatusOr<HostTensor> read_npy(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return not_found(path + " is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found(fmt::format("{}: {}", path, std::strerror(errno)));
  TANDEM_ASSIGN_OR_RETURN(const std::string header, read_header(file, path));

  const auto descr = value_of(header, "descr");
  const auto order = value_of(header, "fortran_order");
  const auto shape = value_of(header, "shape");
  if (!descr || !order || !shape) {
    return corrupt(path + ": the header lacks descr, fortran_order or shape");
  }
  HostTensor tensor;
  const std::string_view type = quoted(*descr);
  if (type == "<f4") {
    tensor.type = DataType::kFloat32;
  } else if (type == "<i8") {
    tensor.type = DataType::kInt64;
  } else {
    return unsupported(fmt::format(
        "{}: elements of type '{}'; save it as array.astype('<f4') or '<i8'", path, type));
  }
  if (!order->starts_with("False")) {
    return unsupported(
        path + ": the array is in Fortran order; save numpy.ascontiguousarray(array) instead");
  }
  const std::optional<Dims> dims = parse_shape(*shape);
  if (!dims) return corrupt(path + ": the header's shape is malformed");
  tensor.dims = *dims;

  const size_t bytes = static_cast<size_t>(product(tensor.dims)) * bytes_of(tensor.type);
  const std::streamoff begin = file.tellg();
  file.seekg(0, std::ios::end);
  const size_t left = static_cast<size_t>(file.tellg() - begin);
  if (left != bytes) {
    return corrupt(fmt::format("{}: shape [{}] needs {} bytes of data, the file has {}", path,
                               fmt::join(tensor.dims, ", "), bytes, left));
  }
  file.seekg(begin);
  tensor.bytes.resize(bytes);
  if (!file.read(reinterpret_cast<char*>(tensor.bytes.data()),
                 static_cast<std::streamsize>(bytes))) {
    return corrupt(path + ": reading failed");
  }
  return tensor;
}

Status write_npy(const std::string& path, const HostTensor& tensor) {
  std::string shape;
  for (const int64_t extent : tensor.dims) shape += fmt::format("{}, ", extent);
  // Python's tuple of one element keeps its comma.
  if (!shape.empty()) shape.resize(shape.size() - (tensor.dims.size() == 1 ? 1 : 2));
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   tensor.type == DataType::kFloat32 ? "<f4" : "<i8", shape);
  const size_t before = kMagic.size() + 4;
  header.append(kAlignment - 1 - (before + header.size()) % kAlignment, ' ');
  header += '\n';

  std::string content(kMagic);
  content += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
              static_cast<char>(header.size() >> 8)};
  content += header;
  content.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return write_file(path, content);
}

}  // namespace tandem
