// Einsum: products and sums over labelled axes, as batched matrix products.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "graph/passes/copies.h"
#include "import/onnx/lowerings.h"

namespace tandem {
namespace {

// A label per axis. What an ellipsis stands for gets labels of its own, from kEllipsis on.
using Labels = std::vector<int>;
constexpr int kEllipsis = 256;

struct Operand {
  Value value;
  Labels labels;
};

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// Axes of the ellipsis are counted from the last: operands broadcast there.
StatusOr<Labels> read_term(const std::string& term, int ellipsis_rank) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.') {
      if (term.substr(i, 3) != "...") return invalid_argument("a stray '.' in its equation");
      for (int d = ellipsis_rank; d-- > 0;) labels.push_back(kEllipsis + d);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(static_cast<unsigned char>(term[i]));
    } else {
      return invalid_argument("its equation has the character '" + std::string(1, term[i]) + "'");
    }
  }
  return labels;
}

int letters(const std::string& term) {
  return static_cast<int>(
      std::count_if(term.begin(), term.end(), [](unsigned char c) { return std::isalpha(c); }));
}

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

// Without "->" the output has the labels that occur once, in alphabetical order.
Labels usual_output(const std::vector<Labels>& inputs) {
  std::map<int, int> occurrences;
  for (const Labels& labels : inputs) {
    for (int label : labels) ++occurrences[label];
  }
  Labels output;
  for (auto entry = occurrences.rbegin(); entry != occurrences.rend(); ++entry) {
    if (entry->first >= kEllipsis) output.push_back(entry->first);
  }
  for (const auto& [label, count] : occurrences) {
    if (label < kEllipsis && count == 1) output.push_back(label);
  }
  return output;
}

StatusOr<Equation> read_equation(Node& node) {
  std::string text = node.text("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (terms.size() != static_cast<size_t>(node.inputs())) {
    return invalid_argument("its equation '" + text + "' has " + std::to_string(terms.size()) +
                            " terms for " + std::to_string(node.inputs()) + " operands");
  }
  Equation equation;
  int ellipsis_rank = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!node.has(static_cast<int>(i))) return invalid_argument("an operand is missing");
    const int rank = node.value(static_cast<int>(i)).rank();
    const bool ellipsis = terms[i].find('.') != std::string::npos;
    const int own = ellipsis ? rank - letters(terms[i]) : 0;
    TANDEM_ASSIGN_OR_RETURN(const Labels labels, read_term(terms[i], own));
    if (static_cast<int>(labels.size()) != rank) {
      return invalid_argument("the term '" + terms[i] + "' does not fit " +
                              to_string(node.value(static_cast<int>(i)).dims));
    }
    ellipsis_rank = std::max(ellipsis_rank, own);
    equation.inputs.push_back(labels);
  }
  if (arrow == std::string::npos) {
    equation.output = usual_output(equation.inputs);
  } else {
    TANDEM_ASSIGN_OR_RETURN(equation.output, read_term(text.substr(arrow + 2), ellipsis_rank));
  }
  return equation;
}

// The extents of labels; an extent of 1 broadcasts.
using Extents = std::map<int, int64_t>;

StatusOr<Extents> read_extents(const std::vector<Operand>& operands, const Labels& output) {
  Extents extents;
  for (const Operand& operand : operands) {
    for (size_t d = 0; d < operand.labels.size(); ++d) {
      if (std::count(operand.labels.begin(), operand.labels.end(), operand.labels[d]) > 1) {
        return unsupported("a label that occurs twice in one term (a diagonal)");
      }
      int64_t& extent = extents.try_emplace(operand.labels[d], 1).first->second;
      const int64_t own = operand.value.dims[d];
      if (own != extent && own != 1 && extent != 1) {
        return invalid_argument("a label has the extents " + std::to_string(extent) + " and " +
                                std::to_string(own));
      }
      extent = std::max(extent, own);
    }
  }
  for (int label : output) {
    if (!extents.contains(label) || std::count(output.begin(), output.end(), label) > 1) {
      return invalid_argument("its output has a label that no operand has, or one twice");
    }
  }
  return extents;
}

// The operand with its axes in the order of `labels`. Those that it lacks are 1.
StatusOr<Operand> arrange(Node& node, const Operand& x, const Labels& labels,
                          const std::string& suffix) {
  std::vector<int> permutation;
  Dims permuted;
  Dims dims;
  for (int label : labels) {
    const auto found = std::find(x.labels.begin(), x.labels.end(), label);
    if (found == x.labels.end()) {
      dims.push_back(1);
      continue;
    }
    permutation.push_back(static_cast<int>(found - x.labels.begin()));
    permuted.push_back(x.value.dims[permutation.back()]);
    dims.push_back(permuted.back());
  }
  Operand y = {x.value, labels};
  if (!std::is_sorted(permutation.begin(), permutation.end())) {
    TANDEM_ASSIGN_OR_RETURN(y.value, node.emit(permutation_copy(permutation), {x.value}, permuted,
                                               suffix + "_permuted"));
  }
  TANDEM_ASSIGN_OR_RETURN(y.value, node.reshape(y.value, dims, suffix + "_axes"));
  return y;
}

