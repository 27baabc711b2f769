// The one table of operators that drives correctness and speed on every lane: named cases, and a
// source of random ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/reference.h"

namespace tandem::testing {

struct Operand {
  Dims dims{};
  Layout layout{};
  bool constant = false;
  DataType type = DataType::kFloat32;
  // Values are uniform in [low, high); whole numbers in [low, high] for int64.
  double low = -1;
  double high = 1;
};

struct OperatorCase {
  std::string name;  // "conv/3x3_stride2_c24"
  Attributes attributes;
  std::vector<Operand> operands;
  Dims output{};  // where the shape rule cannot derive it
  Layout output_layout{};

  OperatorKind kind() const { return static_cast<OperatorKind>(attributes.index()); }
};

// Every kind with every attribute, at small and odd extents.
const std::vector<OperatorCase>& operator_table();
// A case of any kind, small enough for the reference; the same for the same seed.
OperatorCase random_case(uint64_t seed);

// A graph of that one operator (id 0), and values for its inputs.
struct BuiltCase {
  Graph graph;
  std::vector<HostTensor> inputs;
};
StatusOr<BuiltCase> build(const OperatorCase& operator_case, uint64_t seed);

// What the operator must yield, and how far a float implementation may be off, per element: a
// multiple of float's epsilon that grows with the square root of the number of summands, times the
// sum of their magnitudes. Operators that move elements are exact.
struct Expected {
  ReferenceTensor output;
  std::vector<double> tolerance;
};
Expected expected_output(const BuiltCase& built);

}  // namespace tandem::testing
