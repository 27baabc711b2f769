#include "cli/random_tensor.h"

#include <utility>

#include "zoo/random.h"

namespace tandem::cli {

HostTensor random_tensor(DataType type, Dims dims, std::string_view stream, float limit,
                         uint64_t seed) {
  HostTensor tensor(type, std::move(dims));
  const uint64_t stream_seed = zoo::tensor_seed(seed, stream);
  if (type == DataType::kFloat32) {
    zoo::fill_uniform(stream_seed, -limit, limit,
                      {tensor.data<float>(), static_cast<size_t>(tensor.size())});
  } else {
    zoo::Random random(stream_seed);
    auto* values = tensor.data<int64_t>();
    for (int64_t i = 0; i < tensor.size(); ++i) values[i] = static_cast<int64_t>(random.next() & 1);
  }
  return tensor;
}

HostTensor random_value(const Tensor& tensor) {
  return random_tensor(tensor.type, tensor.dims, tensor.name);
}

}  // namespace tandem::cli
