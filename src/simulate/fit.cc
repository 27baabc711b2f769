#include "simulate/fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lane/sim/slice_time.h"

namespace tandem::simulate {
namespace {

constexpr double kFirstStep = 0.4;  // in logarithms
constexpr double kLastStep = 0.01;

// What other libraries' kernels are measured by.
constexpr char kReferenceRuntime[] = "runtimes.tflite.";

bool is_fixed(const std::string& path) {
  if (!path.starts_with(kReferenceRuntime)) return false;
  const std::string name = path.substr(sizeof(kReferenceRuntime) - 1);
  return name != "cpu_operator_cycles" && name != "cpu_fork_us" && name != "static_share";
}

// What makes sense physically.
struct Bounds {
  const char* name;
  double least;
  double most;
};
constexpr std::array<Bounds, 11> kBounds = {{{"_efficiency", 0.005, 1},
                                             {"static_share", 0.01, 1},
                                             {"interference", 0.01, 1},
                                             {"stream_gbps", 1, 30},
                                             {"weight_reuse", 1, 256},
                                             {"resident_waves", 1, 64},
                                             {"latency_cycles", 50, 2000},
                                             {"kernel_us", 1, 500},
                                             {"operator_us", 0.5, 1000},
                                             {"inference_us", 50, 20000},
                                             {"cpu_winograd", 1, 4}}};

Bounds bounds_of(const std::string& path) {
  for (const Bounds& bounds : kBounds) {
    if (path.find(bounds.name) != std::string::npos) return bounds;
  }
  return {"", 1e-3, 1e6};
}

// What a coefficient costs that is a factor of e away from where it started: next to nothing, but
// more than what no entry tells.
constexpr double kRidge = 2e-4;

double ridge(double value, double start) { return kRidge * std::pow(std::log(value / start), 2); }

struct Parameter {
  std::string path;
  double* value = nullptr;
  double start = 0;
  double step = kFirstStep;
  std::vector<size_t> cases;  // that depend on it
};

class Fitter {
 public:
  Fitter(Cases cases, sim::Coefficients start)
      : cases_(std::move(cases)), coefficients_(std::move(start)) {}

  Status prepare();
  StatusOr<double> round();
  double objective() const;
  bool done() const;
  const sim::Coefficients& coefficients() const { return coefficients_; }

 private:
  double loss(const Case& which) const {
    return std::abs(std::log(cases_.simulate_us(which) / which.entry->value));
  }
  // Of the cases that depend on the parameter.
  double partial(const Parameter& parameter, std::vector<double>* losses) const;
  StatusOr<bool> try_value(Parameter& parameter, double value);
  bool depends(const Case& which, const std::string& path) const;

