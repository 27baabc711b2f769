#include "cli/validation_report.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/output_files.h"
#include "cli/progress.h"
#include "fmt/format.h"
#include "platform/coefficients_file.h"
#include "platform/platform_file.h"
#include "simulate/fit.h"
#include "simulate/speed_ups.h"
#include "simulate/validation.h"
#include "support/write_file.h"

namespace tandem::cli {
namespace {

using nlohmann::json;
using simulate::Comparison;
using simulate::Entry;
using simulate::EntryKind;
using simulate::ErrorSummary;
using simulate::Ranking;

double percent(double fraction) { return 100 * fraction; }

const char* unit_of(const Entry& entry) {
  if (entry.kind == EntryKind::kSpeedUp) return "x";
  return entry.kind == EntryKind::kNetwork ? "ms" : "us";
}

double in_unit(const Entry& entry, double value) {
  return entry.kind == EntryKind::kNetwork ? value / 1000 : value;
}

struct Sides {
  std::vector<Comparison> held_out;
  std::vector<Comparison> fitted;
};

// By what is compared: networks on CPUs, and so on.
std::map<std::string, Sides> group(const std::vector<Comparison>& comparisons) {
  std::map<std::string, Sides> groups;
  for (const Comparison& c : comparisons) {
    const Entry& e = *c.entry;
    std::string name = fmt::format("{}, {}", to_string(e.kind), e.platform);
    if (e.kind == EntryKind::kNetwork || e.kind == EntryKind::kOperator) {
      name += e.lanes == "gpu" ? ", GPU" : ", CPU";
      name += ", " + e.runtime;
    }
    Sides& sides = groups[name];
    (e.held_out ? sides.held_out : sides.fitted).push_back(c);
  }
  return groups;
}

json to_json(const ErrorSummary& s) {
  return {{"entries", s.entries}, {"median", s.median}, {"p90", s.p90}, {"bias", s.bias}};
}

json to_json(const Ranking& r) {
  return {{"pairs", r.pairs}, {"right", r.right}, {"share", r.share()}};
}

struct Report {
  std::vector<Comparison> all;
  std::vector<Comparison> held_out;

