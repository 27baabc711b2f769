#include "predict/slice_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace tandem::predict {
namespace {

constexpr const char* kAllFamilies = "all";
constexpr const char* kSlowdown = "slowdown";

// Families that hardly compute.
bool moves_memory(SliceFamily family) {
  return family == SliceFamily::kElementwise || family == SliceFamily::kCopy ||
         family == SliceFamily::kPool || family == SliceFamily::kReduce ||
         family == SliceFamily::kDepthwise;
}

// What the line that trees correct is made of. `device`: of an OpenCL lane.
std::vector<std::string> cost_terms(SliceKnowledge knowledge, SliceFamily family, bool device) {
  if (knowledge == SliceKnowledge::kFlops) return {"flops"};
  if (knowledge == SliceKnowledge::kArguments) {
    return {"flops", "in_bytes", "weight_bytes", "out_bytes", "costly_results"};
  }
  switch (family) {
    case SliceFamily::kConv3x3:
      // Fewer terms extrapolate better where arithmetic dominates.
      if (!device) return {"unit_flops", "bytes", "costly_results"};
      [[fallthrough]];
    case SliceFamily::kConv1x1:
    case SliceFamily::kConvOther:
    case SliceFamily::kConvGrouped:
      return {"unit_flops",        "in_bytes",      "packed_bytes", "out_bytes",
              "costly_results",    "cold_bytes",    "transformed",  "weight_traffic_l2",
              "weight_traffic_l3", "input_traffic", "in_lines",     "out_lines"};
    default:
      break;
  }
  std::vector<std::string> terms = {"unit_flops",      "in_bytes",       "weight_bytes",
                                    "out_bytes",       "overflow_bytes", "costly_results",
                                    "input_pieces",    "rows",           "output_pieces",
                                    "gap_bytes",       "window_pixels",  "evicted_bytes",
                                    "rearranged_bytes"};
  if (moves_memory(family)) {
    terms.insert(terms.end(), {"in_lines", "out_lines", "evicted_lines", "runs"});
  }
  return terms;
}

// Linear layers have few shapes: one that is far off from the others' line need not be a mistake.
Objective objective_of(SliceFamily family) {
  return family == SliceFamily::kLinear ? Objective::kSquaredError : Objective::kRobustError;
}

RegressorOptions regressor_options(const SlicePredictorOptions& options, SliceFamily family,
                                   bool device) {
  RegressorOptions result{.cost_terms = cost_terms(options.knowledge, family, device),
                          .objective = objective_of(family),
                          .boosting = options.boosting};
  result.trees = options.knowledge != SliceKnowledge::kFlops;
  if (options.knowledge == SliceKnowledge::kArguments) result.class_column = "circumstances";
  if (options.knowledge == SliceKnowledge::kKernels) result.class_column = "regime";
  return result;
}

// Samples by index, with what regressors take.
struct Selection {
  std::vector<size_t> rows;
  std::vector<double> values;
  std::vector<std::string> groups;

  size_t shapes() const { return std::set<std::string>(groups.begin(), groups.end()).size(); }
  void add(size_t row, double value, const std::string& group) {
    rows.push_back(row);
    values.push_back(value);
    groups.push_back(group);
  }
};

// Which shapes differ by little: union-find over those that agree in all that is no extent.
class ShapeClasses {
 public:
  size_t add(const SliceCase& slice) {
    const auto [entry, fresh] = index_.try_emplace(shape_key(slice), parents_.size());
    if (!fresh) return entry->second;
    const size_t id = entry->second;
    parents_.push_back(id);
    extents_.push_back({slice.batch, slice.height, slice.width, slice.channels, slice.in_height,
                        slice.in_width, slice.in_channels, slice.reduced});
    std::vector<size_t>& same = by_kind_[rest_of(slice)];
    for (const size_t other : same) {
      if (are_near(extents_[id], extents_[other])) parents_[root(id)] = root(other);
    }
    same.push_back(id);
    return id;
  }
  size_t root(size_t id) const {
    while (parents_[id] != id) id = parents_[id];
    return id;
  }

