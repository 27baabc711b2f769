// The plain meaning of every operator: naive loops in double precision, in no hurry. What every
// lane's kernels, whole and split, are compared with. A NaN among the elements that make up an
// output element makes that element NaN, maxima and clips included: tests mark with NaN what must
// not be read.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tandem {

// A dense row-major tensor of doubles (int64 tensors too: exact up to 2^53).
struct ReferenceTensor {
  Dims dims;
  std::vector<double> values;
};

ReferenceTensor to_reference(const HostTensor& tensor);

double apply(const Activation& activation, double x);

// One operator on dense inputs, in the order of op.inputs.
ReferenceTensor reference(const Graph& graph, OperatorId op,
                          const std::vector<const ReferenceTensor*>& inputs);

// The whole graph; inputs in the order of graph.inputs(). Returns every tensor's value by id
// (constants too).
std::vector<ReferenceTensor> reference(const Graph& graph, const std::vector<HostTensor>& inputs);

}  // namespace tandem
