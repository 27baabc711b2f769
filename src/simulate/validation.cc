#include "simulate/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lane/sim/slice_time.h"
#include "platform/platform_file.h"

namespace tandem::simulate {
namespace {

// Entries closer than this are not ranked: repeats differ as much.
constexpr double kApart = 1.05;

double sync_us(const sim::PlatformModel& model, const Entry& entry) {
  if (entry.workload == "launch") return model.gpu.launch_us;
  const sim::CrossingCost& cost = model.sync.event;
  return entry.lanes == "cpu>gpu" ? cost.cpu_to_gpu : cost.gpu_to_cpu;
}

Status complete(const Published& published, const sim::PlatformModel& model, Case* which) {
  const Entry& entry = *which->entry;
  if (entry.kind == EntryKind::kSync) return {};
  TANDEM_ASSIGN_OR_RETURN(which->cores, parse_cores(model, entry.lanes));
  if (entry.kind == EntryKind::kOperator) {
    TANDEM_ASSIGN_OR_RETURN(which->work, sim::parse_workload(entry.workload));
    return {};
  }
  const auto found = published.networks.find(entry.workload);
  if (found == published.networks.end()) {
    return not_found("no list of operators of network " + entry.workload);
  }
  which->network = &found->second;
  return {};
}

// Whether a ranking of two entries is asked for, and right.
void rank(const Comparison& a, const Comparison& b, Ranking* ranking) {
  const double measured = a.entry->value / b.entry->value;
  if (std::max(measured, 1 / measured) < kApart) return;
  ++ranking->pairs;
  if ((a.simulated < b.simulated) == (measured < 1)) ++ranking->right;
}

// By kind, runtime and workload, what can be ranked.
using Groups = std::map<std::string, std::vector<Comparison>>;

Groups group(const std::vector<Comparison>& comparisons, bool by_platform) {
  Groups groups;
  for (const Comparison& c : comparisons) {
    const Entry& e = *c.entry;
    if (e.kind != EntryKind::kNetwork && e.kind != EntryKind::kOperator) continue;
    const std::string source = e.id.substr(0, e.id.find('/'));
    // ncnn's rows have a line each.
    const std::string table = source.starts_with("ncnn") ? "ncnn" : source;
    groups[fmt::format("{} {} {} {} {}", table, to_string(e.kind), e.runtime, e.workload,
                       by_platform ? e.platform : "")]
        .push_back(c);
  }
  return groups;
}

// Of the CPU entries, the one that was measured fastest; of the GPU entries, all.
std::vector<Comparison> fastest(const std::vector<Comparison>& all) {
  std::vector<Comparison> kept;
  std::map<std::string, Comparison> best;
  for (const Comparison& c : all) {
    if (c.entry->lanes == "gpu") {
      kept.push_back(c);
      continue;
    }
    const auto [found, fresh] = best.try_emplace(c.entry->platform, c);
    if (!fresh && c.entry->value < found->second.entry->value) found->second = c;
  }
  for (const auto& [platform, comparison] : best) kept.push_back(comparison);
  return kept;
}

}  // namespace

double network_us(const sim::PlatformModel& model, const std::vector<sim::CoreGroup>& cores,
                  const Network& network) {
  double us = 0;
  for (const CountedWorkload& each : network) {
    const double once = cores.empty() ? sim::gpu_slice_time(model, each.work).us +
                                            model.gpu_coefficients.operator_us
                                      : sim::cpu_slice_time(model, cores, each.work).us;
    us += once * each.count;
  }
  return cores.empty() ? us + model.gpu_coefficients.inference_us : us;
}

StatusOr<Cases> make_cases(const Published& published) {
  Cases cases;
  std::map<std::string, size_t> known;
  for (const Entry& entry : published.entries) {
    if (entry.kind == EntryKind::kSpeedUp) continue;
    // Synchronisation does not depend on whose kernels run.
    const std::string runtime = entry.kind == EntryKind::kSync ? "tflite" : entry.runtime;
    const auto [found, fresh] =
        known.try_emplace(entry.platform + " " + runtime, cases.models.size());
    if (fresh) {
      StatusOr<sim::PlatformModel> model = load_platform(entry.platform, {.runtime = runtime});
      if (!model.ok()) return model.status().with_context(entry.id);
      cases.models.push_back(std::move(*model));
      cases.runtimes.push_back(runtime);
    }
    Case which;
    which.entry = &entry;
    which.model = found->second;
    TANDEM_RETURN_IF_ERROR(
        complete(published, cases.models[which.model], &which).with_context(entry.id));
    cases.cases.push_back(std::move(which));
  }
  return cases;
}

Status Cases::resolve(const sim::Coefficients& coefficients) {
  for (size_t i = 0; i < models.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(sim::resolve(coefficients, runtimes[i], &models[i]));
  }
  return {};
}

double Cases::simulate_us(const Case& which) const {
  const sim::PlatformModel& platform = models[which.model];
  switch (which.entry->kind) {
    case EntryKind::kNetwork:
      return network_us(platform, which.cores, *which.network);
    case EntryKind::kOperator:
      return which.cores.empty() ? sim::gpu_slice_time(platform, which.work).us
                                 : sim::cpu_slice_time(platform, which.cores, which.work).us;
    default:
      return sync_us(platform, *which.entry);
  }
}

ErrorSummary summarize_errors(const std::vector<Comparison>& comparisons) {
  ErrorSummary summary;
  summary.entries = static_cast<int>(comparisons.size());
  if (comparisons.empty()) return summary;
  std::vector<double> errors;
  std::vector<double> sizes;
  for (const Comparison& c : comparisons) {
    errors.push_back(c.error());
    sizes.push_back(std::abs(c.error()));
  }
  std::sort(errors.begin(), errors.end());
  std::sort(sizes.begin(), sizes.end());
  const auto at = [](const std::vector<double>& sorted, double share) {
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  };
  summary.median = at(sizes, 0.5);
  summary.p90 = at(sizes, 0.9);
  summary.bias = at(errors, 0.5);
  return summary;
}

Ranking rank_cpu_and_gpu(const std::vector<Comparison>& comparisons, bool best) {
  Ranking ranking;
  for (const auto& [key, members] : group(comparisons, true)) {
    const std::vector<Comparison> ranked = best ? fastest(members) : members;
    for (const Comparison& a : ranked) {
      for (const Comparison& b : ranked) {
        if (a.entry->lanes == "gpu" && b.entry->lanes != "gpu") rank(a, b, &ranking);
      }
    }
  }
  return ranking;
}

Ranking rank_platforms(const std::vector<Comparison>& comparisons) {
  Ranking ranking;
  for (const auto& [key, members] : group(comparisons, false)) {
    const std::vector<Comparison> ranked = fastest(members);
    for (size_t i = 0; i < ranked.size(); ++i) {
      for (size_t j = i + 1; j < ranked.size(); ++j) {
        const Entry& a = *ranked[i].entry;
        const Entry& b = *ranked[j].entry;
        const bool alike = (a.lanes == "gpu") == (b.lanes == "gpu");
        if (alike && a.platform != b.platform) rank(ranked[i], ranked[j], &ranking);
      }
    }
  }
  return ranking;
}

}  // namespace tandem::simulate