 private:
  using Extents = std::array<int64_t, 8>;
  static std::string rest_of(const SliceCase& c) {
    return fmt::format("{} {} {} {}x{} {}x{} {} {}", c.kind, c.variant, to_string(c.family),
                       c.kernel_height, c.kernel_width, c.stride_height, c.stride_width,
                       c.dilation_height, c.groups > 1);
  }
  static bool are_near(const Extents& a, const Extents& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (16 * std::abs(a[i] - b[i]) > std::max(a[i], b[i])) return false;
    }
    return true;
  }

  std::map<std::string, size_t> index_;
  std::map<std::string, std::vector<size_t>> by_kind_;
  std::vector<size_t> parents_;
  std::vector<Extents> extents_;
};

}  // namespace

std::vector<std::string> slice_feature_names() { return slice_frame().names(); }

std::vector<std::string> shape_groups(std::span<const SliceSample> samples) {
  ShapeClasses classes;
  std::vector<size_t> ids;
  for (const SliceSample& sample : samples) ids.push_back(classes.add(sample.slice));
  std::vector<std::string> groups;
  for (const size_t id : ids) groups.push_back(fmt::to_string(classes.root(id)));
  return groups;
}

Frame SlicePredictor::columns_of(Frame frame) const {
  if (knowledge_ == SliceKnowledge::kKernels) return frame;
  return frame.with_features(is_argument);
}

StatusOr<Frame> SlicePredictor::frame_of(std::span<const SliceCase* const> slices) const {
  Frame frame = slice_frame();
  std::vector<double> row;
  row.reserve(frame.columns());
  for (const SliceCase* slice : slices) {
    row.clear();
    append_slice_row(*slice, &row);
    // Its key takes longer to write than the row.
    if (Status added = frame.add(row); !added.ok()) {
      return std::move(added).with_context("a slice of " + shape_key(*slice));
    }
  }
  return columns_of(std::move(frame));
}

StatusOr<SlicePredictor> SlicePredictor::fit(std::span<const SliceSample* const> samples,
                                             std::span<const std::string> groups,
                                             const SlicePredictorOptions& options) {
  SlicePredictor predictor;
  predictor.knowledge_ = options.knowledge;
  std::vector<const SliceCase*> slices;
  std::map<SliceFamily, Selection> families;
  Selection all;
  Selection loaded;
  for (size_t i = 0; i < samples.size(); ++i) {
    const SliceSample& sample = *samples[i];
    slices.push_back(&sample.slice);
    if (sample.slice.load != OtherLoad::kNone) {
      if (sample.alone_us > 0) loaded.add(i, sample.us / sample.alone_us, groups[i]);
      continue;
    }
    families[sample.slice.family].add(i, sample.us, groups[i]);
    all.add(i, sample.us, groups[i]);
  }
  TANDEM_ASSIGN_OR_RETURN(const Frame frame, predictor.frame_of(slices));
  const auto fit = [&](const Selection& selection, const RegressorOptions& regression) {
    return Regressor::fit(frame.with_rows(selection.rows), selection.values, selection.groups,
                          regression);
  };
  const bool device = !slices.empty() && slices.front()->lane.kind == "opencl";
  bool some_are_few = families.size() < static_cast<size_t>(kSliceFamilies);
  for (const auto& [family, selection] : families) {
    if (selection.rows.size() < kFewestRows || selection.shapes() < kFewestShapes) {
      some_are_few = true;
      continue;
    }
    TANDEM_ASSIGN_OR_RETURN(Regressor regressor,
                            fit(selection, regressor_options(options, family, device)));
    predictor.families_.emplace(family, std::move(regressor));
  }
  if (some_are_few && !all.rows.empty()) {
    TANDEM_ASSIGN_OR_RETURN(predictor.all_families_,
                            fit(all, regressor_options(options, SliceFamily::kMatMul, device)));
  }
  if (loaded.rows.size() >= kFewestRows && options.knowledge != SliceKnowledge::kFlops) {
    // A constant that the trees correct.
    RegressorOptions regression{.cost_terms = {}, .boosting = options.boosting};
    TANDEM_ASSIGN_OR_RETURN(predictor.slowdown_, fit(loaded, regression));
  }
  return predictor;
}

