// All schedulers on one mode problem, and how far the joint search is from the optimum.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/referee.h"
#include "schedule/mode_scheduler.h"

namespace tandem::cli {

struct ScheduleTrial {
  std::string name;
  std::string kind;
  int operators = 0;
  int lanes = 0;
  std::map<std::string, double> makespans_us;  // by strategy; "single": the best single lane
  double search_ms = 0;                        // of joint
  std::optional<double> branch_and_bound_us;   // proven, by our own `exact`
  std::optional<Referee::Verdict> referee;

  double joint_us() const { return makespans_us.at("joint"); }
  // By either, or because a schedule is as good as the bound.
  bool proven() const;
  // The best that anything found.
  double best_us() const;
  // The optimum if that is proven, else the best bound.
  double bound_us() const { return proven() ? best_us() : lower_bound_us; }
  double gap() const { return joint_us() / bound_us() - 1; }
  bool joint_never_worse() const;

  double lower_bound_us = 0;
};

struct TrialOptions {
  double exact_ms = 1'000;  // that our own branch and bound may take
  SearchOptions search;
};

// `referee` may be null. kInternal if two proofs contradict each other.
StatusOr<ScheduleTrial> try_schedulers(const std::string& kind, const ModeProblem& problem,
                                       const TrialOptions& options, Referee* referee);

nlohmann::json to_json(const ScheduleTrial& trial);

}  // namespace tandem::cli
