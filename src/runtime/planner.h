// Makes schedules for one graph on the lanes of one platform: what a session does before it has
// memory, and what `tandem plan` does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "predict/predictor_file.h"
#include "profile/lane_crew.h"
#include "profile/transfer_costs.h"
#include "runtime/plan_file.h"
#include "schedule/plan.h"
#include "tandem/platform.h"
#include "tandem/session.h"

namespace tandem {

class CostModel;

class Planner {
 public:
  // Chooses how lanes synchronise, by options.sync. The caller has the lease, for this and for all
  // calls of plan() and prepare_costs().
  static StatusOr<std::unique_ptr<Planner>> create(std::shared_ptr<const Graph> graph,
                                                   std::shared_ptr<Platform> platform,
                                                   std::shared_ptr<LaneCrew> crew,
                                                   const SessionOptions& options);
  ~Planner();

  // What the options ask for: a plan of a file, the schedule that they bring, or plan() with their
  // strategy.
  StatusOr<Plan> make_plan();
  // A schedule of that strategy, with a prediction if costs are known. They are prepared if the
  // strategy looks at them.
  StatusOr<Plan> plan(const std::string& strategy);
  // The same, and how it came about.
  struct ExplainedPlan {
    Plan plan;
    PlannedSchedule planned;
  };
  StatusOr<ExplainedPlan> plan_and_explain(const std::string& strategy);
  // A plan of a file.
  StatusOr<Plan> load(const std::string& path) const;
  // What plans that are made now are good for.
  PlanOrigin origin() const;
  // What slices and crossings cost is known from now on. Takes seconds where nothing was measured.
  Status prepare_costs();

  // Slices of each lane take so many times as long as costs say, from now on. Costs must be known.
  void assume_slowdown(std::vector<double> factors);
  // What a schedule is predicted to do. Costs must be known.
  StatusOr<Timeline> predict(const Schedule& schedule) const;

  // With costs, if they are known. Good until they change, and as long as the planner is.
  Problem problem() const;
  bool has_costs() const { return costs_ != nullptr; }
  SyncMechanism mechanism() const { return mechanism_; }
  // How long it took, altogether.
  double calibrate_ms() const { return calibrate_ms_; }
  double predictors_ms() const { return predictors_ms_; }
  double schedule_ms() const { return schedule_ms_; }

 private:
  Planner(std::shared_ptr<const Graph> graph, std::shared_ptr<Platform> platform,
          std::shared_ptr<LaneCrew> crew, const SessionOptions& options);
  StatusOr<ExplainedPlan> plan(const std::string& strategy, bool explain);
  Status read_pins();
  Status choose_mechanism();
  // Where costs come from, or would come from.
  std::string cost_source() const;
  StatusOr<predict::PredictorFile> load_predictor_file() const;
  // By saved predictors. kNotFound if there are none, kFailedPrecondition if they are of another
  // engine.
  Status load_predictors();
  Status calibrate();
  CalibrationSources transfer_sources();
  StatusOr<double> crossing_us(int from, int to);

  const std::shared_ptr<const Graph> graph_;
  const std::shared_ptr<Platform> platform_;
  const std::shared_ptr<LaneCrew> crew_;
  const SessionOptions options_;
  std::vector<Pin> pins_;
  SyncMechanism mechanism_ = SyncMechanism::kEvent;
  std::unique_ptr<CostModel> costs_;
  std::unique_ptr<CostModel> corrected_costs_;  // null: as they are
  std::string cost_source_;                     // of costs_
  double calibrate_ms_ = 0;
  double predictors_ms_ = 0;
  double schedule_ms_ = 0;
};

}  // namespace tandem
