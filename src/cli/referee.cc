#include "cli/referee.h"

#include <nlohmann/json.hpp>

#include "cli/python_script.h"
#include "fmt/format.h"

namespace tandem::cli {
namespace {

// The referee rounds every time down to nanoseconds: this is what that may add up to, along a path
// that takes in every part, with all that may be charged to it.
double rounding_us(const ModeTables& tables) {
  const auto edges = static_cast<double>(tables.in_begin.back());
  return 1e-3 * static_cast<double>(tables.stride) *
         (tables.operators * (5.0 + tables.lanes) + edges);
}

Status disagreement(const ModeTables& tables, std::string_view what, double theirs, double ours) {
  return internal_error(fmt::format("{}: {}: the referee says {:.3f} us, and the evaluator {:.3f}",
                                    tables.problem.name, what, theirs, ours));
}

}  // namespace

StatusOr<Referee> Referee::start(const RefereeOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(
      const PythonScript script,
      find_python_script("offline.py", options.python, "ortools", "--python PYTHON"));
  TANDEM_ASSIGN_OR_RETURN(LineProcess process,
                          LineProcess::start({script.python.string(), script.path.string(),
                                              "--time-limit", fmt::format("{}", options.time_limit),
                                              "--workers", fmt::format("{}", options.workers)}));
  return Referee(std::move(process), options);
}

StatusOr<Referee::Verdict> Referee::judge(const ModeTables& tables, const ModeSchedule& hint) {
  using nlohmann::json;
  const double hint_us = evaluate(tables, hint).makespan_us;
  const json request = {{"problem", json::parse(to_json(tables.problem))},
                        {"hint", json::parse(to_json(hint, hint_us))}};
  // Pricing the hint and building the model come on top of the search.
  const auto patience =
      std::chrono::milliseconds(60'000 + static_cast<int64_t>(2'000 * options_.time_limit));
  TANDEM_ASSIGN_OR_RETURN(const std::string line, process_.ask(request.dump(), patience));
  const json answer = json::parse(line, nullptr, false);
  if (!answer.is_object()) return internal_error("the referee answers no JSON object: " + line);
  if (answer.contains("error")) {
    const std::string error = tables.problem.name + ": " + answer["error"].dump();
    return answer.value("missing", false) ? not_found(error) : internal_error(error);
  }
  Verdict verdict;
  const double tolerance = rounding_us(tables);
  try {
    verdict.is_optimal = answer.at("status") == "OPTIMAL";
    verdict.bound_us = answer.at("bound_us").get<double>();
    verdict.seconds = answer.at("seconds").get<double>();
    const double priced = answer.at("hint_us").get<double>();
    if (priced > hint_us + 1e-6 || priced < hint_us - tolerance) {
      return disagreement(tables, "our schedule", priced, hint_us);
    }
    if (!answer.at("schedule").is_null()) {
      TANDEM_ASSIGN_OR_RETURN(
          verdict.schedule, mode_schedule_from_json(tables.problem, answer.at("schedule").dump()));
      verdict.makespan_us = evaluate(tables, *verdict.schedule).makespan_us;
      const double theirs = answer.at("makespan_us").get<double>();
      // Before the proof its parts may start later than they could.
      if (verdict.makespan_us > theirs + tolerance ||
          (verdict.is_optimal && verdict.makespan_us < theirs - 1e-6)) {
        return disagreement(tables, "its schedule", theirs, verdict.makespan_us);
      }
      if (verdict.bound_us > verdict.makespan_us + 1e-6) {
        return disagreement(tables, "its bound", verdict.bound_us, verdict.makespan_us);
      }
    }
  } catch (const json::exception& error) {
    return internal_error(fmt::format("the referee's answer lacks something: {}", error.what()));
  }
  if (verdict.bound_us > hint_us + 1e-6) {
    return disagreement(tables, "its bound against our schedule", verdict.bound_us, hint_us);
  }
  return verdict;
}

}  // namespace tandem::cli
