#include "cli/run_report.h"

#include "fmt/format.h"

namespace tandem::cli {

nlohmann::json summary_json(const Summary& summary) {
  return {{"median", summary.median},
          {"p90", summary.p90},
          {"min", summary.min},
          {"spread", summary.spread},
          {"runs", summary.count}};
}

nlohmann::json contender_json(const Contender& contender, const Model& model,
                              const std::vector<std::string>& lane_names,
                              const std::optional<Limit>& limit) {
  const Summary time = contender.milliseconds.summary();
  nlohmann::json json = session_json(contender, model, lane_names);
  json.update(to_json(initialization_of(contender, model)));
  json["strategy"] = contender.strategy;
  json["time_ms"] = summary_json(time);
  json["call_ms"] = summary_json(contender.call_milliseconds.summary());
  if (limit && time.median > 0) {
    json["speed_up_over_best_lane"] = limit->best_ms / time.median;
    json["share_of_limit"] = limit->best_ms / time.median / limit->speed_up;
  }
  return json;
}

void print_contender(const Contender& contender, const Model& model,
                     const std::vector<std::string>& lane_names,
                     const std::optional<Limit>& limit) {
  const Summary time = contender.milliseconds.summary();
  std::string line =
      fmt::format("{:8} median {:9.3f} ms   p90 {:9.3f}   min {:9.3f}   spread {:4.1f}%",
                  contender.strategy, time.median, time.p90, time.min, 100 * time.spread);
  if (limit && time.median > 0) {
    const double speed_up = limit->best_ms / time.median;
    line += fmt::format("   {:.3f}x the best lane, {:.2f} of the limit", speed_up,
                        speed_up / limit->speed_up);
  }
  if (const int preempted = contender.milliseconds.disturbed(); preempted > 0) {
    line += fmt::format("   ({} runs were preempted, {} left out)", preempted,
                        contender.milliseconds.dropped());
  }
  fmt::print("{}\n{}", line, session_text(contender, model, lane_names, "         "));
  if (!contender.session->fall_back_reason().empty()) {
    fmt::print(stderr, "warning: {} fell back: {}\n", contender.strategy,
               contender.session->fall_back_reason());
  }
}

nlohmann::json verification_json(const Verification& verification) {
  nlohmann::json json = {{"checked", verification.checked},
                         {"tolerance", kVerifyTolerance},
                         {"worst_error", verification.worst_error},
                         {"worst_operator", verification.worst_op},
                         {"agrees", !verification.first.has_value()}};
  if (verification.first) {
    const Divergence& first = *verification.first;
    json["first_divergence"] = {{"operator", first.op},         {"kind", first.kind},
                                {"lanes", first.lanes},         {"error", first.error},
                                {"tolerance", first.tolerance}, {"element", first.element},
                                {"value", first.value},         {"expected", first.expected}};
  }
  return json;
}

Status divergence_error(const std::string& strategy, const Divergence& first) {
  return internal_error(fmt::format(
      "strategy {}: {} {} is the first operator that diverges from the reference: element {} is "
      "{:.9g}, not {:.9g} (off by {:.3g}, allowed {:.3g}); it ran on {}",
      strategy, first.kind, first.op, first.element, first.value, first.expected, first.error,
      first.tolerance, first.lanes));
}

std::string specs_text(const std::vector<TensorSpec>& specs) {
  std::string text;
  for (const TensorSpec& spec : specs) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", spec.name, to_string(spec.type),
                        to_string(spec.dims));
  }
  return text;
}

nlohmann::json drift_json(const std::vector<LaneDrift>& lanes,
                          const std::vector<std::string>& lane_names) {
  nlohmann::json json = nlohmann::json::object();
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    json[lane_names[lane]] = {{"predicted_us", lanes[lane].predicted_us},
                              {"measured_us", lanes[lane].measured_us},
                              {"ratio", lanes[lane].ratio()}};
  }
  return json;
}

nlohmann::json adaptation_json(const Adaptation& adaptation,
                               const std::vector<std::string>& lane_names) {
  nlohmann::json json = {{"recorded_runs", adaptation.recorded},
                         {"planned", adaptation.planned},
                         {"changed", adaptation.changed},
                         {"plan_ms", adaptation.plan_ms}};
  for (size_t lane = 0; lane < lane_names.size(); ++lane) {
    json["slowdown"][lane_names[lane]] = adaptation.slowdown[lane];
  }
  return json;
}

std::string adaptation_text(const Adaptation& adaptation,
                            const std::vector<std::string>& lane_names) {
  std::string lanes;
  for (size_t lane = 0; lane < lane_names.size(); ++lane) {
    lanes += fmt::format("{}{} {:.2f}x", lane == 0 ? "" : ", ", lane_names[lane],
                         adaptation.slowdown[lane]);
  }
  return fmt::format(
      "adapted: {} runs watched, planned again {} times ({:.0f} ms), schedule changed {} times; "
      "lanes take {} their predicted times\n",
      adaptation.recorded, adaptation.planned, adaptation.plan_ms, adaptation.changed, lanes);
}

}  // namespace tandem::cli
