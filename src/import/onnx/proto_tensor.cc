#include "import/onnx/proto_tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

// Far beyond what fits into memory, far below what overflows.
constexpr int64_t kMaxElements = int64_t{1} << 40;
constexpr int64_t kMaxComputedElements = int64_t{1} << 28;

Status expect_count(const char* field, size_t found, int64_t expected, const char* unit) {
  if (found == static_cast<size_t>(expected)) return {};
  return corrupt(std::string(field) + " has " + std::to_string(found) + " " + unit + ", not " +
                 std::to_string(expected));
}

// Elements that C++ 20 has no type for, as TensorProto stores them.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(int32_t stored) : bits(static_cast<uint16_t>(stored)) {}
  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fu;
    const uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0) {  // zeros and subnormals: a multiple of 2^-24
      const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
      return sign ? -magnitude : magnitude;
    }
    const uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + (127 - 15);
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
  }
};

struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(int32_t stored) : bits(static_cast<uint16_t>(stored)) {}
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

// Elements are converted by so many at a time.
constexpr int64_t kChunk = 1 << 16;

// read_bytes(offset, to, count) gets bytes of the tensor, which need not be aligned where they are.
template <typename Stored, typename To, typename ReadBytes>
Status read_elements(const ReadBytes& read_bytes, HostTensor& tensor) {
  const int64_t count = element_count(tensor.dims);
  tensor.bytes.resize(static_cast<size_t>(count) * sizeof(To));
  if constexpr (std::is_same_v<Stored, To>) {
    return read_bytes(0, tensor.bytes.data(), tensor.bytes.size());
  } else {
    std::vector<Stored> stored(static_cast<size_t>(std::min(count, kChunk)));
    for (int64_t first = 0; first < count; first += kChunk) {
      const int64_t part = std::min(kChunk, count - first);
      TANDEM_RETURN_IF_ERROR(read_bytes(first * static_cast<int64_t>(sizeof(Stored)),
                                        reinterpret_cast<std::byte*>(stored.data()),
                                        static_cast<size_t>(part) * sizeof(Stored)));
      std::transform(stored.begin(), stored.begin() + part, tensor.data<To>() + first,
                     [](const Stored& element) { return static_cast<To>(element); });
    }
    return {};
  }
}

// `Stored` is the element type of raw_data and of external data, `To` Tandem's, `field` the typed
// alternative.
template <typename Stored, typename To, typename Field>
StatusOr<HostTensor> read(const onnx::TensorProto& proto, DataType type, const Field& field,
                          ExternalData& files) {
  HostTensor tensor;
  tensor.type = type;
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  const int64_t count = element_count(tensor.dims);
  const int64_t bytes = count * static_cast<int64_t>(sizeof(Stored));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    TANDEM_ASSIGN_OR_RETURN(const ExternalData::Range range, files.locate(proto, bytes));
    const auto read_bytes = [&](int64_t offset, std::byte* to, size_t size) {
      return ExternalData::read(range, offset, to, size);
    };
    TANDEM_RETURN_IF_ERROR((read_elements<Stored, To>(read_bytes, tensor)));
    return tensor;
  }
  if (proto.has_raw_data()) {
    const std::string& raw = proto.raw_data();
    TANDEM_RETURN_IF_ERROR(expect_count("raw_data", raw.size(), bytes, "bytes"));
    const auto read_bytes = [&](int64_t offset, std::byte* to, size_t size) -> Status {
      if (size > 0) std::memcpy(to, raw.data() + offset, size);
      return {};
    };
    TANDEM_RETURN_IF_ERROR((read_elements<Stored, To>(read_bytes, tensor)));
    return tensor;
  }
  TANDEM_RETURN_IF_ERROR(
      expect_count("its data", static_cast<size_t>(field.size()), count, "elements"));
  tensor.bytes.resize(static_cast<size_t>(count) * sizeof(To));
  std::transform(field.begin(), field.end(), tensor.data<To>(),
                 [](auto element) { return static_cast<To>(static_cast<Stored>(element)); });
  return tensor;
}

