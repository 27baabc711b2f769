#include "import/onnx/proto_tensor.h"

#include <bit>
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

template <typename To, typename From>
void convert(const From* from, HostTensor& to) {
  To* out = to.data<To>();
  for (int64_t i = 0; i < to.size(); ++i) out[i] = static_cast<To>(from[i]);
}

// `Stored` is the element type of raw_data, `To` Tandem's, `field` the typed alternative.
template <typename Stored, typename To, typename Field>
StatusOr<HostTensor> read(const onnx::TensorProto& proto, DataType type, const Field& field) {
  HostTensor tensor;
  tensor.type = type;
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  const int64_t count = element_count(tensor.dims);
  if (proto.has_raw_data()) {
    const std::string& raw = proto.raw_data();
    TANDEM_RETURN_IF_ERROR(
        expect_count("raw_data", raw.size(), count * int64_t{sizeof(Stored)}, "bytes"));
    if constexpr (std::is_same_v<Stored, To>) {
      const auto* bytes = reinterpret_cast<const std::byte*>(raw.data());
      tensor.bytes.assign(bytes, bytes + raw.size());
    } else {
      // raw_data need not be aligned for its element type.
      std::vector<Stored> stored(static_cast<size_t>(count));
      if (count > 0) std::memcpy(stored.data(), raw.data(), raw.size());
      tensor.bytes.resize(static_cast<size_t>(count) * sizeof(To));
      convert<To>(stored.data(), tensor);
    }
    return tensor;
  }
  TANDEM_RETURN_IF_ERROR(
      expect_count("its data", static_cast<size_t>(field.size()), count, "elements"));
  tensor.bytes.resize(static_cast<size_t>(count) * sizeof(To));
  convert<To>(field.data(), tensor);
  return tensor;
}

StatusOr<HostTensor> read_any(const onnx::TensorProto& proto) {
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return unsupported(
        "its data lies in an external file, which Tandem does not read: store the model with its "
        "weights inside (onnx.save_model(model, path, save_as_external_data=False))");
  }
  if (proto.has_segment()) return unsupported("it is stored in segments");
  TANDEM_RETURN_IF_ERROR(check_dims(Dims(proto.dims().begin(), proto.dims().end())));
  TANDEM_ASSIGN_OR_RETURN(const DataType type, constant_type(proto.data_type()));
  switch (proto.data_type()) {
    case onnx::TensorProto::FLOAT:
      return read<float, float>(proto, type, proto.float_data());
    case onnx::TensorProto::DOUBLE:
      return read<double, float>(proto, type, proto.double_data());
    case onnx::TensorProto::INT64:
      return read<int64_t, int64_t>(proto, type, proto.int64_data());
    case onnx::TensorProto::INT32:
      return read<int32_t, int64_t>(proto, type, proto.int32_data());
    default:  // BOOL: constant_type() has excluded the rest. A byte each in raw_data.
      return read<uint8_t, int64_t>(proto, type, proto.int32_data());
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
      return DataType::kFloat32;
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::BOOL:
      return DataType::kInt64;
    default:
      return unsupported("its elements are " + type_name(onnx_type) +
                         "; Tandem reads float32, double, int64, int32 and bool");
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

StatusOr<HostTensor> to_host_tensor(const onnx::TensorProto& proto) {
  StatusOr<HostTensor> tensor = read_any(proto);
  if (tensor.ok()) return tensor;
  return tensor.status().with_context(
      "tensor '" + (proto.name().empty() ? std::string("(no name)") : proto.name()) + "'");
}

}  // namespace tandem
