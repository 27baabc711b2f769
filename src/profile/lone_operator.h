// Operators of networks by themselves: what is profiled.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tandem {

struct Operand {
  DataType type = DataType::kFloat32;
  Dims dims;
  Layout layout;
  bool constant = false;
  std::shared_ptr<const HostTensor> value;  // of integer constants, which say where to read
};

// An operator with all that its time depends on, but for the values of floats.
struct LoneOperator {
  Attributes attributes;
  std::vector<Operand> inputs;
  Dims dims;  // of the output
  Layout layout;
};

LoneOperator lone_operator(const Graph& graph, OperatorId op);

using ProfileRandom = std::mt19937_64;  // the same numbers everywhere
double uniform(ProfileRandom& random, double low, double high);

// An operator of the same kind whose extents differ by random factors, from a half to two each:
// channels and features mostly multiples of 8, as networks have them; rows of linear layers any
// from 1 to 512. Nothing where the kind, or this operator, leaves no freedom.
std::optional<LoneOperator> perturbed(const LoneOperator& op, ProfileRandom& random);

// Values for constants, shared by those of equal extents.
class ConstantPool {
 public:
  // `filled` false: no memory, for graphs that are looked at only.
  explicit ConstantPool(bool filled) : filled_(filled) {}
  std::shared_ptr<const HostTensor> get(const Dims& dims);

 private:
  const bool filled_;
  std::map<Dims, std::shared_ptr<const HostTensor>> values_;
};

// Where an operator is in a graph of lone ones.
struct AddedOperator {
  OperatorId op = kNone;
  // Make its inputs afresh: run just before, they leave caches as the producers of its inputs do in
  // a network.
  std::vector<OperatorId> writers;
};
StatusOr<AddedOperator> add_to(Graph& graph, const LoneOperator& op, const std::string& name,
                               ConstantPool& constants);

}  // namespace tandem