StatusOr<HostTensor> read_any(const onnx::TensorProto& proto, ExternalData& files) {
  if (proto.has_segment()) return unsupported("it is stored in segments");
  TANDEM_RETURN_IF_ERROR(check_dims(Dims(proto.dims().begin(), proto.dims().end())));
  TANDEM_ASSIGN_OR_RETURN(const DataType type, constant_type(proto.data_type()));
  switch (proto.data_type()) {
    case onnx::TensorProto::FLOAT:
      return read<float, float>(proto, type, proto.float_data(), files);
    case onnx::TensorProto::DOUBLE:
      return read<double, float>(proto, type, proto.double_data(), files);
    case onnx::TensorProto::FLOAT16:
      return read<Float16, float>(proto, type, proto.int32_data(), files);
    case onnx::TensorProto::BFLOAT16:
      return read<BFloat16, float>(proto, type, proto.int32_data(), files);
    case onnx::TensorProto::INT64:
      return read<int64_t, int64_t>(proto, type, proto.int64_data(), files);
    case onnx::TensorProto::INT32:
      return read<int32_t, int64_t>(proto, type, proto.int32_data(), files);
    default:  // BOOL: constant_type() has excluded the rest. A byte each in raw_data.
      return read<uint8_t, int64_t>(proto, type, proto.int32_data(), files);
  }
}

}  // namespace

std::string type_name(int onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::FLOAT:
      return "float32";
    case onnx::TensorProto::UNDEFINED:
      return "undefined";
    case onnx::TensorProto::BFLOAT16:
      return "bfloat16";
    default:
      break;
  }
  // Types that older versions of ONNX's library have no names for.
  constexpr const char* kNewer[] = {
      "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",
      "int4",         "float4e2m1",     "float8e8m0", "uint2",          "int2"};
  constexpr int kFirstNewer = 17;
  if (onnx_type >= kFirstNewer && onnx_type < kFirstNewer + static_cast<int>(std::size(kNewer))) {
    return kNewer[onnx_type - kFirstNewer];
  }
  if (!onnx::TensorProto::DataType_IsValid(onnx_type)) return "type " + std::to_string(onnx_type);
  std::string name =
      onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(onnx_type));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

StatusOr<DataType> constant_type(int onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
      return DataType::kFloat32;
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::BOOL:
      return DataType::kInt64;
    default:
      return unsupported(
          "its elements are " + type_name(onnx_type) +
          "; Tandem reads float32, double, float16, bfloat16, int64, int32 and bool");
  }
}

Status check_dims(const Dims& dims) {
  int64_t count = 1;
  for (int64_t extent : dims) {
    if (extent < 0) return corrupt("it has a negative extent: " + to_string(dims));
    if (extent > kMaxElements) return corrupt("it is too large: " + to_string(dims));
  }
  // Extents of 0 must not hide an overflow: other code multiplies parts of the list.
  for (int64_t extent : dims) {
    if (extent <= 1) continue;
    if (count > kMaxElements / extent) return corrupt("it is too large: " + to_string(dims));
    count *= extent;
  }
  return {};
}

Status check_computed_dims(const Dims& dims) {
  TANDEM_RETURN_IF_ERROR(check_dims(dims));
  if (element_count(dims) <= kMaxComputedElements) return {};
  return unsupported("the constant " + to_string(dims) + " is too large");
}

StatusOr<HostTensor> to_host_tensor(const onnx::TensorProto& proto, ExternalData& files) {
  StatusOr<HostTensor> tensor = read_any(proto, files);
  if (tensor.ok()) return tensor;
  return tensor.status().with_context(
      "tensor '" + (proto.name().empty() ? std::string("(no name)") : proto.name()) + "'");
}

}  // namespace tandem
