// Builds graphs of one operator, with random values.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/lane/opencl/operator_cases.h"

namespace tandem::opencl {

inline constexpr Layout kImages{Order::kChannelsLast, true};
inline constexpr Layout kRows{Order::kRowMajor, true};
inline constexpr Layout kDense{Order::kRowMajor, false};

inline HostTensor random_tensor(const Dims& dims, uint32_t seed, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  HostTensor tensor(DataType::kFloat32, dims);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.data<float>()[i] = uniform(generator);
  return tensor;
}

class Builder {
 public:
  explicit Builder(std::string name) { case_.name = std::move(name); }

  TensorId input(const Dims& dims, Layout layout, float low = -1, float high = 1) {
    const uint32_t seed = static_cast<uint32_t>(case_.inputs.size()) + 1;
    case_.inputs.push_back(random_tensor(dims, seed, low, high));
    return case_.graph.add_input(fmt::format("in{}", seed), DataType::kFloat32, dims, layout);
  }
  TensorId indices(const Dims& dims, std::vector<int64_t> values) {
    case_.inputs.push_back(HostTensor::ints(dims, std::move(values)));
    return case_.graph.add_input("indices", DataType::kInt64, dims, kRows);
  }
  TensorId constant(const Dims& dims) {
    const uint32_t seed = 100 + constants_++;
    return case_.graph.add_constant(fmt::format("w{}", seed), random_tensor(dims, seed));
  }
  Case finish(Attributes attributes, std::vector<TensorId> inputs, Layout layout, Dims dims = {}) {
    const auto output =
        case_.graph.add("op", std::move(attributes), std::move(inputs), std::move(dims), layout);
    if (!output.ok()) ADD_FAILURE() << case_.name << ": " << output.status().to_string();
    if (output.ok()) case_.graph.mark_output(*output);
    return std::move(case_);
  }

 private:
  Case case_;
  uint32_t constants_ = 0;
};

}  // namespace tandem::opencl