  void add(const Comparison& comparison) {
    all.push_back(comparison);
    if (comparison.entry->held_out) held_out.push_back(comparison);
  }
};

std::vector<Comparison> of_kind(const std::vector<Comparison>& all, EntryKind kind) {
  std::vector<Comparison> some;
  for (const Comparison& c : all) {
    if (c.entry->kind == kind) some.push_back(c);
  }
  return some;
}

void print_json(const Report& report) {
  json entries = json::array();
  for (const Comparison& c : report.all) {
    entries.push_back({{"id", c.entry->id},
                       {"kind", to_string(c.entry->kind)},
                       {"published", in_unit(*c.entry, c.entry->value)},
                       {"simulated", in_unit(*c.entry, c.simulated)},
                       {"unit", unit_of(*c.entry)},
                       {"error", c.error()},
                       {"held_out", c.entry->held_out},
                       {"source", c.entry->source}});
  }
  json groups = json::object();
  for (const auto& [name, sides] : group(report.all)) {
    groups[name] = {{"held_out", to_json(simulate::summarize_errors(sides.held_out))},
                    {"fitted", to_json(simulate::summarize_errors(sides.fitted))}};
  }
  json rankings = {
      {"cpu_and_gpu", to_json(simulate::rank_cpu_and_gpu(report.held_out, false))},
      {"fastest_cpu_and_gpu", to_json(simulate::rank_cpu_and_gpu(report.held_out, true))},
      {"platforms", to_json(simulate::rank_platforms(report.held_out))}};
  json summary = {{"all", to_json(simulate::summarize_errors(report.held_out))}};
  for (const EntryKind kind :
       {EntryKind::kNetwork, EntryKind::kOperator, EntryKind::kSync, EntryKind::kSpeedUp}) {
    summary[to_string(kind)] = to_json(simulate::summarize_errors(of_kind(report.held_out, kind)));
  }
  fmt::print("{}\n", json{{"simulated", true},
                          {"held_out", summary},
                          {"held_out_rankings", rankings},
                          {"groups", groups},
                          {"entries", entries}}
                         .dump(2));
}

std::string side(const std::vector<Comparison>& comparisons) {
  const ErrorSummary s = simulate::summarize_errors(comparisons);
  if (s.entries == 0) return fmt::format("{:>6} {:>7} {:>7} {:>7}", 0, "-", "-", "-");
  return fmt::format("{:>6} {:>7.1f} {:>7.1f} {:>+7.1f}", s.entries, percent(s.median),
                     percent(s.p90), percent(s.bias));
}

void print_ranking(const char* what, const Ranking& ranking) {
  fmt::print("  {}: {} of {} pairs right ({:.1f}%)\n", what, ranking.right, ranking.pairs,
             percent(ranking.share()));
}

void print_text(const Report& report) {
  fmt::print(
      "SIMULATED times against published ones: size of errors in %, and their median with sign.\n"
      "{:44} {:^30}   {:^30}\n{:44} {:>6} {:>7} {:>7} {:>7} | {:>6} {:>7} {:>7} {:>7}\n",
      "", "held out", "fitted to", "", "number", "median", "p90", "bias", "number", "median", "p90",
      "bias");
  for (const auto& [name, sides] : group(report.all)) {
    fmt::print("{:44} {} | {}\n", name, side(sides.held_out), side(sides.fitted));
  }
  fmt::print("\nheld out, all of a kind:\n");
  for (const EntryKind kind :
       {EntryKind::kNetwork, EntryKind::kOperator, EntryKind::kSync, EntryKind::kSpeedUp}) {
    fmt::print("  {:42} {}\n", to_string(kind), side(of_kind(report.held_out, kind)));
  }
  fmt::print("  {:42} {}\n", "all", side(report.held_out));
  fmt::print("\nheld out, ranking of pairs that differ by more than 5%:\n");
  print_ranking("GPU and each CPU combination", simulate::rank_cpu_and_gpu(report.held_out, false));
  print_ranking("GPU and fastest CPU combination",
                simulate::rank_cpu_and_gpu(report.held_out, true));
  print_ranking("platforms", simulate::rank_platforms(report.held_out));
}

}  // namespace

Status print_validation(const std::string& published, const std::string& calibration, bool json) {
  TANDEM_ASSIGN_OR_RETURN(const simulate::Published data, simulate::load_published(published));
  TANDEM_ASSIGN_OR_RETURN(simulate::Cases cases, simulate::make_cases(data));
  TANDEM_ASSIGN_OR_RETURN(const sim::Coefficients coefficients, load_coefficients(calibration));
  TANDEM_RETURN_IF_ERROR(cases.resolve(coefficients));
  Report report;
  for (const simulate::Case& each : cases.cases) {
    report.add({each.entry, cases.simulate_us(each)});
  }
  for (const Entry& entry : data.entries) {
    if (entry.kind != EntryKind::kSpeedUp) continue;
    PlatformFileOptions options;
    options.runtime = entry.runtime;
    options.calibration = calibration;
    TANDEM_ASSIGN_OR_RETURN(const sim::PlatformModel model, load_platform(entry.platform, options));
    TANDEM_ASSIGN_OR_RETURN(const std::optional<double> ratio,
                            simulate::simulate_speed_up(model, entry));
    if (ratio) report.add({&entry, *ratio});
  }
  json ? print_json(report) : print_text(report);
  return {};
}

Status fit_coefficients(const std::string& published, const std::string& calibration,
                        const std::string& output, int rounds) {
  TANDEM_RETURN_IF_ERROR(check_can_write({{"--fit", output}}));
  TANDEM_ASSIGN_OR_RETURN(const simulate::Published data, simulate::load_published(published));
  TANDEM_ASSIGN_OR_RETURN(const sim::Coefficients start, load_coefficients(calibration));
  StatusOr<simulate::Fit> fit = invalid_argument("not fitted");
  {
    Progress progress("fitting", rounds);
    fit = simulate::fit(data, start, {.rounds = rounds}, [&](int, double) { progress.step(); });
  }
  if (!fit.ok()) return fit.status();
  TANDEM_RETURN_IF_ERROR(write_file(output, to_text(fit->coefficients)));
  fmt::print("mean size of log(simulated / published): {:.4f} before, {:.4f} after {} rounds\n",
             fit->before, fit->after, fit->rounds);
  return {};
}

}  // namespace tandem::cli