// Sums over the axes that neither `kept` nor, where it is given, `other` has.
StatusOr<Operand> sum_unused(Node& node, const Operand& x, const Labels& kept, const Labels& other,
                             const std::string& suffix) {
  ReduceAttributes sum = {.kind = ReduceAttributes::Kind::kSum, .axes = {}, .keep_dims = false};
  Labels labels;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    if (contains(kept, x.labels[d]) || contains(other, x.labels[d])) {
      labels.push_back(x.labels[d]);
    } else {
      sum.axes.push_back(static_cast<int>(d));
    }
  }
  if (sum.axes.empty()) return x;
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(sum, {x.value}, {}, suffix + "_sum"));
  return Operand{std::move(y), std::move(labels)};
}

struct Groups {
  Labels batch;
  Labels rows;     // of the left operand alone
  Labels columns;  // of the right operand alone
  Labels sums;     // of both, not kept
};

// In the order of `kept`, so that as little as possible is left to permute.
Groups group_labels(const Operand& a, const Operand& b, const Labels& kept) {
  Groups groups;
  for (int label : kept) {
    const bool in_a = contains(a.labels, label);
    const bool in_b = contains(b.labels, label);
    if (in_a && in_b) groups.batch.push_back(label);
    if (in_a && !in_b) groups.rows.push_back(label);
    if (!in_a && in_b) groups.columns.push_back(label);
  }
  for (int label : a.labels) {
    if (!contains(kept, label)) groups.sums.push_back(label);
  }
  return groups;
}

int64_t count_of(const Labels& labels, const Extents& extents) {
  int64_t count = 1;
  for (int label : labels) count *= extents.at(label);
  return count;
}

// The operand as [batch..., rows, columns], the last two of several axes each.
StatusOr<Value> as_matrices(Node& node, const Operand& x, const Labels& batch, const Labels& rows,
                            const Labels& columns, const Extents& extents,
                            const std::string& suffix) {
  Labels order = batch;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  TANDEM_ASSIGN_OR_RETURN(const Operand arranged, arrange(node, x, order, suffix));
  Dims dims(arranged.value.dims.begin(), arranged.value.dims.begin() + batch.size());
  dims.push_back(count_of(rows, extents));
  dims.push_back(count_of(columns, extents));
  if (element_count(dims) != element_count(arranged.value.dims)) {
    return unsupported("an extent of 1 that broadcasts, outside the batch");
  }
  return node.reshape(arranged.value, dims, suffix);
}

// The product of two operands with the labels in `kept`, in an order that suits.
StatusOr<Operand> multiply(Node& node, Operand a, Operand b, const Labels& kept,
                           const Extents& extents, const std::string& suffix) {
  TANDEM_ASSIGN_OR_RETURN(a, sum_unused(node, a, kept, b.labels, suffix + "left"));
  TANDEM_ASSIGN_OR_RETURN(b, sum_unused(node, b, kept, a.labels, suffix + "right"));
  Groups groups = group_labels(a, b, kept);
  // The operand whose axes come first is the left one; weights are always the right one.
  const auto position = [&kept](const Labels& labels) {
    return labels.empty() ? kept.end() : std::find(kept.begin(), kept.end(), labels[0]);
  };
  if (!b.value.constant && (a.value.constant || position(groups.columns) < position(groups.rows))) {
    std::swap(a, b);
    groups = group_labels(a, b, kept);
  }
  TANDEM_ASSIGN_OR_RETURN(const Value left, as_matrices(node, a, groups.batch, groups.rows,
                                                        groups.sums, extents, suffix + "left"));
  TANDEM_ASSIGN_OR_RETURN(
      const Value right,
      as_matrices(node, b, groups.batch, groups.sums, groups.columns, extents, suffix + "right"));
  TANDEM_ASSIGN_OR_RETURN(Value y, node.emit(MatMulAttributes{}, {left, right}, {}, suffix));
  Operand result = {std::move(y), groups.batch};
  Dims dims;
  for (const Labels* labels : {&groups.rows, &groups.columns}) {
    result.labels.insert(result.labels.end(), labels->begin(), labels->end());
  }
  for (int label : result.labels) dims.push_back(extents.at(label));
  TANDEM_ASSIGN_OR_RETURN(result.value, node.reshape(result.value, dims, suffix + "output"));
  return result;
}

Status lower_einsum(Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Equation equation, read_equation(node));
  std::vector<Operand> operands;
  for (int i = 0; i < node.inputs(); ++i) {
    if (node.value(i).type != DataType::kFloat32) return unsupported("sums of integers");
    operands.push_back({node.value(i), equation.inputs[i]});
  }
  TANDEM_ASSIGN_OR_RETURN(const Extents extents, read_extents(operands, equation.output));
  Operand result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    Labels kept = equation.output;  // and what later operands have
    for (size_t k = i + 1; k < operands.size(); ++k) {
      for (int label : operands[k].labels) {
        if (!contains(kept, label)) kept.push_back(label);
      }
    }
    const std::string suffix = i + 1 < operands.size() ? std::to_string(i) : "";
    TANDEM_ASSIGN_OR_RETURN(result, multiply(node, result, operands[i], kept, extents, suffix));
  }
  TANDEM_ASSIGN_OR_RETURN(result, sum_unused(node, result, equation.output, {}, "result"));
  TANDEM_ASSIGN_OR_RETURN(result, arrange(node, result, equation.output, "result"));
  node.set_output(0, std::move(result.value));
  return {};
}

constexpr Lowering kLowerings[] = {
    {"Einsum", 28, lower_einsum},
};

}  // namespace

std::span<const Lowering> einsum_lowerings() { return kLowerings; }

}  // namespace tandem
