// What runs must give, by the reference interpreter.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/reference.h"

namespace tandem::testing {

// The right answers, and how far floats may be off them. What rounding the result of every operator
// to float does to the outputs tells how much the graph amplifies errors.
struct Answers {
  std::vector<HostTensor> inputs;
  std::vector<ReferenceTensor> outputs;
  std::vector<double> tolerances;  // by output
};

inline Answers answers_for(const Graph& graph, std::vector<HostTensor> inputs) {
  Answers answers;
  answers.inputs = std::move(inputs);
  const std::vector<ReferenceTensor> exact = reference(graph, answers.inputs);
  std::vector<ReferenceTensor> rounded(graph.tensors().size());
  for (size_t t = 0; t < rounded.size(); ++t) {
    if (graph.tensor(static_cast<TensorId>(t)).producer == kNone) rounded[t] = exact[t];
  }
  for (size_t id = 0; id < graph.operators().size(); ++id) {
    const Operator& op = graph.op(static_cast<OperatorId>(id));
    std::vector<const ReferenceTensor*> operands;
    for (TensorId input : op.inputs) operands.push_back(&rounded[input]);
    rounded[op.output] = reference(graph, static_cast<OperatorId>(id), operands);
    for (double& value : rounded[op.output].values) value = static_cast<float>(value);
  }
  for (TensorId id : graph.outputs()) {
    double worst = 0;
    for (size_t n = 0; n < exact[id].values.size(); ++n) {
      worst = std::max(worst, std::abs(exact[id].values[n] - rounded[id].values[n]));
    }
    answers.outputs.push_back(exact[id]);
    answers.tolerances.push_back(1e-5 + 50 * worst);
  }
  return answers;
}

inline void expect_answers(const Answers& answers, const std::vector<HostTensor>& outputs) {
  ASSERT_EQ(outputs.size(), answers.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t n = 0; n < answers.outputs[i].values.size(); ++n) {
      ASSERT_NEAR(outputs[i].data<float>()[n], answers.outputs[i].values[n], answers.tolerances[i])
          << "output " << i << ", element " << n;
    }
  }
}

}  // namespace tandem::testing