StatusOr<const Regressor*> SlicePredictor::model_of(SliceFamily family) const {
  const auto own = families_.find(family);
  if (own != families_.end()) return &own->second;
  if (all_families_) return &*all_families_;
  return failed_precondition(
      fmt::format("the predictor of this lane has seen no {}: profile more, and train again",
                  to_string(family)));
}

StatusOr<std::vector<double>> SlicePredictor::predict(
    std::span<const SliceCase* const> slices) const {
  std::map<SliceFamily, std::vector<size_t>> families;
  for (size_t i = 0; i < slices.size(); ++i) families[slices[i]->family].push_back(i);
  std::vector<double> times(slices.size());
  for (const auto& [family, rows] : families) {
    TANDEM_ASSIGN_OR_RETURN(const Regressor* const regressor, model_of(family));
    std::vector<const SliceCase*> asked;
    for (const size_t row : rows) asked.push_back(slices[row]);
    TANDEM_ASSIGN_OR_RETURN(const Frame frame, frame_of(asked));
    TANDEM_ASSIGN_OR_RETURN(const std::vector<double> predicted, regressor->predict(frame));
    for (size_t i = 0; i < rows.size(); ++i) times[rows[i]] = predicted[i];
  }
  return times;
}

StatusOr<std::vector<double>> SlicePredictor::slowdowns(
    std::span<const SliceCase* const> slices) const {
  std::vector<double> result(slices.size(), 1);
  if (!slowdown_) return result;
  TANDEM_ASSIGN_OR_RETURN(const Frame frame, frame_of(slices));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<double> predicted, slowdown_->predict(frame));
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i]->load != OtherLoad::kNone) result[i] = std::max(1.0, predicted[i]);
  }
  return result;
}

StatusOr<SlicePredictor::Prediction> SlicePredictor::predict_one(const SliceCase& slice,
                                                                 bool with_slowdowns) const {
  TANDEM_ASSIGN_OR_RETURN(const Regressor* const regressor, model_of(slice.family));
  TANDEM_ASSIGN_OR_RETURN(const Frame frame, frame_of(std::array{&slice}));
  Prediction result;
  result.us = regressor->predict(frame.row(0));
  if (!with_slowdowns || !slowdown_) return result;
  std::vector<float> row(frame.row(0).begin(), frame.row(0).end());
  const int load = frame.column(kLoadFeature);
  row[load] = static_cast<float>(OtherLoad::kMemory);
  result.slowdown_memory = std::max(1.0, slowdown_->predict(row));
  row[load] = static_cast<float>(OtherLoad::kCompute);
  result.slowdown_compute = std::max(1.0, slowdown_->predict(row));
  return result;
}

std::map<SliceFamily, TrainingStatistics> SlicePredictor::statistics() const {
  std::map<SliceFamily, TrainingStatistics> all;
  for (const auto& [family, regressor] : families_) all[family] = regressor.statistics();
  return all;
}

std::map<std::string, SharedText> SlicePredictor::to_texts(const Fingerprints& made_for) const {
  std::map<std::string, SharedText> texts;
  for (const auto& [family, regressor] : families_) {
    texts[to_string(family)] = regressor.to_packed(made_for);
  }
  if (all_families_) texts[kAllFamilies] = all_families_->to_packed(made_for);
  if (slowdown_) texts[kSlowdown] = slowdown_->to_packed(made_for);
  return texts;
}

StatusOr<SlicePredictor> SlicePredictor::parse(const std::map<std::string, SharedText>& texts,
                                               const Regressor::Expectation& expected) {
  SlicePredictor predictor;
  for (const auto& [name, text] : texts) {
    StatusOr<Regressor> regressor = Regressor::parse(text.view(), expected);
    if (!regressor.ok()) return regressor.status().with_context("predictor of " + name);
    if (name == kAllFamilies) {
      predictor.all_families_ = std::move(*regressor);
    } else if (name == kSlowdown) {
      predictor.slowdown_ = std::move(*regressor);
    } else {
      TANDEM_ASSIGN_OR_RETURN(const SliceFamily family, parse_slice_family(name));
      predictor.families_.emplace(family, std::move(*regressor));
    }
  }
  return predictor;
}

}  // namespace tandem::predict