  Cases cases_;
  sim::Coefficients coefficients_;
  std::vector<double> weights_;  // by case
  std::vector<double> losses_;
  std::vector<Parameter> parameters_;
};

bool Fitter::depends(const Case& which, const std::string& path) const {
  const sim::PlatformModel& model = cases_.models[which.model];
  const bool gpu = which.cores.empty();
  const size_t dot = path.find('.');
  const std::string kind = path.substr(0, dot);
  std::string name = path.substr(dot + 1);
  if (kind != "interference") name = name.substr(0, name.find('.'));
  const auto like = [&](const std::string& type) {
    const auto other = coefficients_.like.find(type);
    return (other == coefficients_.like.end() ? type : other->second) == name;
  };
  if (kind == "runtimes") {
    const bool for_gpu = path.find(".gpu_") != std::string::npos;
    return model.runtime_name == name && gpu == for_gpu;
  }
  if (kind == "gpus") return gpu && like(model.gpu.generation);
  if (kind == "interference") return sim::core_count(which.cores) > 1 && like(model.name);
  return std::any_of(which.cores.begin(), which.cores.end(), [&](const sim::CoreGroup& group) {
    return like(model.clusters[group.cluster].core);
  });
}

Status Fitter::prepare() {
  std::erase_if(cases_.cases, [](const Case& which) {
    return which.entry->held_out || which.entry->kind == EntryKind::kSync;
  });
  if (cases_.cases.empty()) return invalid_argument("all entries are held out");
  TANDEM_RETURN_IF_ERROR(cases_.resolve(coefficients_));
  std::map<std::string, int> sizes;
  const auto key = [](const Entry& e) {
    return std::string(to_string(e.kind)) + " " + e.platform + " " + e.lanes + " " + e.runtime;
  };
  for (const Case& which : cases_.cases) ++sizes[key(*which.entry)];
  double total = 0;
  for (const Case& which : cases_.cases) {
    weights_.push_back(1 / std::sqrt(sizes[key(*which.entry)]));
    total += weights_.back();
  }
  for (double& weight : weights_) weight /= total;
  for (const Case& which : cases_.cases) losses_.push_back(loss(which));
  sim::visit_numbers(coefficients_, [&](const std::string& path, double& value) {
    if (is_fixed(path)) return;
    Parameter parameter{path, &value, value, kFirstStep, {}};
    for (size_t i = 0; i < cases_.cases.size(); ++i) {
      if (depends(cases_.cases[i], path)) parameter.cases.push_back(i);
    }
    if (!parameter.cases.empty()) parameters_.push_back(std::move(parameter));
  });
  return {};
}

double Fitter::objective() const {
  double sum = 0;
  for (size_t i = 0; i < losses_.size(); ++i) sum += weights_[i] * losses_[i];
  return sum;
}

double Fitter::partial(const Parameter& parameter, std::vector<double>* losses) const {
  double sum = 0;
  losses->clear();
  for (size_t i : parameter.cases) {
    losses->push_back(loss(cases_.cases[i]));
    sum += weights_[i] * losses->back();
  }
  return sum;
}

StatusOr<bool> Fitter::try_value(Parameter& parameter, double value) {
  const Bounds bounds = bounds_of(parameter.path);
  if (value < bounds.least || value > bounds.most) return false;
  const double before = *parameter.value;
  double old_sum = ridge(before, parameter.start);
  for (size_t i : parameter.cases) old_sum += weights_[i] * losses_[i];
  *parameter.value = value;
  TANDEM_RETURN_IF_ERROR(cases_.resolve(coefficients_));
  std::vector<double> losses;
  if (partial(parameter, &losses) + ridge(value, parameter.start) < old_sum * (1 - 1e-9)) {
    for (size_t i = 0; i < losses.size(); ++i) losses_[parameter.cases[i]] = losses[i];
    return true;
  }
  *parameter.value = before;
  TANDEM_RETURN_IF_ERROR(cases_.resolve(coefficients_));
  return false;
}

StatusOr<double> Fitter::round() {
  for (Parameter& parameter : parameters_) {
    if (parameter.step < kLastStep) continue;
    bool better = false;
    for (double direction : {1.0, -1.0}) {
      const double value = *parameter.value * std::exp(direction * parameter.step);
      TANDEM_ASSIGN_OR_RETURN(better, try_value(parameter, value));
      if (better) break;
    }
    if (!better) parameter.step /= 2;
  }
  return objective();
}

bool Fitter::done() const {
  return std::all_of(parameters_.begin(), parameters_.end(),
                     [](const Parameter& p) { return p.step < kLastStep; });
}

}  // namespace

StatusOr<Fit> fit(const Published& published, const sim::Coefficients& start,
                  const FitOptions& options, const std::function<void(int, double)>& progress) {
  TANDEM_ASSIGN_OR_RETURN(Cases cases, make_cases(published));
  Fitter fitter(std::move(cases), start);
  TANDEM_RETURN_IF_ERROR(fitter.prepare());
  Fit fit;
  fit.before = fitter.objective();
  while (fit.rounds < options.rounds && !fitter.done()) {
    TANDEM_ASSIGN_OR_RETURN(fit.after, fitter.round());
    progress(++fit.rounds, fit.after);
  }
  fit.coefficients = fitter.coefficients();
  return fit;
}

}  // namespace tandem::simulate
